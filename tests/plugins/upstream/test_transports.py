"""Tests that HTTP requests to servers go only where operators allow, and never to a cloud platform's own addresses."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import pytest
import uvloop

from toolbelt.core import connections
from toolbelt.plugins.upstream import bodies, last_check, ring_buffer, transports

NAMES = {
    "tools.test": ["10.0.0.7"],
    "cloud.test": ["169.254.169.254"],
    "both.test": ["93.184.215.14", "::ffff:169.254.169.254"],
    "away.test": ["10.0.0.1"],
    "two.test": ["10.0.0.1", "10.0.0.2"],
}


class RecordingTransport(httpx2.AsyncBaseTransport):
    """Answers instead of the network, and records the requests and their addresses."""

    def __init__(self, body: bytes = b"{}") -> None:
        self.sent: list[httpx2.Request] = []
        self.addresses: list[str] = []
        self._body = body

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.sent.append(request)
        self.addresses.append(request.url.host)
        if self.addresses[-1] == "10.0.0.1":
            raise httpx2.ConnectError("refused", request=request)
        return httpx2.Response(200, content=self._parts(), headers={"content-type": "application/json"})

    async def _parts(self) -> AsyncIterator[bytes]:
        yield self._body


def request_through_gate(
    url: str, inner: RecordingTransport, method: str = "GET", **options: Any
) -> httpx2.Response:
    async def resolve(host: str, port: int) -> list[str]:
        return NAMES[host]

    async def send() -> httpx2.Response:
        transport = transports.UpstreamTransport(inner, resolve=resolve, **options)
        async with httpx2.AsyncClient(transport=transport) as client:
            return await client.request(method, url)

    return asyncio.run(send())


def test_a_request_to_a_private_address_keeps_its_host_name() -> None:
    inner = RecordingTransport()

    assert request_through_gate("https://tools.test/mcp", inner).status_code == 200
    assert inner.addresses == ["10.0.0.7"]
    assert inner.sent[0].headers["host"] == "tools.test"
    assert inner.sent[0].extensions["sni_hostname"] == "tools.test"


@pytest.mark.parametrize("host", ["cloud.test", "both.test"])
def test_a_name_that_resolves_to_a_platform_address_is_refused(host: str) -> None:
    inner = RecordingTransport()

    with pytest.raises(transports.AddressRefusedError, match="a cloud platform's own address"):
        request_through_gate(f"http://{host}/latest", inner)
    assert inner.sent == []


def test_the_next_address_is_tried_if_the_first_does_not_answer() -> None:
    inner = RecordingTransport()

    request_through_gate("http://two.test/", inner)

    assert inner.addresses == ["10.0.0.1", "10.0.0.2"]


@pytest.mark.parametrize("is_written", [False, True])
def test_a_call_counts_as_not_run_if_its_server_was_never_reached(is_written: bool) -> None:
    check = last_check.LastCheck(None)
    if is_written:
        # The call itself was sent; the failing request is a later one, for the rest of the response.
        asyncio.run(check.make())

    with check.current(), pytest.raises(httpx2.ConnectError):
        request_through_gate("http://away.test/", RecordingTransport())

    assert check.has_not_run is not is_written


def test_a_response_above_the_size_limit_is_not_read_completely(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "MAX_BYTES", 10)

    with pytest.raises(bodies.TooLargeError, match="more than 10 bytes"):
        request_through_gate("http://tools.test/", RecordingTransport(b"x" * 11))


def test_the_status_of_each_response_to_a_message_is_reported() -> None:
    statuses: list[int] = []

    def note(status: int, retry_after: str) -> None:
        statuses.append(status)

    request_through_gate("http://tools.test/", RecordingTransport(), answered=note)
    assert statuses == []

    request_through_gate("http://tools.test/", RecordingTransport(), "POST", answered=note)
    assert statuses == [200]


@pytest.mark.slow
@pytest.mark.parametrize("make_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_the_error_output_of_a_process_is_captured_and_its_pipe_closed(
    make_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    command = connections.Connection(command="/bin/sh", args=("-c", "echo no database > /dev/stderr; cat"))
    errors = ring_buffer.RingBuffer()

    async def run() -> None:
        async with transports.process(command, {}, errors, lambda error: None):
            while not errors.text():  # noqa: ASYNC110 (there is no event for it)
                await asyncio.sleep(0.01)

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(run())
        before = os.listdir("/proc/self/fd")
        runner.run(run())
        assert sorted(os.listdir("/proc/self/fd")) == sorted(before)
    assert errors.text() == "no database\nno database"
