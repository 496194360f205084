"""A live connection to a server, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from toolbelt.core import connections, errors
from toolbelt.core.imported import cleaning
from toolbelt.plugins import contract
from toolbelt.plugins.upstream import client_features, last_check, reasons, ring_buffer

if TYPE_CHECKING:
    import mcp

State = Literal["idle", "connecting", "open", "waiting", "closed"]

# The server rejects the credentials, or a proxy does not reach it: the next connection may succeed.
HTTP_UNAUTHORIZED = 401
_AWAY = frozenset({HTTP_UNAUTHORIZED, 403, 502, 503, 504})
_SIGN_IN = "It may want a sign-in: an operator can sign in on the server's page."


class UnreachableError(errors.ToolbeltError):
    """The server cannot be reached, or the connection ended before it answered. An operator or the server's owner can
    fix this.
    """

    code = "tool-unavailable"


class NotRunError(UnreachableError):
    """Nothing to fix: the server, perhaps restarted, was not reached, or no longer knows the session. The call has not
    run.
    """


class SignInNeededError(UnreachableError):
    """The server wants OAuth, and no one is signed in, or no longer. An operator can sign in."""


class ScopesNeededError(SignInNeededError):
    """The server wants more scopes for this request than the sign-in has. Others may succeed."""


class Tokens(Protocol):
    """The access token of a sign-in. The first two methods raise UnreachableError if there is none."""

    async def current(self) -> str:
        """Return a token that has not expired."""
        ...

    async def renewed(self, refused: str) -> str:
        """Return another token than this one, which the server refuses; the same one if it is new."""
        ...

    async def demanded(self, scopes: Sequence[str]) -> ScopesNeededError:
        """Note that the server demands these scopes, and return the error of the request."""
        ...


class ClosedError(UnreachableError):
    """Nothing to fix: Toolbelt closed the connection, because the process ends or the server has another one."""

    def __init__(self) -> None:
        super().__init__("The connection was closed.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The state of a connection. ``error`` is why the last one failed; ``pause`` the seconds until the next attempt."""

    state: State = "idle"
    protocol: str = ""
    server: str = ""
    error: str = ""
    stderr: str = ""
    pause: float = 0.0


@dataclass(slots=True, kw_only=True, eq=False)
class LiveConnection:
    """A connection over its whole life: opened, held and closed by one task, as the client requires.

    ``calls`` counts those that wait for an answer. A retired connection gets no new calls, and ends after the last
    answer. ``running_calls`` are these calls, with the features of their clients. ``failure`` is why the server was
    given up, ``has_begun`` whether the handshake has succeeded, and ``is_over`` whether its messages have ended.
    ``lists`` are the last answers to methods that list, as sent. ``output`` is what a process wrote that is no MCP, and
    ``exit_code`` that of one that ended on its own. ``is_lost``: the server no longer knows its session.
    ``subscribed`` are the resources whose updates it was asked for, up to 2025-11-25.
    """

    opened: asyncio.Future[mcp.Client]
    leave: asyncio.Event
    stderr: ring_buffer.RingBuffer = field(default_factory=ring_buffer.RingBuffer)
    output: ring_buffer.RingBuffer = field(default_factory=ring_buffer.RingBuffer)
    exit_code: int | None = None
    http_status: int = 0
    retry_after: str = ""
    client: mcp.Client | None = None
    task: asyncio.Task[None] | None = None
    failure: UnreachableError | None = None
    calls: int = 0
    is_retired: bool = False
    is_over: bool = False
    has_begun: bool = False
    has_session: bool = False
    is_lost: bool = False
    subscribed: set[str] = field(default_factory=set)
    running_calls: client_features.Calls = field(default_factory=client_features.Calls)
    lists: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def begin(cls) -> LiveConnection:
        """Create one, in the running event loop."""
        live = cls(opened=asyncio.get_running_loop().create_future(), leave=asyncio.Event())
        # Mark the exception as retrieved, in case nothing waits for it anymore.
        live.opened.add_done_callback(lambda opened: opened.cancelled() or opened.exception())
        return live

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        """Count a call while it waits for its answer."""
        self.calls += 1
        try:
            yield
        finally:
            self.calls -= 1
            if self.is_retired and not self.calls:
                self.leave.set()

    def at_hand(self) -> mcp.Client:
        """Return its client. Raise UnreachableError if it has ended."""
        if self.client is None:
            raise UnreachableError("The server has ended the connection.")
        return self.client

    def ended(self, task: asyncio.Task[None]) -> None:
        """End the waiting for it. A task that is cancelled before it begins does not do so itself."""
        if not self.opened.done():
            self.opened.set_exception(ClosedError())

    def give_up(self, reason: Exception) -> None:
        """Record why the server was given up."""
        self.failure = reason if isinstance(reason, UnreachableError) else UnreachableError(str(reason))

    def begin_again(self) -> None:
        """Forget why the first attempt to connect failed."""
        self.failure, self.exit_code, self.is_over = None, None, False
        self.http_status, self.retry_after = 0, ""

    def note_exit(self, code: int) -> None:
        """Record the exit code of a process that ended on its own."""
        self.exit_code = code

    def note_session(self) -> None:
        """Record that the server gave the id of a session: it may keep state for this connection."""
        self.has_session = True

    def note_status(self, status: int, retry_after: str = "") -> None:
        """Record the HTTP status of the server's last answer, and its Retry-After."""
        self.http_status, self.retry_after = status, retry_after

    def refusal(
        self, error: Any, settings: connections.Connection, last: last_check.LastCheck
    ) -> errors.ToolbeltError:
        """Return the error of a refused call: UnreachableError if the connection has ended, or the server's own.

        The client reports an ended connection, and an answer that is cut, with a code that servers use for errors of
        their own, so it is not the code that decides.
        """
        import mcp_types

        is_over = last.is_cut or self.is_over or self.leave.is_set()
        is_closed = is_over and error.code == mcp_types.CONNECTION_CLOSED
        if is_closed or last.status in _AWAY:
            return self.unreachable(error, settings, last)
        message = cleaning.text(reasons.message(error), reasons.MAX_LENGTH) or "The server refused the call."
        return contract.ToolError(reasons.of_status(last.status, last.retry_after, message))

    def unreachable(
        self,
        error: BaseException | None,
        settings: connections.Connection,
        last: last_check.LastCheck | None = None,
    ) -> UnreachableError:
        """Return the error of a connection that failed or ended; with ``last``, of that call."""
        status = last.status if last is not None else self.http_status
        is_unauthorized = (
            status == HTTP_UNAUTHORIZED and bool(settings.url) and not settings.has_authorization
        )
        reason = self.why(error, settings, last)
        if is_unauthorized and self.failure is None:
            reason = f"{reason} {_SIGN_IN}"
        if is_unauthorized or isinstance(self.failure, SignInNeededError):
            return SignInNeededError(reason)
        return UnreachableError(reason)

    def why(
        self,
        error: BaseException | None,
        settings: connections.Connection,
        last: last_check.LastCheck | None = None,
    ) -> str:
        """Return why it ended, for an operator; with ``last``, why that call failed."""
        # Other calls may have been answered meanwhile.
        answered = (
            (last.status, last.retry_after) if last is not None else (self.http_status, self.retry_after)
        )
        return reasons.describe(
            self.failure or error,
            settings,
            http_status=answered[0],
            retry_after=answered[1],
            exit_code=self.exit_code,
            last=self.stderr.last() or (self.output.last() if self.exit_code is not None else ""),
        )
