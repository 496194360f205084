"""How does one connection to a server live, and how does it end?"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from toolbelt.core import connections, errors
from toolbelt.plugins import contract
from toolbelt.plugins.upstream import cleaning, reasons, tail

if TYPE_CHECKING:
    import mcp

State = Literal["idle", "connecting", "open", "waiting", "closed"]

# It does not know us, or something in front of it does not reach it: with the next connection that may be otherwise.
_AWAY = frozenset({401, 403, 502, 503, 504})


class Unreachable(errors.ToolbeltError):
    """The operator's to put right, or the server's owner's: it cannot be reached, or went away before it answered."""

    code = "tool-unavailable"


class SessionLost(Unreachable):
    """Nobody's to put right: the server, restarted perhaps, no longer knows the session. It has run nothing."""


class Closed(Unreachable):
    """Nobody's to put right: the connection was ended on this side, as the process ends or the server has another."""

    def __init__(self) -> None:
        super().__init__("The connection was closed.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How a connection is now. ``error`` is why the last one failed; ``pause`` how long there is none, in seconds."""

    state: State = "idle"
    protocol: str = ""
    server: str = ""
    error: str = ""
    stderr: str = ""
    pause: float = 0.0


@dataclass(slots=True, kw_only=True, eq=False)
class Life:
    """One connection from its beginning to its end: made and held and closed by one task, as the client wants it.

    ``calls`` counts those that wait for an answer; a retired one gets no more, and lasts until they have theirs.
    """

    opened: asyncio.Future[mcp.Client]
    leave: asyncio.Event
    stderr: tail.Tail = field(default_factory=tail.Tail)
    http_status: int = 0
    client: mcp.Client | None = None
    task: asyncio.Task[None] | None = None
    wrong: Unreachable | None = None
    calls: int = 0
    is_retired: bool = False

    @classmethod
    def begin(cls) -> Life:
        """Begin one, in the running event loop."""
        life = cls(opened=asyncio.get_running_loop().create_future(), leave=asyncio.Event())
        # If all who wait for it give up, nobody asks what became of it.
        life.opened.add_done_callback(lambda opened: opened.cancelled() or opened.exception())
        return life

    def at_hand(self) -> mcp.Client:
        """Give its client. Raises Unreachable once there is none."""
        if self.client is None:
            raise Unreachable("The server went away.")
        return self.client

    def went(self, wrong: Exception) -> None:
        """Remember why the server was given up."""
        self.wrong = Unreachable(str(wrong))

    def saw(self, status: int) -> None:
        """Remember with which status the server answered last."""
        self.http_status = status

    def refusal(self, error: Any, reached: connections.Connection) -> errors.ToolbeltError:
        """Say what a refusal of a call is: the connection's (Unreachable), which is over then, or the server's own."""
        import mcp_types

        if error.code == mcp_types.CONNECTION_CLOSED or self.http_status in _AWAY:
            return Unreachable(self.why(error, reached))
        return contract.ToolError(
            cleaning.text(error.message, reasons.LONGEST) or "The server refused the call."
        )

    def why(self, error: BaseException | None, reached: connections.Connection) -> str:
        """Say why it ended, in words for an operator."""
        return reasons.said(
            self.wrong or error, reached, http_status=self.http_status, last=self.stderr.last()
        )
