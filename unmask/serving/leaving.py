"""Clients that leave: their work is cancelled. The framework does not do this for a plain function."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from starlette.requests import Request


class Left(Exception):
    """The client closed the connection."""


async def until_left(request: Request, answer: Any) -> Any:
    """The answer of a route. If the client leaves before it is ready, its work is cancelled."""
    work = asyncio.ensure_future(answer)
    watch = asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait({work, watch}, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            return work.result()
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work
        raise Left
    finally:
        watch.cancel()
        work.cancel()  # no effect on work that is done


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
