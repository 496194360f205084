"""Calls that the agent's own program runs within a block, which reports their outcome."""

from __future__ import annotations

import asyncio
import contextvars
import json
import logging
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from toolbelt.adapters.connection import exchanges, protocol

_log = logging.getLogger(__name__)
_options: contextvars.ContextVar[Mapping[str, Any] | None] = contextvars.ContextVar(
    "toolbelt_options", default=None
)
# Reports that are under way, because an event loop keeps no reference to its tasks.
_reporting: set[asyncio.Task[Any]] = set()


def options() -> Mapping[str, Any] | None:
    """Return the options of the admitted call that is running here; None if its source has none."""
    return _options.get()


class NotAdmittedError(Exception):
    """A call may not run. ``document`` is the refusal, for the model."""

    def __init__(self, document: protocol.Document) -> None:
        self.document = document
        super().__init__(f"{document['code']}: {document['message']}")


class Admitted:
    """A call that the program runs within a block: ``with`` in threads that may block, ``async with`` on event loops.

    Raise NotAdmittedError if the call is refused; the block does not run then. An exception of the block is reported by
    its kind, and raised again.
    """

    def __init__(
        self,
        connection: protocol.Connection,
        admit: Callable[[], exchanges.Exchange],
        report: Callable[[str | None, protocol.Outcome, float], exchanges.Exchange],
        pauses: tuple[type[BaseException], ...] = (),
    ) -> None:
        self._connection, self._admit, self._report = connection, admit, report
        self._pauses = pauses
        self._begun = 0.0
        self._call_id: str | None = None
        self._token: contextvars.Token[Mapping[str, Any] | None] | None = None
        self._failure: str | None = None
        self._result_bytes = 0

    def result(self, value: Any) -> Any:
        """Note the size of the tool's result for the record, and return the result."""
        self._result_bytes = _size(value)
        return value

    def failed(self, message: str) -> None:
        """Note that the tool failed although it raised no exception."""
        self._failure = message

    def __enter__(self) -> Admitted:
        self._begin(exchanges.run_blocking(self._connection.blocking(), self._admit()))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        try:
            exchanges.run_blocking(self._connection.blocking(), self._end(error))
        except Exception:
            # The tool has run, and its result counts.
            _log.exception("The outcome of a call was not reported.")

    async def __aenter__(self) -> Admitted:
        self._begin(await exchanges.run(self._connection, self._admit()))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        # A cancelled call is reported, too.
        task = asyncio.ensure_future(exchanges.run(self._connection, self._end(error)))
        _reporting.add(task)
        task.add_done_callback(_reporting.discard)
        try:
            await asyncio.shield(task)
        except Exception:
            _log.exception("The outcome of a call was not reported.")

    def _begin(self, answer: protocol.Document) -> None:
        if answer["is_error"]:
            raise NotAdmittedError(answer)
        self._call_id = answer["call_id"]
        self._token = _options.set(answer["options"])
        self._begun = time.monotonic()

    def _end(self, error: BaseException | None) -> exchanges.Exchange:
        if self._token is not None:
            _options.reset(self._token)
        message = self._failure or ""
        if error is not None:
            message = f"{type(error).__name__}: {error}".removesuffix(": ")
        outcome = protocol.Outcome(
            code=(
                "tool-failed"
                if error is None and self._failure is not None
                else protocol.outcome_of(error, self._pauses)
            ),
            error=message,
            duration_ms=round((time.monotonic() - self._begun) * 1000),
            result_bytes=self._result_bytes,
        )
        return self._report(self._call_id, outcome, self._begun)


def _size(value: Any) -> int:
    """Return the size of a result in bytes: of a text as it is, of anything else as JSON; 0 for what is neither."""
    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return 0
    return len(text.encode(errors="replace"))
