"""Tests of requests between processes over a Unix domain socket, when something fails."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from toolbelt.plugins.upstream import relay


def kind(error: Exception) -> tuple[str, str]:
    return "failed", str(error)


def test_a_process_with_too_many_callers_is_busy_and_not_unreachable(tmp_path: Path) -> None:
    path = str(tmp_path / "busy.sock")
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as first:
        listening.bind(path)
        listening.listen(0)
        first.connect(path)
        with pytest.raises(relay.BusyError):
            asyncio.run(relay.request(path, "any", {}, {}))


def test_running_out_of_file_descriptors_is_reported_as_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(path: str) -> Any:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(asyncio, "open_unix_connection", fail)
    with pytest.raises(relay.BusyError):
        asyncio.run(relay.request(str(tmp_path / "any.sock"), "any", {}, {}))


def test_a_file_that_is_not_a_socket_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "precious"
    path.write_text("kept")
    with pytest.raises(relay.UnreachableError):
        asyncio.run(relay.request(str(path), "any", {}, {}))
    assert path.read_text() == "kept"


def test_unread_messages_are_buffered_only_up_to_a_limit(tmp_path: Path) -> None:
    buffered = []

    async def work(method: str, params: Mapping[str, Any], exchange: relay.Exchange) -> Any:
        for _ in range(500):
            exchange.send_event("progress", "x" * 100_000)
        buffered.append(exchange.waiting)
        return "done"

    async def story() -> Any:
        listener = relay.Listener(work, kind)
        address = await listener.start(tmp_path / "sockets")
        received = 0

        async def receive(data: Any) -> None:
            nonlocal received
            received += 1

        try:
            return await relay.request(address, "any", {}, {"progress": receive}), received
        finally:
            await listener.close()

    result, received = asyncio.run(story())
    assert result == "done"
    assert received > 0
    assert buffered[0] < 2 * relay.MAX_WAITING


@pytest.mark.skipif(not hasattr(os, "fork"), reason="requires os.fork")
def test_requests_fail_after_the_listener_ends_even_if_its_fork_survives(tmp_path: Path) -> None:
    started = asyncio.Event()

    async def work(method: str, params: Mapping[str, Any], exchange: relay.Exchange) -> Any:
        if method == "hang":
            started.set()
            await asyncio.Event().wait()
        return "done"

    async def story() -> None:
        listener = relay.Listener(work, kind)
        address = await listener.start(tmp_path / "sockets")
        hanging = asyncio.create_task(relay.request(address, "hang", {}, {}))
        await started.wait()
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(write)
            # Wait until the test ends.
            os.read(read, 1)
            os._exit(0)
        os.close(read)
        try:
            assert await relay.request(address, "any", {}, {}) == "done"
            # Keep the file, as when the process is killed before it can remove it.
            os.rename(address, path := f"{address}.left")
            await listener.close()
            async with asyncio.timeout(10):
                with pytest.raises(relay.LostError):
                    await hanging
                # Lost, if the system still accepted the connection.
                with pytest.raises((relay.UnreachableError, relay.LostError)):
                    await relay.request(path, "any", {}, {})
        finally:
            os.close(write)
            await asyncio.to_thread(os.waitpid, child, 0)

    asyncio.run(story())
