"""The service ends after SIGTERM, whatever its clients do in that moment."""

import asyncio
import contextlib
import socket

import pytest

from tests.serving.conftest import service_of
from unmask.serving import server
from unmask.serving.app import make_app
from unmask.serving.run_service import listen
from unmask.serving.server import Server, Stalled

REFUSED = b"POST /embed HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\n"


@pytest.mark.parametrize("sent", [b"", b"POST /em", REFUSED, REFUSED + b"123"])
def test_a_connection_that_comes_while_the_service_stops_does_not_keep_it(runs, monkeypatch, sent):
    """The client stays, and its connection is made in one of the rounds of the event loop around the stop."""
    monkeypatch.setattr(server, "FIRST_SECONDS", 0.1)
    for rounds in range(6):
        asyncio.run(_stopped(service_of(runs, "bert"), sent, rounds))


async def _stopped(service, sent, rounds):
    listening = listen("127.0.0.1", 0)
    made = Server(make_app(service))
    made.config.load()
    made.lifespan = made.config.lifespan_class(made.config)
    await made.startup([listening])
    with socket.create_connection(listening.getsockname()) as client:
        client.sendall(sent)
        for _ in range(rounds):
            await asyncio.sleep(0)
        async with asyncio.timeout(5):
            await made.shutdown([listening])


def test_a_client_that_does_not_read_its_answer_is_cut_off():
    now = [0.0]
    stalled = Stalled(lambda: now[0])
    for now[0], waiting in ((0, 0), (40, 900), (60, 900), (69, 800), (90, 800), (99, 800)):
        assert not stalled("a", waiting)  # it reads slowly
    now[0] = 99.5
    assert stalled("a", 800)
    assert not stalled("b", 800)


def test_the_service_ends_if_a_client_does_not_read(monkeypatch):
    monkeypatch.setattr(server, "STALLED_SECONDS", 0.2)
    asyncio.run(_not_read())


async def _not_read():
    listening = listen("127.0.0.1", 0)
    made = Server(_large)
    serving = asyncio.ensure_future(made.serve([listening]))
    while not made.started:
        await asyncio.sleep(0.01)
    with socket.create_connection(listening.getsockname()) as client:
        client.sendall(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
        await asyncio.sleep(0.1)
        made.should_exit = True
        async with asyncio.timeout(5):
            await serving


async def _large(scope, receive, send):
    """An application whose answer does not fit into the buffers of the connection."""
    if scope["type"] == "lifespan":
        with contextlib.suppress(asyncio.CancelledError):
            for name in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{name}.complete"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": bytes(50_000_000)})
