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
from anyio.abc import ByteReceiveStream, ByteSendStream, Process, TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.os.posix import utilities
from mcp.shared import message

from toolbelt.plugins import orphans
from toolbelt.plugins.upstream import lenient

# How messages begin in another framing, whose messages end without a line break.
_HEADER = re.compile(rb"Content-Length: *\d+\r?$", re.IGNORECASE)
# How many consecutive lines may be no messages, such as what a program prints while it starts.
MAX_STRAY_LINES = 1_000
# How long an answer is waited for after a line that ends with one: a server may log what it is about to write.
GLUED_SECONDS = 1.0
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
            reader = _Reader(into, max_bytes, on_stray, waiting, tasks)
            tasks.start_soon(reader.read, stdout, give_up)
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
    """Assembles lines from pieces of data. Each byte is read once.

    A carriage return ends a line only between messages: some servers write no line breaks.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._size = 0
        # Whether the unfinished line was found to be no messages.
        self._is_known = False

    def of(self, piece: bytes) -> list[bytes]:
        """Return the lines that end in this piece. Raise TooMuchError if a line is too long, finished or not."""
        *line_ends, remainder = piece.split(b"\n")
        lines = []
        for line_end in line_ends:
            self._add(line_end)
            whole = self._taken()
            lines += _between_returns(whole) or [whole]
        if remainder:
            self._add(remainder)
            if remainder.endswith(b"\r") and not self._is_known:
                whole = b"".join(self._parts)
                self._is_known = True
                if messages := _between_returns(whole):
                    self._taken()
                    lines += messages
        return lines

    def _add(self, fragment: bytes) -> None:
        self._size += len(fragment)
        if self._size > self._max_bytes:
            self._parts.clear()
            raise TooMuchError(f"The server wrote more than {self._max_bytes} bytes without ending the line.")
        self._parts.append(fragment)

    def _taken(self) -> bytes:
        whole = b"".join(self._parts)
        self._parts, self._size, self._is_known = [], 0, False
        return whole


def _between_returns(line: bytes) -> list[bytes]:
    """Return the JSON objects that carriage returns end in this line; empty if it has none, or anything else."""
    parts = [part for part in line.split(b"\r") if part.strip()] if b"\r" in line else []
    return parts if all(part.startswith(b'{"') and part.rstrip().endswith(b"}") for part in parts) else []


class _Reader:
    """Sends on what a process writes. ``waiting`` are the ids of the requests that have no answer yet."""

    def __init__(
        self,
        into: MemoryObjectSendStream[Received],
        max_bytes: int,
        on_stray: Callable[[bytes], None],
        waiting: dict[lenient.Id, None],
        tasks: TaskGroup,
    ) -> None:
        self._into, self._on_stray, self._waiting, self._tasks = into, on_stray, waiting, tasks
        self._lines, self._joined = Lines(max_bytes), lenient.Joined(max_bytes)
        self._strays = 0

    async def read(self, stdout: ByteReceiveStream, give_up: Callable[[TooMuchError], None]) -> None:
        """Read until the output ends, or is too much, of which ``give_up`` is called with the reason."""
        try:
            with self._into, contextlib.suppress(*_STREAM_ENDED):
                async for piece in stdout:
                    for part in self._lines.of(piece):
                        if (line := self._joined.of(part)) is not None:
                            await self._line(line)
        except TooMuchError as error:
            give_up(error)
        finally:
            # Its output is discarded: a process that waits to write would not notice that its input is closed.
            with anyio.CancelScope(shield=True), contextlib.suppress(*_STREAM_ENDED):
                while True:
                    await stdout.receive()

    async def _line(self, line: bytes) -> None:
        if line.strip() and (messages := _messages(line, self._waiting)):
            self._strays = 0
            for message_ in messages:
                lenient.answered(message_.message, self._waiting)
                await self._into.send(message_)
            return
        if _HEADER.match(line):
            raise TooMuchError(
                "The server writes its messages with headers (Content-Length), as language servers do: MCP requires one"
                " message per line."
            )
        # Empty lines count as well: a process that writes nothing else would be read forever.
        self._strays += 1
        self._on_stray(line + b"\n")
        if self._strays > MAX_STRAY_LINES:
            raise TooMuchError(
                f"The server wrote {MAX_STRAY_LINES} lines in a row that are not MCP messages."
            )
        if (id_ := lenient.glued(line, self._waiting)) is not None:
            self._tasks.start_soon(self._fail_unanswered, id_)

    async def _fail_unanswered(self, id_: lenient.Id) -> None:
        """Answer a request with an error if its answer seems to be glued to something else, and no other one comes."""
        await anyio.sleep(GLUED_SECONDS)
        if id_ in self._waiting:
            failed = lenient.not_read(id_)
            lenient.answered(failed.message, self._waiting)
            with contextlib.suppress(*_STREAM_ENDED):
                await self._into.send(failed)


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
