"""The server: uvicorn that says when it answers, and that loses no request when it stops."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

FIRST_SECONDS = 2.0  # after SIGTERM, to send a request over a connection that was just opened
STALLED_SECONDS = 30.0  # after SIGTERM, to take the next bytes of an answer: a client that does not read is cut off
_ROUND = 0.05  # seconds between two looks at the connections


class Server(uvicorn.Server):
    """`ready`: called when requests are accepted."""

    def __init__(self, app: Any, ready: Callable[[], None] = lambda: None) -> None:
        # the parts are named, because uvicorn would take others that happen to be installed, and the tests know these
        super().__init__(
            uvicorn.Config(
                app, log_level="warning", access_log=False, lifespan="on", loop="asyncio", http=Connection, ws="none"
            )
        )
        self.ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the port, answer all who had reached it, and end. uvicorn alone would cut off those whose connection is open
        and whose request was not read yet. It would also wait for ever for a connection that it gets in the same moment: it
        tells each connection once that it should close, and one without a request has no time limit."""
        for one in self._close(sockets or ()):
            await asyncio.get_running_loop().connect_accepted_socket(self._protocol, one)
        begun, stalled = time.monotonic(), Stalled()
        await asyncio.sleep(_ROUND)  # what was sent already is read now
        while self.server_state.connections and not self.force_exit:
            early = time.monotonic() - begun < FIRST_SECONDS
            for one in self._connections():
                if not (early and one.cycle is None):
                    one.shutdown()  # now if it is idle, otherwise after its answer
                if stalled(one, one.transport.get_write_buffer_size()):
                    one.transport.abort()
            await asyncio.sleep(_ROUND)
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


class Connection(H11Protocol):
    """One connection. A client that sends a broken body after it was refused is cut off; uvicorn would try to answer twice."""

    def send_400_response(self, msg: str) -> None:
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()


class Stalled:
    """Whether a client has taken no byte of its answer for too long."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.seen: dict[Any, tuple[int, float]] = {}  # bytes that wait for the client, and since when there are so many

    def __call__(self, connection: Any, waiting: int) -> bool:
        before, since = self.seen.get(connection, (0, 0.0))
        if not waiting or waiting != before:
            self.seen[connection] = waiting, self.clock()
            return False
        return self.clock() - since > STALLED_SECONDS
