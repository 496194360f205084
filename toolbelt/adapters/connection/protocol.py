"""The interface of connections to Toolbelt, and their errors.

A connection is for one agent: ``surface`` returns what the model receives, ``call`` runs a tool. For tools that the
agent's own program runs, ``declare`` declares them, ``admit`` has a call admitted, and ``report`` reports its outcome.
The errors::

    ToolbeltError
    ├── Invalid, ProviderLimit, NotFound   as in process: the request is not valid, or its object does not exist
    └── Unanswered         there is no response
        ├── NotAllowed     the token does not permit this
        ├── TooMany        too many requests; try again after ``retry_after`` seconds
        └── Unreachable    there is no response, it is not from Toolbelt, or Toolbelt cannot answer now

A refused call is not an error but a result, which the model can read.
"""

from __future__ import annotations

import asyncio
import dataclasses
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self

from toolbelt.core import errors

Document = Mapping[str, Any]
# When a toolkit that the model loads is available: from the next step of the run, or from the next run.
Loads = Literal["step", "run"]


class Unanswered(errors.ToolbeltError):
    """There is no response. ``code`` is the code of the problem, if the server sent one."""

    code = "unanswered"

    def __init__(self, message: str, code: str | None = None) -> None:
        self.code = code or self.code
        super().__init__(message)


class NotAllowed(Unanswered):
    """The token is not valid, or does not permit the request."""

    code = "forbidden"


class TooMany(Unanswered):
    """There were too many requests. ``retry_after`` is how many seconds to wait, if known."""

    code = "too-many-requests"

    def __init__(self, message: str, retry_after: int | None) -> None:
        self.retry_after = retry_after
        super().__init__(message)


class Unreachable(Unanswered):
    """There is no response, it is not from Toolbelt, or Toolbelt cannot answer now."""

    code = "unreachable"


