"""Tests that messages to a process are lines, and that the process always ends with its connection."""

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

from tests.plugins import process_kills
from toolbelt.plugins.upstream import pipes

pytestmark = pytest.mark.slow


@given(
    lines=st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line)),
    cuts=st.lists(st.integers(0, 50)),
)
def test_lines_are_read_correctly_however_the_data_is_split(lines: list[bytes], cuts: list[int]) -> None:
    whole = b"".join(line + b"\n" for line in lines) + b"and a beginning"
    reader, read, start = pipes.Lines(100), [], 0
    for cut in [*cuts, len(whole)]:
        read += reader.of(whole[start : start + cut])
        start += cut

    assert read == lines


@pytest.mark.parametrize(
    ("pieces", "lines"),
    [
        ([b'{"a":1}\r', b'{"b":2}\r'], [b'{"a":1}', b'{"b":2}']),
        ([b'{"a":', b'1}\r{"b"', b":2}\r\n"], [b'{"a":1}', b'{"b":2}']),
        ([b" 10%\r 20%\r\n"], [b" 10%\r 20%\r"]),
        ([b'{\r "a": 1\r}\r\n'], [b'{\r "a": 1\r}\r']),
    ],
)
def test_a_carriage_return_ends_a_line_only_between_messages(pieces: list[bytes], lines: list[bytes]) -> None:
    reader = pipes.Lines(100)
    assert [line for piece in pieces for line in reader.of(piece)] == lines


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_line_above_the_maximum_size_is_an_error_whether_or_not_it_ends(end: bytes) -> None:
    reader = pipes.Lines(10)

    assert reader.of(b"0123456789\n01234") == [b"0123456789"]
    with pytest.raises(pipes.TooMuchError, match="more than 10 bytes"):
        reader.of(b"567890" + end)


PING = mcp_types.JSONRPCRequest(jsonrpc="2.0", id=1, method="ping")
# Echoes each line, and creates a file at the end of its input.
ECHO = """
import pathlib, sys
print("Starting up, please wait", flush=True)
for line in sys.stdin:
    print(line, end="", flush=True)
pathlib.Path(sys.argv[1]).touch()
"""
# Starts another process, which keeps its pipes open, and ignores the end of its input.
STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print('{"jsonrpc": "2.0", "method": "%d"}' % child.pid, flush=True)
time.sleep(60)
"""
Story = Callable[[Any, Any], Awaitable[None]]


def _fail(error: pipes.TooMuchError) -> None:
    pytest.fail(str(error))


def run(
    program: str, argument: Path, story: Story, give_up: Callable[[pipes.TooMuchError], None] = _fail
) -> None:
    async def connect(errors: IO[str]) -> None:
        streams = pipes.opened(
            [sys.executable, "-c", program, str(argument)],
            env={},
            cwd=None,
            stderr=errors,
            max_bytes=1_000,
            give_up=give_up,
        )
        async with streams as (read, write):
            await story(read, write)

    with Path(os.devnull).open("w") as errors:
        asyncio.run(connect(errors))


def test_messages_are_exchanged_and_other_output_is_skipped(tmp_path: Path) -> None:
    async def story(read: Any, write: Any) -> None:
        await write.send(message.SessionMessage(PING))
        assert (await read.receive()).message == PING

    run(ECHO, tmp_path / "ended", story)

    assert (tmp_path / "ended").exists()


def test_a_process_that_never_stops_writing_other_output_is_given_up(tmp_path: Path) -> None:
    errors: list[pipes.TooMuchError] = []

    async def story(read: Any, write: Any) -> None:
        async with asyncio.timeout(20):
            with pytest.raises(anyio.EndOfStream):
                await read.receive()

    run("while True: print(flush=True)", tmp_path, story, errors.append)

    assert "not MCP messages" in str(errors[0])


def test_a_process_that_frames_messages_with_headers_is_given_up(tmp_path: Path) -> None:
    async def story(read: Any, write: Any) -> None:
        async with asyncio.timeout(20):
            with pytest.raises(anyio.EndOfStream):
                await read.receive()

    reasons: list[str] = []
    program = "print('Content-Length: 2\\r\\n\\r\\n{}', flush=True); input()"
    run(program, tmp_path, story, lambda error: reasons.append(str(error)))

    assert len(reasons) == 1
    assert "one message per line" in reasons[0]


def test_a_process_that_does_not_exit_is_killed_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipes, "EXIT_SECONDS", 0.1)
    children = []

    async def story(read: Any, write: Any) -> None:
        children.append((await read.receive()).message.method)

    run(STUBBORN, tmp_path, story)

    assert not process_kills.is_alive(int(children[0]))


# Ends when its input is closed, and leaves a process behind that has none of its pipes open.
LEAVING = """
import subprocess, sys
quiet = dict(stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], **quiet)
print('{"jsonrpc": "2.0", "method": "%d"}' % child.pid, flush=True)
sys.stdin.read() if sys.argv[1] == "waits" else None
"""


@pytest.mark.parametrize("how", ["waits", "leaves immediately"])
def test_children_left_behind_by_a_process_that_exits_are_killed(how: str) -> None:
    children = []

    async def story(read: Any, write: Any) -> None:
        children.append(int((await read.receive()).message.method))
        assert process_kills.is_alive(children[0])

    run(LEAVING, Path(how), story)

    assert process_kills.remaining_after(children, 1.0) == []


# Prints its process id and its child's, and then hangs.
HANGING = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print('{"jsonrpc": "2.0", "method": "%d %d"}' % (os.getpid(), child.pid), flush=True)
time.sleep(60)
"""
# Runs its argument, and prints the ids of the running processes.
CONNECTED = """
import asyncio, os, sys
from toolbelt.plugins.upstream import pipes

async def connected():
    command = [sys.executable, "-c", sys.argv[1]]
    with open(os.devnull, "w") as errors:
        streams = pipes.opened(command, env={}, cwd=None, stderr=errors, max_bytes=1_000, give_up=print)
        async with streams as (read, _):
            print((await read.receive()).message.method, flush=True)
            await asyncio.sleep(300)

asyncio.run(connected())
"""


def test_a_hanging_server_ends_when_its_toolbelt_process_is_killed() -> None:
    assert process_kills.survivors(CONNECTED, HANGING) == []
