"""The server: uvicorn that says when it answers, and that loses no request when it stops."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any

import uvicorn

FIRST_SECONDS = 2.0  # after SIGTERM, to send a request over a connection that was just opened
LAST_SECONDS = 600  # after SIGTERM: a client that does not read its answer must not keep the process for ever


class Server(uvicorn.Server):
    """`ready`: called when requests are accepted."""

    def __init__(self, app: Any, ready: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app, log_level="warning", access_log=False, lifespan="on", timeout_graceful_shutdown=LAST_SECONDS
            )
        )
        self.ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the port, answer all who had reached it, and end. uvicorn alone would cut off those whose connection is open
        and whose request was not read yet."""
        for one in self._close(sockets or ()):
            await asyncio.get_running_loop().connect_accepted_socket(self._protocol, one)
        end = time.monotonic() + FIRST_SECONDS
        await asyncio.sleep(0.05)  # what was sent already is read now
        while time.monotonic() < end and any(one.cycle is None for one in self._connections()):
            await asyncio.sleep(0.05)
        await super().shutdown(sockets)

    def _close(self, sockets: Sequence[socket.socket]) -> list[socket.socket]:
        """Close the port. Returns the connections that waited there: they were open for their clients already."""
        waiting = []
        for listening in sockets:
            for _ in range(self.config.backlog):
                try:
                    waiting.append(listening.accept()[0])
                except OSError:
                    break
        for server in self.servers:
            server.close()
        return waiting

    def _protocol(self) -> Any:
        make: Any = self.config.http_protocol_class
        return make(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

    def _connections(self) -> list[Any]:
        return list(self.server_state.connections)
