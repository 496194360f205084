"""Tests of requests between processes over a Unix domain socket, where something is in the way."""

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


def test_a_process_that_has_too_many_callers_does_not_count_as_gone(tmp_path: Path) -> None:
    path = str(tmp_path / "busy.sock")
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as first:
        listening.bind(path)
        listening.listen(0)
        first.connect(path)
        with pytest.raises(relay.BusyError):
            asyncio.run(relay.request(path, "any", {}, {}))


def test_a_process_does_not_count_as_gone_where_the_caller_has_no_file_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(path: str) -> Any:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(asyncio, "open_unix_connection", refused)
    with pytest.raises(relay.BusyError):
        asyncio.run(relay.request(str(tmp_path / "any.sock"), "any", {}, {}))


def test_only_a_socket_is_removed_where_nobody_listens(tmp_path: Path) -> None:
    path = tmp_path / "precious"
    path.write_text("kept")
    with pytest.raises(relay.UnreachableError):
        asyncio.run(relay.request(str(path), "any", {}, {}))
    assert path.read_text() == "kept"


def test_what_a_caller_does_not_read_does_not_pile_up(tmp_path: Path) -> None:
    buffered = []

    async def work(method: str, params: Mapping[str, Any], exchange: relay.Exchange) -> Any:
        for _ in range(500):
            exchange.tell("progress", "x" * 100_000)
        buffered.append(exchange.waiting)
        return "done"

    async def story() -> Any:
        listener = relay.Listener(work, kind)
        address = await listener.start(tmp_path / "sockets")
        told = 0

        async def heard(data: Any) -> None:
            nonlocal told
            told += 1

        try:
            return await relay.request(address, "any", {}, {"progress": heard}), told
        finally:
            await listener.close()

    result, told = asyncio.run(story())
    assert result == "done"
    assert told > 0
    assert buffered[0] < 2 * relay.MAX_WAITING


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_nobody_waits_for_a_child_of_the_process_that_listened(tmp_path: Path) -> None:
    begun = asyncio.Event()

    async def work(method: str, params: Mapping[str, Any], exchange: relay.Exchange) -> Any:
        if method == "hang":
            begun.set()
            await asyncio.Event().wait()
        return "done"

    async def story() -> None:
        listener = relay.Listener(work, kind)
        address = await listener.start(tmp_path / "sockets")
        hanging = asyncio.create_task(relay.request(address, "hang", {}, {}))
        await begun.wait()
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(write)
            # Until the test is over.
            os.read(read, 1)
            os._exit(0)
        os.close(read)
        try:
            assert await relay.request(address, "any", {}, {}) == "done"
            # As where the process is killed, so that it does not remove the file.
            os.rename(address, path := f"{address}.left")
            await listener.close()
            async with asyncio.timeout(10):
                with pytest.raises(relay.LostError):
                    await hanging
                with pytest.raises(relay.UnreachableError):
                    await relay.request(path, "any", {}, {})
        finally:
            os.close(write)
            await asyncio.to_thread(os.waitpid, child, 0)

    asyncio.run(story())
