"""Tests that messages to a process are lines, and that the process is gone at the end, whatever it does."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import IO, Any

import anyio
import mcp_types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared import message

from tests.plugins import killing
from toolbelt.plugins.upstream import pipes

pytestmark = pytest.mark.slow


@given(
    lines=st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line)),
    cuts=st.lists(st.integers(0, 50)),
)
def test_lines_are_the_same_however_they_were_cut_on_their_way(lines: list[bytes], cuts: list[int]) -> None:
    whole = b"".join(line + b"\n" for line in lines) + b"and a beginning"
    reading, found, start = pipes.Lines(100), [], 0
    for cut in [*cuts, len(whole)]:
        found += reading.of(whole[start : start + cut])
        start += cut

    assert found == lines


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_line_is_read_up_to_a_size_whether_or_not_it_ends(end: bytes) -> None:
    reading = pipes.Lines(10)

    assert reading.of(b"0123456789\n01234") == [b"0123456789"]
    with pytest.raises(pipes.TooMuchError, match="more than 10 bytes"):
        reading.of(b"567890" + end)


PING = mcp_types.JSONRPCRequest(jsonrpc="2.0", id=1, method="ping")
# Answers each line with it, and says on a file when it has come to its end.
ECHO = """
import pathlib, sys
print("Starting up, please wait", flush=True)
for line in sys.stdin:
    print(line, end="", flush=True)
pathlib.Path(sys.argv[1]).touch()
"""
# Starts another process, which holds on to its pipes, and takes no notice of the end of its input.
STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print('{"jsonrpc": "2.0", "method": "%d"}' % child.pid, flush=True)
time.sleep(60)
"""
Story = Callable[[Any, Any], Awaitable[None]]


def _nothing(error: pipes.TooMuchError) -> None:
    pytest.fail(str(error))


def run(
    program: str, argument: Path, story: Story, give_up: Callable[[pipes.TooMuchError], None] = _nothing
) -> None:
    async def told(errors: IO[str]) -> None:
        streams = pipes.opened(
            [sys.executable, "-c", program, str(argument)],
            env={},
            cwd=None,
            stderr=errors,
            most_bytes=1_000,
            give_up=give_up,
        )
        async with streams as (read, write):
            await story(read, write)

    with Path(os.devnull).open("w") as errors:
        asyncio.run(told(errors))


def test_messages_go_there_and_back_and_what_is_none_is_passed_over(tmp_path: Path) -> None:
    async def story(read: Any, write: Any) -> None:
        await write.send(message.SessionMessage(PING))
        assert (await read.receive()).message == PING

    run(ECHO, tmp_path / "ended", story)

    assert (tmp_path / "ended").exists()


def test_a_process_that_writes_what_is_no_message_without_end_is_given_up(tmp_path: Path) -> None:
    said: list[pipes.TooMuchError] = []

    async def story(read: Any, write: Any) -> None:
        async with asyncio.timeout(20):
            with pytest.raises(anyio.EndOfStream):
                await read.receive()

    run("while True: print(flush=True)", tmp_path, story, said.append)

    assert "no messages of MCP" in str(said[0])


def test_a_process_that_will_not_go_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipes, "LEAVE_SECONDS", 0.1)
    children = []

    async def story(read: Any, write: Any) -> None:
        children.append((await read.receive()).message.method)

    run(STUBBORN, tmp_path, story)

    assert not killing.is_alive(int(children[0]))


# Ends when its input is closed, and leaves another process behind that holds on to none of its pipes.
LEAVING = """
import subprocess, sys
quiet = dict(stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], **quiet)
print('{"jsonrpc": "2.0", "method": "%d"}' % child.pid, flush=True)
sys.stdin.read() if sys.argv[1] == "waits" else None
"""


@pytest.mark.parametrize("how", ["waits", "leaves at once"])
def test_what_a_process_leaves_behind_that_ends_by_itself_is_ended(how: str) -> None:
    children = []

    async def story(read: Any, write: Any) -> None:
        children.append(int((await read.receive()).message.method))
        assert killing.is_alive(children[0])

    run(LEAVING, Path(how), story)

    assert killing.left_after(children, 1.0) == []


# Says which it is and which it has started, and then hangs.
HANGING = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print('{"jsonrpc": "2.0", "method": "%d %d"}' % (os.getpid(), child.pid), flush=True)
time.sleep(60)
"""
# Runs its argument, and prints the processes that run then.
CONNECTED = """
import asyncio, os, sys
from toolbelt.plugins.upstream import pipes

async def connected():
    command = [sys.executable, "-c", sys.argv[1]]
    with open(os.devnull, "w") as errors:
        streams = pipes.opened(command, env={}, cwd=None, stderr=errors, most_bytes=1_000, give_up=print)
        async with streams as (read, _):
            print((await read.receive()).message.method, flush=True)
            await asyncio.sleep(300)

asyncio.run(connected())
"""


def test_a_server_that_hangs_does_not_outlive_a_toolbelt_that_is_killed() -> None:
    assert killing.survivors(CONNECTED, HANGING) == []
