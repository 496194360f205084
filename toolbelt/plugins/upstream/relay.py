"""Requests from one process to another on the same host, over a Unix domain socket.

A request has a method and parameters. The process that works on it may send events to the caller, and wait for
answers to them: progress, whether the request may run, a question to a user. Each request has its own connection, and
closing it cancels the request.

A message is its length in four bytes, and JSON of that length. The first one is the request, ``{"method", "params"}``.
The responses are events, ``{"event", "id", "data"}``, and finally ``{"result"}`` or ``{"error": {"kind", "message"}}``.
An event with an id is answered with ``{"answer", "value"}`` or ``{"answer", "refused": true}``, and cancelled with
``{"cancel"}``.

Any process that can open the socket can use it, so it is in a directory that only the user can access.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import itertools
import json
import os
import secrets
import stat
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import structlog

MAX_BYTES = 64 * 1024 * 1024
# How many bytes may wait for a caller that does not read; further events are dropped.
MAX_WAITING = 1024 * 1024
# The maximum length of a socket's path on every platform.
MAX_PATH = 103
BACKLOG = 1024

_log = structlog.get_logger(__name__)
# The device and inode of each socket that was opened here, by descriptor: the descriptor may belong to another file by
# now.
_sockets: dict[int, tuple[int, int]] = {}


class UnreachableError(Exception):
    """No process listens at the address: it has ended."""


class BusyError(Exception):
    """The process could not be asked, but may be running: it has too many callers, or this one too many open files."""


class LostError(Exception):
    """The process ended before it answered."""


class RefusedError(Exception):
    """The caller refused an event: the request may not continue."""


class RemoteError(Exception):
    """The process answered with an error of this ``kind``, which both sides know."""

    def __init__(self, kind: str, message: str) -> None:
        self.kind, self.message = kind, message
        super().__init__(message)


class Exchange:
    """One request, in the process that works on it."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._ids = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}

    @property
    def waiting(self) -> int:
        """Return the number of bytes that the caller has not read."""
        size: int = self._writer.transport.get_write_buffer_size()
        return size

    def send_event(self, event: str, data: Any = None) -> None:
        """Send an event without an answer, unless the caller does not read."""
        if self.waiting < MAX_WAITING:
            _write(self._writer, {"event": event, "data": data})

    async def ask(self, event: str, data: Any = None) -> Any:
        """Send an event, and return the answer. Raise RefusedError if it is refused."""
        number = next(self._ids)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        try:
            _write(self._writer, {"event": event, "id": number, "data": data})
            return await answer
        except asyncio.CancelledError:
            _write(self._writer, {"cancel": number})
            raise
        finally:
            del self._answers[number]

    def answered(self, message: Mapping[str, Any]) -> None:
        """Process the answer to an event."""
        answer = self._answers.get(message.get("answer", 0))
        if answer is None or answer.done():
            return
        if message.get("refused"):
            answer.set_exception(RefusedError())
        else:
            answer.set_result(message.get("value"))


# Works on a request and returns its result. ``Kind`` returns the kind and the message of an error that it raises.
Work = Callable[[str, Mapping[str, Any], Exchange], Awaitable[Any]]
Kind = Callable[[Exception], tuple[str, str]]


