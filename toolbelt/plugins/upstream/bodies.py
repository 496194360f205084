"""The bodies of a server's answers over HTTP: limited in size, and read to what the client needs to go on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Protocol

import httpx2

from toolbelt.plugins.upstream import answers, last_check

# The maximum size of an answer, also of a process.
MAX_BYTES = 32 * 1024 * 1024
# How long and how large the rest of a stream of events may be that the client does not read.
REST_SECONDS, MAX_REST_BYTES = 1.0, 64 * 1024


class Ask(Protocol):
    """Finds out, and notes, whether the session of a call is lost; ``has_run``: the call itself has run."""

    async def __call__(self, *, has_run: bool) -> None: ...


class TooLargeError(httpx2.StreamError):
    """The answer is larger than what is read: an error of this request alone, unlike errors of the network."""


class Limited(httpx2.AsyncByteStream):
    """The body of an answer, up to the maximum size."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        try:
            async for chunk in self._inner:
                size += len(chunk)
                if size > MAX_BYTES:
                    raise TooLargeError(f"The server's answer has more than {MAX_BYTES} bytes.")
                yield chunk
        except httpx2.TransportError as error:
            raise explained(error) from error

    async def aclose(self) -> None:
        await self._inner.aclose()


class Answer(Limited):
    """The answer to a request."""

    def __init__(self, inner: Any, id_: Any, ask: Ask | None) -> None:
        super().__init__(inner)
        self._id, self._ask = id_, ask

    async def __aiter__(self) -> AsyncIterator[bytes]:
        body = b"".join([part async for part in super().__aiter__()])
        if self._ask is not None and answers.is_refusal(200, body):
            await self._ask(has_run=answers.is_result(body))
        yield answers.with_id(body, self._id)


class Events(httpx2.AsyncByteStream):
    """A stream of events, whose rest is read when it is closed: the client closes it with the answer, and a connection
    whose response was not read to its end cannot be used again.
    """

    def __init__(
        self,
        inner: Any,
        check: last_check.LastCheck | None = None,
        ask: Ask | None = None,
    ) -> None:
        self._inner, self._parts, self._check = inner, aiter(inner), check
        # What finds out whether the session is lost, and what of the stream was searched for the reason to ask.
        self._ask, self._head = ask, b""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for part in self._parts:
                await self._note(part)
                yield part
        except httpx2.TransportError as error:
            self._note_cut()
            raise explained(error) from error
        # The client stops reading at the answer, so what it reads to the end has none.
        self._note_cut()

    async def _note(self, part: bytes) -> None:
        """Ask, once, whether the session is lost if the beginning of the stream says so."""
        if self._ask is None:
            return
        self._head += part
        if len(self._head) > answers.MAX_REFUSAL_BYTES:
            self._ask = None
        elif answers.is_refusal(200, self._head):
            ask, self._ask = self._ask, None
            await ask(has_run=answers.is_result(self._head))

    def _note_cut(self) -> None:
        if self._check is not None:
            self._check.is_cut = True

    async def aclose(self) -> None:
        size = 0
        try:
            # After an error or a cancellation, there is no rest.
            async with asyncio.timeout(REST_SECONDS):
                async for part in self._parts:
                    size += len(part)
                    if size > MAX_REST_BYTES:
                        break
        except (TimeoutError, httpx2.TransportError):
            pass
        finally:
            await self._inner.aclose()


def first_cause(error: BaseException) -> BaseException:
    """Return what the system said: the HTTP client only says that all attempts to connect failed."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return error


def explained(error: Exception) -> Exception:
    """Return the error, with what the system said if the HTTP client says nothing."""
    if str(error) or not isinstance(error, httpx2.TransportError):
        return error
    late = "The server took too long." if isinstance(error, httpx2.TimeoutException) else ""
    return type(error)(str(first_cause(error)) or late)
