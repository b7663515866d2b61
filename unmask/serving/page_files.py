"""The files of the page: HTML, style and scripts. Nothing is built, and nothing is loaded from another address."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from starlette.responses import Response

from unmask.serving.call import Call, Route
from unmask.serving.refused import Refused

FOLDER: Final = Path(__file__).parent / "page"
KINDS: Final = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
# the browser refuses whatever does not come from this service
HEADERS: Final = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}


async def index(call: Call) -> Any:
    return _file("index.html")


async def file(call: Call) -> Any:
    return _file(call.path["file"])


def _file(name: str) -> Response:
    """A file of the page. The name is only looked up among the known ones: no path is made from it."""
    known = {path.name: path for path in FOLDER.iterdir() if path.suffix in KINDS}
    if name not in known:
        raise Refused(404, f"the page has no file {name[:80]!r}")
    kind = f"{KINDS[known[name].suffix]}; charset=utf-8"
    return Response(known[name].read_bytes(), headers=HEADERS | {"content-type": kind})


ROUTES = (Route("/", index, "The page"), Route("/page/{file}", file, "A file of the page"))
OPEN = frozenset(route.path for route in ROUTES)
