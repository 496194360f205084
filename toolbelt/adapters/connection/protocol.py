"""The interface of connections to Toolbelt, and their errors.

A connection is for one agent: ``surface`` returns what the model receives, ``call`` runs a tool. The errors::

    ToolbeltError
    ├── Invalid, ProviderLimit, NotFound   as in process: the request is not valid, or its object does not exist
    └── Unanswered         there is no response
        ├── NotAllowed     the token does not permit this
        ├── TooMany        too many requests; try again after ``retry_after`` seconds
        └── Unreachable    there is no response, or it is not from Toolbelt

A refused call is not an error but a result, which the model can read.
"""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Mapping
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
    """There is no response, or it is not from Toolbelt."""

    code = "unreachable"


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


class Connection(Protocol):
    """A connection to Toolbelt for one agent."""

    async def surface(
        self,
        run: Run,
        *,
        message: str | None = None,
        form: str | None = None,
        declared: Mapping[str, str] | None = None,
    ) -> Document:
        """Return the current surface. ``message`` is the user's, sent with the first step of the run only."""

    async def call(self, run: Run, tool: str, arguments: Any) -> Document:
        """Call a tool. Return ``is_error`` and ``content``, or the ``code`` and ``message`` of a refusal."""

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
    ) -> Document:
        """Return the current surface. ``message`` is the user's, sent with the first step of the run only."""

    def call(self, run: Run, tool: str, arguments: Any) -> Document:
        """Call a tool. Return ``is_error`` and ``content``, or the ``code`` and ``message`` of a refusal."""
