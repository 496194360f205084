"""Communication with a process over its pipes, whatever it writes. (MCP's stdio transport: one message per line)

The official client's transport buffers a line until it ends, on the loop that all servers share. This transport limits
the length of a line, skips lines that are not messages, and gives up on a process that writes too much of either. Like
the official transport, it closes the input and waits. It then stops the process's whole group, even if the process
itself has ended and left others behind.

The module requires ``mcp`` and a POSIX system.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from typing import IO, cast

import anyio
import mcp_types
from anyio.abc import ByteReceiveStream, ByteSendStream, Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.os.posix import utilities
from mcp.shared import message

from toolbelt.plugins import orphans
from toolbelt.plugins.upstream import lenient

# How messages begin in another framing, whose messages end without a line break.
_HEADER = re.compile(rb"Content-Length: *\d+\r?$", re.IGNORECASE)
# How many consecutive lines may be no messages, such as what a program prints while it starts.
MAX_STRAY_LINES = 1_000
# How long a process has to end after its input is closed, and then after it is asked to; in seconds.
EXIT_SECONDS = 2.0

# The errors of a stream that has ended or was closed.
_STREAM_ENDED = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)

Sent = message.SessionMessage
Received = message.SessionMessage | Exception


class TooMuchError(Exception):
    """The process writes what cannot be read. The message explains it to operators."""


@contextlib.asynccontextmanager
async def opened(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | None,
    stderr: IO[str],
    max_bytes: int,
    give_up: Callable[[TooMuchError], None],
    on_stray: Callable[[bytes], None] = lambda line: None,
    on_exit: Callable[[int], None] = lambda code: None,
) -> AsyncIterator[tuple[MemoryObjectReceiveStream[Received], MemoryObjectSendStream[Sent]]]:
    """Start the command and yield the streams of messages from it and to it. At the end, the process is gone.

    A line of more than ``max_bytes`` ends the stream, and ``give_up`` is called with the reason. ``on_stray`` is called
    with each line that is no message, and ``on_exit`` with the exit code if the process ends first. Raise OSError if
    the command cannot be started.
    """
    process = await anyio.open_process(
        list(command), env=dict(env), cwd=cwd, stderr=stderr, start_new_session=True
    )
    # Both are pipes by default.
    stdin, stdout = cast("ByteSendStream", process.stdin), cast("ByteReceiveStream", process.stdout)
    into, read = anyio.create_memory_object_stream[Received](0)
    write, outof = anyio.create_memory_object_stream[Sent](0)
    with orphans.killed_with_parent(process.pid):
        async with anyio.create_task_group() as tasks:
            waiting: dict[lenient.Id, None] = {}
            tasks.start_soon(_read, stdout, into, max_bytes, give_up, on_stray, waiting)
            tasks.start_soon(_write, stdin, outof, into, waiting)
            try:
                yield read, write
            finally:
                has_ended = not read.statistics().open_send_streams
                read.close()
                write.close()
                # Even if cancelled, it leaves no process behind; all its waits are limited.
                with anyio.CancelScope(shield=True):
                    await _end(process, stdin, stdout, on_exit if has_ended else lambda code: None)
                tasks.cancel_scope.cancel()


class Lines:
    """Assembles lines from pieces of data. Each byte is read once."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._size = 0

    def of(self, piece: bytes) -> list[bytes]:
        """Return the lines that end in this piece. Raise TooMuchError if a line is too long, finished or not."""
        *line_ends, remainder = piece.split(b"\n")
        lines = []
        for line_end in line_ends:
            self._add(line_end)
            lines.append(b"".join(self._parts))
            self._parts.clear()
            self._size = 0
        if remainder:
            self._add(remainder)
        return lines

    def _add(self, fragment: bytes) -> None:
        self._size += len(fragment)
        if self._size > self._max_bytes:
            self._parts.clear()
            raise TooMuchError(f"The server wrote more than {self._max_bytes} bytes without ending the line.")
        self._parts.append(fragment)


async def _read(
    stdout: ByteReceiveStream,
    into: MemoryObjectSendStream[Received],
    max_bytes: int,
    give_up: Callable[[TooMuchError], None],
    on_stray: Callable[[bytes], None],
    waiting: dict[lenient.Id, None],
) -> None:
    """Send on what the process writes. ``waiting`` are the ids of the requests that have no answer yet."""
    try:
        with into, contextlib.suppress(*_STREAM_ENDED):
            lines, joined, strays = Lines(max_bytes), lenient.Joined(max_bytes), 0
            async for piece in stdout:
                for part in lines.of(piece):
                    if (line := joined.of(part)) is None:
                        continue
                    if line.strip() and (messages := _messages(line, waiting)):
                        strays = 0
                        for message_ in messages:
                            lenient.answered(message_.message, waiting)
                            await into.send(message_)
                    elif _HEADER.match(line):
                        raise TooMuchError(
                            "The server writes its messages with headers (Content-Length), as language servers do: MCP"
                            " requires one message per line."
                        )
                    else:
                        # Empty lines count as well: a process that writes nothing else would be read forever.
                        strays += 1
                        on_stray(line + b"\n")
                    if strays > MAX_STRAY_LINES:
                        raise TooMuchError(
                            f"The server wrote {MAX_STRAY_LINES} lines in a row that are not MCP messages."
                        )
    except TooMuchError as error:
        give_up(error)
    finally:
        # Its output is discarded: a process that waits to write would not notice that its input is closed.
        with anyio.CancelScope(shield=True), contextlib.suppress(*_STREAM_ENDED):
            while True:
                await stdout.receive()


def _messages(line: bytes, waiting: Collection[lenient.Id]) -> list[Sent] | None:
    """Return the messages of a line, or None if it is none."""
    try:
        strict = mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        return lenient.messages(line, waiting)
    if isinstance(strict, mcp_types.JSONRPCError) and strict.id is None:
        return lenient.messages(line, waiting)
    return [Sent(strict)]


async def _write(
    stdin: ByteSendStream,
    outof: MemoryObjectReceiveStream[Sent],
    into: MemoryObjectSendStream[Received],
    waiting: dict[lenient.Id, None],
) -> None:
    try:
        with outof:
            async for sent in outof:
                lenient.asked(sent.message, waiting)
                text = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
                await stdin.send(text.encode() + b"\n")
    except _STREAM_ENDED:
        # The process may keep running without answering, so the waiting requests are ended.
        into.close()


async def _end(
    process: Process, stdin: ByteSendStream, stdout: ByteReceiveStream, on_exit: Callable[[int], None]
) -> None:
    """Wait for the process to end, or end it; processes that it started are ended in any case."""
    with contextlib.suppress(*_STREAM_ENDED):
        await stdin.aclose()
    if await _is_gone(process):
        on_exit(cast("int", process.returncode))
    await utilities.terminate_posix_process_tree(process, EXIT_SECONDS)
    if await _is_gone(process):
        await process.aclose()
    else:
        await stdout.aclose()


async def _is_gone(process: Process) -> bool:
    """Wait for the process to end, and return whether it has. Its pipes may stay open in its children."""
    with anyio.move_on_after(EXIT_SECONDS):
        while process.returncode is None:  # noqa: ASYNC110 (there is no event of its end without that of its pipes)
            await anyio.sleep(0.01)
    return process.returncode is not None
