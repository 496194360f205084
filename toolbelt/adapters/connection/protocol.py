"""What can be asked of a connection to Toolbelt, and what can come in place of an answer?

A connection speaks for one agent: ``surface`` says what the model gets, ``call`` runs a tool. What can go wrong ::

    ToolbeltError
    ├── Invalid, ProviderLimit, NotFound   as in process: what was asked for is not sound, or not there
    └── Unanswered         there is no answer
        ├── NotAllowed     whoever set this program up: the token does not open it
        ├── TooMany        nobody: it was asked too often; ``retry_after`` says when to ask again
        └── Unreachable    whoever runs Toolbelt: nobody answers, or somebody else does

A call that is refused is an answer, which the model can read.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

from toolbelt.core import errors

Document = Mapping[str, Any]


class Unanswered(errors.ToolbeltError):
    """There is no answer. ``code`` says why: that of the problem, where there is one."""

    code = "unanswered"

    def __init__(self, message: str, code: str | None = None) -> None:
        self.code = code or self.code
        super().__init__(message)


class NotAllowed(Unanswered):
    """The token is not known, or it does not open this."""

    code = "forbidden"


class TooMany(Unanswered):
    """It was asked too often. ``retry_after``: in how many seconds to ask again, if that is known."""

    code = "too-many-requests"

    def __init__(self, message: str, retry_after: int | None) -> None:
        self.retry_after = retry_after
        super().__init__(message)


class Unreachable(Unanswered):
    """Nobody answers, or not as Toolbelt does."""

    code = "unreachable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of an agent: a session, and the one ``request_id`` that all steps of the run share.

    So what the model loads counts from its next run on, and nothing that it loads changes under its feet.
    """

    session: str | None = None
    request_id: str
    subagent: str | None = None

    @classmethod
    def begin(
        cls, session: str | None = None, subagent: str | None = None, request_id: str | None = None
    ) -> Self:
        """Begin a run, with a request of its own; ``request_id`` is what a framework calls the run, if it does."""
        return cls(session=session, request_id=request_id or uuid.uuid4().hex, subagent=subagent)

    def document(self) -> dict[str, str]:
        """Give the run as both requests say it."""
        said = {"session": self.session, "request_id": self.request_id, "subagent": self.subagent}
        return {key: value for key, value in said.items() if value is not None}


class Connection(Protocol):
    """A way to ask Toolbelt for one agent."""

    async def surface(
        self,
        run: Run,
        *,
        message: str | None = None,
        form: str | None = None,
        declared: Mapping[str, str] | None = None,
    ) -> Document:
        """Ask what the model gets now. ``message`` is the user's, with the first step of the run only."""

    async def call(self, run: Run, tool: str, arguments: Any) -> Document:
        """Call a tool. Gives ``is_error`` and ``content``, or ``code`` and ``message`` of a refusal."""

    def blocking(self) -> BlockingConnection:
        """Give its twin for threads that may block, the same one each time."""


class BlockingConnection(Protocol):
    """A way to ask Toolbelt for one agent, from a thread that may block."""

    def surface(
        self,
        run: Run,
        *,
        message: str | None = None,
        form: str | None = None,
        declared: Mapping[str, str] | None = None,
    ) -> Document:
        """Ask what the model gets now. ``message`` is the user's, with the first step of the run only."""

    def call(self, run: Run, tool: str, arguments: Any) -> Document:
        """Call a tool. Gives ``is_error`` and ``content``, or ``code`` and ``message`` of a refusal."""