OutcomeCode = Literal["ok", "tool-failed", "timed-out", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of a call that the agent's own program ran. ``error`` is for operators."""

    code: OutcomeCode = "ok"
    error: str = ""
    duration_ms: int = 0
    result_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of an agent, or one step of it: its session, and the ``request_id`` of its requests.

    Tools that the model loads are available from the next request: see :meth:`at`.
    """

    session: str | None = None
    request_id: str
    subagent: str | None = None

    @classmethod
    def begin(
        cls, session: str | None = None, subagent: str | None = None, request_id: str | None = None
    ) -> Self:
        """Return a new run. ``request_id`` is the framework's own id of the run, if it has one."""
        return cls(session=session, request_id=request_id or uuid.uuid4().hex, subagent=subagent)

    def at(self, step: int, loads: Loads = "step") -> Self:
        """Return the run for this request to the model and the calls that it leads to.

        Each step is a request of its own (``run.1``, ``run.2`` …), so tools that the model loads in one step are
        available in the next. With ``loads="run"``, all steps are one request, and they are available in the next run.
        """
        if loads == "run":
            return self
        return dataclasses.replace(self, request_id=f"{self.request_id}.{step}")

    def document(self) -> dict[str, str]:
        """Return the fields of the run that both requests contain."""
        fields = {"session": self.session, "request_id": self.request_id, "subagent": self.subagent}
        return {key: value for key, value in fields.items() if value is not None}


def outcome_of(error: BaseException | None, pauses: tuple[type[BaseException], ...] = ()) -> OutcomeCode:
    """Return the outcome of a call whose tool raised this, or nothing.

    An exception that ``pauses`` a run is no failure: the call is repeated when the run continues.
    """
    if isinstance(error, pauses):
        return "cancelled"
    match error:
        case None:
            return "ok"
        case TimeoutError():
            return "timed-out"
        case asyncio.CancelledError() | KeyboardInterrupt() | SystemExit() | GeneratorExit():
            return "cancelled"
    return "tool-failed"


class Connection(Protocol):
    """A connection to Toolbelt for one agent."""

    async def surface(
        self,
        run: Run,
        *,
        message: str | None = None,
        form: str | None = None,
        declared: Mapping[str, str] | None = None,
        model: str | None = None,
        conversation: Mapping[str, Any] | None = None,
    ) -> Document:
        """Return the current surface. ``message`` is the user's, sent with the first step of the run only.

        ``model`` is the name of the model, for a ``form``; None: the agent's. With a ``conversation`` (its fields are
        those of the API), the document has ``append``.
        """

    async def call(self, run: Run, tool: str, arguments: Any, conversation: str = "") -> Document:
        """Call a tool. Return ``is_error`` and ``content``, or the ``code`` and ``message`` of a refusal.

        ``conversation`` is the token of the conversation that the call is made in.
        """

    async def check(
        self,
        run: Run,
        tool: str,
        arguments: Any,
        version: str = "",
        conversation: str = "",
        *,
        ask: bool = False,
    ) -> Document:
        """Check what would happen to a call: nothing runs, is recorded or is spent.

        ``version`` and ``conversation`` are as for ``admit`` and ``call``. ``ask``: people are asked to approve it now,
        if it would wait for them. Return ``would`` (run, wait, refuse or unknown), and what a refusal has.
        """

    async def declare(self, plugin: str, tools: Sequence[Document]) -> Document:
        """Declare tools that the program itself runs, for a plugin; the same again changes nothing.

        Return ``keys`` and ``versions``: the key and the version of each tool by its name; and the keys that are
        ``waiting`` for a review or ``withdrawn``, with the command that can ``show`` why. Raise NotFound if the agent
        may not declare the plugin's tools.
        """

    async def admit(
        self, run: Run, tool: str, arguments: Any, version: str = "", conversation: str = ""
    ) -> Document:
        """Have a call admitted that the program is about to run, in the ``version`` that it declared.

        ``conversation`` is the token of the conversation that the call is made in.
        Return ``call_id`` and ``options``, or ``is_error`` with the ``code`` and ``message`` of a refusal.
        """

    async def report(self, call_id: str, outcome: Outcome) -> None:
        """Report the outcome of an admitted call. A call that was reported before stays as it is."""

    async def record(self, run: Run, tool: str, arguments: Any, outcome: Outcome, seconds_ago: float) -> None:
        """Record a call that ran without an admission, because Toolbelt could not be reached."""

    def blocking(self) -> BlockingConnection:
        """Return the connection for threads that may block; always the same one."""


class BlockingConnection(Protocol):
    """A connection to Toolbelt for one agent, for threads that may block."""

    def surface(
        self,
        run: Run,
        *,
        message: str | None = None,
        form: str | None = None,
        declared: Mapping[str, str] | None = None,
        model: str | None = None,
        conversation: Mapping[str, Any] | None = None,
    ) -> Document:
        """Return the current surface. ``message`` is the user's, sent with the first step of the run only.

        ``model`` is the name of the model, for a ``form``; None: the agent's. With a ``conversation`` (its fields are
        those of the API), the document has ``append``.
        """

    def call(self, run: Run, tool: str, arguments: Any, conversation: str = "") -> Document:
        """Call a tool. Return ``is_error`` and ``content``, or the ``code`` and ``message`` of a refusal.

        ``conversation`` is the token of the conversation that the call is made in.
        """

    def check(
        self,
        run: Run,
        tool: str,
        arguments: Any,
        version: str = "",
        conversation: str = "",
        *,
        ask: bool = False,
    ) -> Document:
        """Check what would happen to a call: nothing runs, is recorded or is spent.

        ``version`` and ``conversation`` are as for ``admit`` and ``call``. ``ask``: people are asked to approve it now,
        if it would wait for them. Return ``would`` (run, wait, refuse or unknown), and what a refusal has.
        """

    def declare(self, plugin: str, tools: Sequence[Document]) -> Document:
        """Declare tools that the program itself runs, for a plugin; the same again changes nothing.

        Return ``keys`` and ``versions``: the key and the version of each tool by its name; and the keys that are
        ``waiting`` for a review or ``withdrawn``, with the command that can ``show`` why. Raise NotFound if the agent
        may not declare the plugin's tools.
        """

    def admit(
        self, run: Run, tool: str, arguments: Any, version: str = "", conversation: str = ""
    ) -> Document:
        """Have a call admitted that the program is about to run, in the ``version`` that it declared.

        ``conversation`` is the token of the conversation that the call is made in.
        Return ``call_id`` and ``options``, or ``is_error`` with the ``code`` and ``message`` of a refusal.
        """

    def report(self, call_id: str, outcome: Outcome) -> None:
        """Report the outcome of an admitted call. A call that was reported before stays as it is."""

    def record(self, run: Run, tool: str, arguments: Any, outcome: Outcome, seconds_ago: float) -> None:
        """Record a call that ran without an admission, because Toolbelt could not be reached."""
