"""How is a process spoken with over its pipes, whatever it writes? (MCP's stdio transport: one message a line)

The official client's own transport keeps a line until it ends, however long that takes, on the loop that all servers
share. This one reads as much of a line as is bearable, passes over what is no message, and gives up on a process that
writes too much of either. Like the official one it closes the input and waits. Then it ends the process's whole group,
also where the process itself has ended and left others behind.

It needs ``mcp`` and a POSIX system when it is imported.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import IO, cast

import anyio
import mcp_types
from anyio.abc import ByteReceiveStream, ByteSendStream, Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.os.posix import utilities
from mcp.shared import message

from toolbelt.plugins import orphans

# So many lines, one after the other, may be no message: what a program prints while it starts.
MOST_STRAY_LINES = 1_000
# How long a process has to end by itself when its input is closed, and then when it is asked to; in seconds.
LEAVE_SECONDS = 2.0

# How a stream says that it is at its end, or was closed.
_OVER = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)

Sent = message.SessionMessage
Received = message.SessionMessage | Exception


class TooMuch(Exception):
    """The process writes what nobody can read. The message says what, for operators."""


@contextlib.asynccontextmanager
async def opened(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | None,
    stderr: IO[str],
    most_bytes: int,
    wrong: Callable[[TooMuch], None],
) -> AsyncIterator[tuple[MemoryObjectReceiveStream[Received], MemoryObjectSendStream[Sent]]]:
    """Start the command and give the streams of messages from it and to it; at the end it is gone.

    A line of more than ``most_bytes`` ends the stream, and ``wrong`` hears why. Raises OSError where the command
    cannot be started.
    """
    process = await anyio.open_process(
        list(command), env=dict(env), cwd=cwd, stderr=stderr, start_new_session=True
    )
    # Both are pipes, unless they were asked to be something else.
    stdin, stdout = cast("ByteSendStream", process.stdin), cast("ByteReceiveStream", process.stdout)
    into, read = anyio.create_memory_object_stream[Received](0)
    write, outof = anyio.create_memory_object_stream[Sent](0)
    with orphans.ended_with_this_process(process.pid):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_read, stdout, into, most_bytes, wrong)
            tasks.start_soon(_write, stdin, outof, into)
            try:
                yield read, write
            finally:
                read.close()
                write.close()
                # Even one who was told to stop at once leaves no process behind; each wait in it has an end.
                with anyio.CancelScope(shield=True):
                    await _end(process, stdin, stdout)
                tasks.cancel_scope.cancel()


class Lines:
    """Puts lines together from what comes, piece by piece, each byte looked at once."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._parts: list[bytes] = []
        self._size = 0

    def of(self, piece: bytes) -> list[bytes]:
        """Give the lines that end in this piece. Raises TooMuch where one is too long, whether or not it ends."""
        *ended, rest = piece.split(b"\n")
        lines = []
        for part in ended:
            self._add(part)
            lines.append(b"".join(self._parts))
            self._parts.clear()
            self._size = 0
        if rest:
            self._add(rest)
        return lines

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._most:
            self._parts.clear()
            raise TooMuch(f"The server wrote more than {self._most} bytes without ending the line.")
        self._parts.append(part)


async def _read(
    stdout: ByteReceiveStream,
    into: MemoryObjectSendStream[Received],
    most_bytes: int,
    wrong: Callable[[TooMuch], None],
) -> None:
    try:
        with into, contextlib.suppress(*_OVER):
            lines, strays = Lines(most_bytes), 0
            async for piece in stdout:
                for line in lines.of(piece):
                    if line.strip() and (found := _message(line)) is not None:
                        strays = 0
                        await into.send(found)
                    else:
                        # An empty line, too: one that writes nothing else would be read forever.
                        strays += 1
                    if strays > MOST_STRAY_LINES:
                        raise TooMuch(
                            f"The server wrote {MOST_STRAY_LINES} lines in a row that are no messages of MCP."
                        )
    except TooMuch as error:
        wrong(error)
    finally:
        # Nobody reads any more, but a process that waits to write would not come to see that its input is closed.
        with anyio.CancelScope(shield=True), contextlib.suppress(*_OVER):
            while True:
                await stdout.receive()


def _message(line: bytes) -> Sent | None:
    try:
        return Sent(mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        return None


async def _write(
    stdin: ByteSendStream, outof: MemoryObjectReceiveStream[Sent], into: MemoryObjectSendStream[Received]
) -> None:
    try:
        with outof:
            async for sent in outof:
                text = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
                await stdin.send(text.encode() + b"\n")
    except _OVER:
        # It may live on and say nothing any more: whoever waits for an answer learns that there will be none.
        into.close()


async def _end(process: Process, stdin: ByteSendStream, stdout: ByteReceiveStream) -> None:
    """Let the process end by itself, or end it; what it has started and left behind is ended in any case."""
    with contextlib.suppress(*_OVER):
        await stdin.aclose()
    await _is_gone(process)
    await utilities.terminate_posix_process_tree(process, LEAVE_SECONDS)
    if await _is_gone(process):
        await process.aclose()
    else:
        await stdout.aclose()


async def _is_gone(process: Process) -> bool:
    """Wait for its end, and say whether it came. Not for that of its pipes: a child of its may hold on to them."""
    with anyio.move_on_after(LEAVE_SECONDS):
        while process.returncode is None:  # noqa: ASYNC110 (there is no event of its end without that of its pipes)
            await anyio.sleep(0.01)
    return process.returncode is not None
