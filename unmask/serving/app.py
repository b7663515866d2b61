"""The application: from HTTP to a route and back. Keys, limits, request ids, logs and metrics are handled here."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import itertools
import json
import os
import time
import traceback
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Match, Mount
from starlette.routing import Route as HTTPRoute
from starlette.staticfiles import StaticFiles

from unmask.errors import UserError
from unmask.serving.body import read_body
from unmask.serving.call import Call, Route, Stream, as_json, as_json_in_pieces, has_many
from unmask.serving.leaving import Left, until_left
from unmask.serving.loopback import HERE, host_of, is_here
from unmask.serving.refused import Refused, content
from unmask.serving.routes import ALWAYS, OPEN, ROUTES
from unmask.serving.service import Service, busy

PAGE = Path(__file__).parent / "page"  # files that are served as they are
BODY_SECONDS = 30.0  # in which a body must come: a client that never ends it would keep its place for ever
_STARTED, _NUMBERS = uuid.uuid4().hex[:20], itertools.count(1)  # of request ids
Log = Callable[[dict[str, Any]], None]


def make_app(
    service: Service, *, keys: Sequence[str] = (), origins: Sequence[str] = (), log: Log = lambda record: None
) -> Starlette:
    """The application of a service. `keys`: clients must send one of them; none: no key is needed. `origins`: the web pages
    that may read answers. `log`: a function that gets one record for each request, without its texts."""

    @contextlib.asynccontextmanager
    async def alive(_: Starlette) -> AsyncIterator[None]:
        service.engine.start()
        yield
        await asyncio.to_thread(service.engine.close)

    cors = Middleware(CORSMiddleware, allow_origins=list(origins), allow_methods=["*"], allow_headers=["*"])
    routes = [HTTPRoute(one.path, _Endpoint(service, one, keys, log), methods=[one.method]) for one in ROUTES]

    async def unknown(request: Request, error: Exception) -> Response:
        id_, refused = _new_id(), _no_route(request, routes)
        service.metrics.failures.labels(refused.cause).inc()
        log({"id": id_, "route": None, "status": refused.status, "seconds": 0.0})
        return _error(refused, request.url.path, id_)

    return Starlette(
        routes=[*routes, Mount("/", StaticFiles(directory=PAGE, html=True))],
        middleware=[cors] if origins else [],
        lifespan=alive,
        exception_handlers={HTTPException: unknown},
    )


def _new_id() -> str:
    """A request id. It is counted: asking the system for random bytes would wait for the thread that runs the networks."""
    return f"{_STARTED}{next(_NUMBERS):012x}"


def _no_route(request: Request, routes: Sequence[HTTPRoute]) -> Refused:
    """No such route, or not with this method. The files of the page are behind all routes, so they get both."""
    here = f"{request.method} {request.url.path[:80]}"
    methods = sorted(
        {one for route in routes if route.matches(request.scope)[0] != Match.NONE for one in route.methods or ()}
    )
    if methods:
        return Refused(
            405, f"{here} is not there: ask with {' or '.join(methods)}", headers={"Allow": ", ".join(methods)}
        )
    return Refused(404, f"no route {here}: GET /openapi.json lists the routes")


class _Endpoint:
    """One route as an ASGI application: it sees the client leave, which a plain function does not."""

    def __init__(self, service: Service, route: Route, keys: Sequence[str], log: Log) -> None:
        self.service, self.route, self.keys, self.log = service, route, [key.encode() for key in keys], log

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request, began, id_ = Request(scope, receive), time.monotonic(), _new_id()
        metrics = self.service.metrics
        metrics.requests.labels(self.route.path).inc()
        self.service.running += 1
        metrics.running.set(self.service.running)
        response, cause = None, "client_left"
        try:
            response, cause = await self._answered(request, id_)
            if response is not None:
                await response(scope, receive, send)
        finally:
            self.service.running -= 1
            metrics.running.set(self.service.running)
            seconds = time.monotonic() - began
            metrics.seconds.observe(seconds)
            if cause:
                metrics.failures.labels(cause).inc()
            else:
                metrics.successes.inc()
            status = 499 if response is None else response.status_code
            self.log({"id": id_, "route": self.route.path, "status": status, "seconds": round(seconds, 6)})

    async def _answered(self, request: Request, id_: str) -> tuple[Response | None, str]:
        """The response, and the cause of a failure, "" if there is none. A client that left gets no response."""
        try:
            return await self._response(request, id_), ""
        except Refused as error:
            refused = error
        except UserError as error:
            refused = Refused(422, self._without_paths(str(error)))
        except (Left, ClientDisconnect):
            return None, "client_left"
        except Exception as error:
            traceback.print_exception(error)
            refused = Refused(500, "the service failed; its log has the reason")
        return _error(refused, request.url.path, id_), refused.cause

    def _without_paths(self, message: str) -> str:
        """A message with the names of models in place of their folders, which clients need not know."""
        models = self.service.models
        known = [(one.model.folder, one.name) for one in models.all()] + [
            (path, name) for name, path in models.folders().items()
        ]
        for folder, name in known:
            for shown in (str(folder.resolve()), str(folder)):
                message = message.replace(shown, name) if os.sep in shown else message  # "a" is in many words
        return message

    async def _response(self, request: Request, id_: str) -> Response:
        self._check_key(request)
        if self.service.running > self.service.limits.requests and self.route.path not in ALWAYS:
            raise busy("requests", f"{self.service.limits.requests:,} requests are answered already")
        body = await self._body(request)
        call = Call(self.service, body, dict(request.path_params), id_)
        found = await until_left(request, self.route.answer(call)) if self.route.body else await self.route.answer(call)
        headers = {"x-request-id": id_}
        if isinstance(found, Stream):
            return StreamingResponse(_events(found), media_type="text/event-stream", headers=headers)
        if isinstance(found, Response):
            return found
        content = await asyncio.to_thread(as_json_in_pieces, found) if has_many(found) else as_json(found)
        return Response(content, media_type="application/json", headers=headers)

    async def _body(self, request: Request) -> Any:
        if self.route.body is None:
            return None
        kind, most = request.headers.get("content-type", ""), self.service.limits.body
        if kind.partition(";")[0].strip().lower() != "application/json":
            raise Refused(
                415, f"the body must be JSON, got {kind[:80]!r}: send the header Content-Type: application/json"
            )
        try:
            async with asyncio.timeout(BODY_SECONDS):
                content = await _received(request, most)
        except TimeoutError:
            raise Refused(
                408,
                f"the body did not come within {BODY_SECONDS:.0f} s: send it at once",
                headers={"Connection": "close"},
            ) from None
        return read_body(content, self.route.body)

    def _check_key(self, request: Request) -> None:
        """Refuse a request without one of the keys. All keys are compared, in constant time."""
        if self.route.path in OPEN:
            return
        if not self.keys:
            _check_host(request)
            return
        given = request.headers.get("authorization", "")
        key = given[7:].strip().encode() if given[:7].lower() == "bearer " else b""
        if not sum(hmac.compare_digest(key, known) for known in self.keys):
            raise Refused(
                401,
                "a key is needed: send the header Authorization: Bearer KEY",
                headers={"WWW-Authenticate": "Bearer"},
            )


async def _received(request: Request, most: int) -> bytes:
    """The body of a request, of at most this number of bytes."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise Refused(413, f"a body may have {most:,} bytes, and this one has more: send fewer texts", limit="body")
        parts.append(part)
    return b"".join(parts)


def _check_host(request: Request) -> None:
    """Without keys, refuse a web page elsewhere whose name was made to mean this machine: its browser sends that name."""
    name = host_of(request.headers.get("host", ""))
    if not is_here(name):
        raise Refused(
            403,
            f"without keys, requests must name this machine as {', '.join(HERE)}, got {name[:80]!r}: start the service with "
            "--keys",
        )


async def _events(stream: Stream) -> AsyncIterator[bytes]:
    """Server-sent events, to the last one, [DONE]."""
    try:
        async for event in stream.events:
            yield b"data: " + as_json(event) + b"\n\n"
        yield b"data: [DONE]\n\n"
    except Exception as error:  # the status was sent already, so the error is an event
        traceback.print_exception(error)
        yield b"data: " + as_json(content(Refused(500, "the service failed; its log has the reason"), "/v1/")) + b"\n\n"
    finally:
        await stream.events.aclose()  # type: ignore[attr-defined]


def _error(error: Refused, path: str, id_: str) -> Response:
    body = json.dumps(content(error, path), ensure_ascii=False).encode()
    headers = {"x-request-id": id_} | error.headers
    return Response(body, error.status, media_type="application/json", headers=headers)