class Listener:
    """The socket of this process, for one event loop. ``work`` answers its requests."""

    def __init__(self, work: Work, kind: Kind) -> None:
        self._work, self._kind = work, kind
        self._server: asyncio.Task[asyncio.Server] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.address = ""

    async def start(self, directory: Path) -> str:
        """Listen, unless it already does, and return the address. Raise OSError if that fails."""
        if self._server is None or (self._server.done() and self._server.exception()):
            path = str(private(directory) / f"{secrets.token_hex(8)}.sock")
            if len(path) > MAX_PATH:
                raise OSError(f"{path} is too long for a socket: set TOOLBELT_SOCKET_DIR to a shorter path.")
            # In an empty context, because later requests do not belong to the first caller's.
            self._server = asyncio.get_running_loop().create_task(
                self._listen(path), context=contextvars.Context()
            )
        await asyncio.shield(self._server)
        return self.address

    async def close(self) -> None:
        """Stop listening, and cancel the running requests."""
        if self._server is not None:
            with contextlib.suppress(OSError):
                await self._server
        self.stop_listening()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1)

    def stop_listening(self) -> None:
        """Close the socket immediately, so that callers learn that no process answers."""
        if self._server is None or not self._server.done():
            return
        if not self._server.cancelled() and self._server.exception() is None:
            self._server.result().close()
        forget(self.address)

    async def _listen(self, path: str) -> asyncio.Server:
        server = await asyncio.start_unix_server(self._serve, path, backlog=BACKLOG)
        _note(*server.sockets)
        os.chmod(path, stat.S_IRUSR | stat.S_IWUSR)
        self.address = path
        return server

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (task := asyncio.current_task()) is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        _note(writer.get_extra_info("socket"))
        try:
            request = await _read(reader)
            exchange = Exchange(writer)
            work = asyncio.ensure_future(self._answer(request, exchange, writer))
            receiving = asyncio.ensure_future(_receive_answers(reader, exchange))
            try:
                # Once the caller has disconnected, it needs no answer.
                await asyncio.wait({work, receiving}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task_ in (work, receiving):
                    task_.cancel()
                await asyncio.wait({work, receiving})
        except (OSError, EOFError, ValueError):
            pass
        except asyncio.CancelledError:
            # The process ends. If this were raised, asyncio would log it.
            pass
        finally:
            writer.close()

    async def _answer(
        self, request: Mapping[str, Any], exchange: Exchange, writer: asyncio.StreamWriter
    ) -> None:
        try:
            answer = {"result": await self._work(request["method"], request["params"], exchange)}
        except Exception as error:
            kind, message = self._kind(error)
            answer = {"error": {"kind": kind, "message": message}}
        _write(writer, answer)
        await writer.drain()


async def _receive_answers(reader: asyncio.StreamReader, exchange: Exchange) -> None:
    with contextlib.suppress(OSError, EOFError, ValueError):
        while True:
            exchange.answered(await _read(reader))


Answers = Mapping[str, Callable[[Any], Awaitable[Any]]]


async def request(address: str, method: str, params: Mapping[str, Any], events: Answers) -> Any:
    """Return the result of a request to the process at the address. Cancelling this cancels the request there.

    ``events`` answer the events of the request; if one of them raises, the event is refused. Raise UnreachableError if
    the process has ended, BusyError if it cannot be asked, LostError if it ends meanwhile, and RemoteError.
    """
    try:
        reader, writer = await asyncio.open_unix_connection(address)
    except (ConnectionRefusedError, FileNotFoundError) as error:
        # A killed process leaves its socket behind.
        forget(address)
        raise UnreachableError(address) from error
    except OSError as error:
        raise BusyError(str(error)) from error
    try:
        # asyncio considers a socket connected even if it is not, because too many callers wait.
        writer.get_extra_info("socket").getpeername()
    except OSError as error:
        writer.close()
        raise BusyError(str(error)) from error
    _note(writer.get_extra_info("socket"))
    answering: dict[int, asyncio.Task[None]] = {}
    try:
        _write(writer, {"method": method, "params": params})
        while True:
            message = await _read(reader)
            if "result" in message:
                return message["result"]
            if "error" in message:
                raise RemoteError(message["error"]["kind"], message["error"]["message"])
            if (number := message.get("cancel")) in answering:
                answering[number].cancel()
            elif "id" in message:
                task = asyncio.ensure_future(_answered(events, message, writer))
                answering[message["id"]] = task
            elif "event" in message:
                await events[message["event"]](message["data"])
    except (OSError, EOFError, ValueError) as error:
        raise LostError(address) from error
    finally:
        for task in answering.values():
            task.cancel()
        writer.close()


async def _answered(events: Answers, message: Mapping[str, Any], writer: asyncio.StreamWriter) -> None:
    """Answer an event. The reason of a refusal is not sent."""
    answer: dict[str, Any] = {"answer": message["id"]}
    try:
        answer["value"] = await events[message["event"]](message["data"])
    except Exception:
        answer["refused"] = True
    _write(writer, answer)


def private(directory: Path) -> Path:
    """Return the directory, created for this user alone if missing. Raise OSError if others can access it."""
    with contextlib.suppress(FileExistsError):
        directory.mkdir(mode=0o700, parents=True)
    status = directory.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise OSError(f"{directory} must be a directory that belongs to the user alone (mode 0700).")
    return directory


def forget(address: str) -> None:
    """Remove a socket that no process listens at."""
    with contextlib.suppress(OSError):
        if stat.S_ISSOCK(os.lstat(address).st_mode):
            os.unlink(address)


def _write(writer: asyncio.StreamWriter, message: Mapping[str, Any]) -> None:
    """Write a message, unless the connection is closing."""
    if not writer.is_closing():
        data = json.dumps(message, separators=(",", ":")).encode()
        writer.write(len(data).to_bytes(4, "big") + data)


async def _read(reader: asyncio.StreamReader) -> Mapping[str, Any]:
    """Read a message. Raise EOFError, OSError, or ValueError if it is not valid."""
    size = int.from_bytes(await reader.readexactly(4), "big")
    if size > MAX_BYTES:
        raise ValueError("The message is too large.")
    message: Mapping[str, Any] = json.loads(await reader.readexactly(size))
    return message


def _note(*opened: Any) -> None:
    """Note sockets that a child process must not inherit."""
    for opened_socket in opened:
        status = os.fstat(opened_socket.fileno())
        _sockets[opened_socket.fileno()] = status.st_dev, status.st_ino


def _close_inherited_sockets() -> None:
    """Close the parent's sockets in a child process; otherwise, peers would not notice when the parent closes them.

    Their descriptors stay in use, because the copy of the parent's event loop in the child may close them again.
    """
    null = os.open(os.devnull, os.O_RDWR)
    for number, identity in _sockets.items():
        with contextlib.suppress(OSError):
            status = os.fstat(number)
            if (status.st_dev, status.st_ino) == identity:
                os.dup2(null, number, inheritable=False)
    os.close(null)
    _sockets.clear()


os.register_at_fork(after_in_child=_close_inherited_sockets)
