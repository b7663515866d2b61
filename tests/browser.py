"""The browser of the tests of the page: Chromium of this machine, which can reach nothing but the service."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlencode

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
NEEDED = {
    "chromium": CHROMIUM,
    "playwright": find_spec("playwright"),
    "axe-playwright-python": find_spec("axe_playwright_python"),
}
MISSING = ", ".join(name for name, found in NEEDED.items() if not found)
READY = "#view[aria-busy=false]"


@contextmanager
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    closed = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"  # no name is found
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", closed])
        try:
            yield found
        finally:
            found.close()


@contextmanager
def opened(browser: Any, url: str, *, width: int = 1100, dark: bool = False, **state: Any) -> Iterator[Any]:
    """The page in a state. An error in its scripts, or a request to another address, fails the test."""
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme="dark" if dark else "light", locale="en-US"
    )
    wrong: list[str] = []
    page = context.new_page()
    page.set_default_timeout(60_000)  # the machine may be busy
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: request.url.startswith(url) or wrong.append(request.url))
    try:
        go(page, url, **state)
        yield page
        assert not wrong
    finally:
        context.close()


def go(page: Any, url: str, **state: Any) -> None:
    page.goto(f"{url}/?{urlencode(state)}")
    page.wait_for_selector(READY)


def settle(page: Any) -> None:
    """Wait until what was chosen last is drawn."""
    page.wait_for_selector(READY)


def bars(place: Any) -> list[tuple[str, str]]:
    """The tokens and percentages of a list of bars."""
    rows = place.locator("ol.bars li")
    return [
        (row.locator(".token").inner_text().removesuffix(" ✓"), row.locator(".number").inner_text())
        for row in rows.all()
    ]
