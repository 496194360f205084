"""Tests that HTTP to a server goes where operators allow, and never to a platform's own addresses."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import pytest
import uvloop

from toolbelt.core import connections
from toolbelt.plugins.upstream import last_check, network, ring_buffer, transports

NAMES = {
    "tools.test": ["10.0.0.7"],
    "cloud.test": ["169.254.169.254"],
    "both.test": ["93.184.215.14", "::ffff:169.254.169.254"],
    "away.test": ["10.0.0.1"],
    "two.test": ["10.0.0.1", "10.0.0.2"],
}


class Answering(httpx2.AsyncBaseTransport):
    """Answers in place of the network, and remembers where requests went."""

    def __init__(self, body: bytes = b"{}") -> None:
        self.sent: list[httpx2.Request] = []
        self.addresses: list[str] = []
        self._body = body

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.sent.append(request)
        self.addresses.append(request.extensions[network.ADDRESS])
        if self.addresses[-1] == "10.0.0.1":
            raise httpx2.ConnectError("refused", request=request)
        return httpx2.Response(200, content=self._parts(), headers={"content-type": "application/json"})

    async def _parts(self) -> AsyncIterator[bytes]:
        yield self._body


def ask(url: str, inner: Answering, method: str = "GET", **given: Any) -> httpx2.Response:
    async def resolve(host: str, port: int) -> list[str]:
        return NAMES[host]

    async def asked() -> httpx2.Response:
        gate = transports.Gate(inner, resolve=resolve, **given)
        async with httpx2.AsyncClient(transport=gate) as client:
            return await client.request(method, url)

    return asyncio.run(asked())


def test_a_private_address_is_asked_under_its_own_name() -> None:
    inner = Answering()

    assert ask("https://tools.test/mcp", inner).status_code == 200
    assert inner.addresses == ["10.0.0.7"]
    assert str(inner.sent[0].url) == "https://tools.test/mcp"
    assert inner.sent[0].headers["host"] == "tools.test"


@pytest.mark.parametrize("host", ["cloud.test", "both.test"])
def test_a_name_that_leads_to_a_platforms_own_address_is_not_asked(host: str) -> None:
    inner = Answering()

    with pytest.raises(transports.AddressRefusedError, match="a cloud platform's own address"):
        ask(f"http://{host}/latest", inner)
    assert inner.sent == []


def test_the_next_address_is_tried_where_one_does_not_answer() -> None:
    inner = Answering()

    ask("http://two.test/", inner)

    assert inner.addresses == ["10.0.0.1", "10.0.0.2"]


@pytest.mark.parametrize("is_written", [False, True])
def test_a_call_has_not_run_if_its_server_was_never_reached(is_written: bool) -> None:
    check = last_check.LastCheck(None)
    if is_written:
        # The request that fails is another one, for the rest of the answer.
        asyncio.run(check.make())

    with check.current(), pytest.raises(httpx2.ConnectError):
        ask("http://away.test/", Answering())

    assert check.has_not_run is not is_written


def test_an_answer_without_an_end_is_not_read_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transports, "MAX_BYTES", 10)

    with pytest.raises(transports.TooLargeError, match="more than 10 bytes"):
        ask("http://tools.test/", Answering(b"x" * 11))


def test_the_status_of_each_answer_to_a_message_is_noted() -> None:
    seen: list[int] = []

    ask("http://tools.test/", Answering(), answered=seen.append)
    assert seen == []

    ask("http://tools.test/", Answering(), "POST", answered=seen.append)
    assert seen == [200]


@pytest.mark.slow
@pytest.mark.parametrize("make_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_the_error_output_of_a_process_is_kept_and_its_pipe_closed(
    make_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    command = connections.Connection(command="/bin/sh", args=("-c", "echo no database > /dev/stderr; cat"))
    errors = ring_buffer.RingBuffer()

    async def run() -> None:
        async with transports.process(command, {}, errors, lambda: None, lambda error: None):
            while not errors.text():  # noqa: ASYNC110 (no event tells of it)
                await asyncio.sleep(0.01)

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(run())
        before = os.listdir("/proc/self/fd")
        runner.run(run())
        assert sorted(os.listdir("/proc/self/fd")) == sorted(before)
    assert errors.text() == "no database\nno database"
