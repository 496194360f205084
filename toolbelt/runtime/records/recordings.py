"""The record of a call: its outcome, duration and size, and its arguments without secrets."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog
from django.utils import timezone

from toolbelt import conf
from toolbelt.core import request_key, secret_texts
from toolbelt.core.rules import budgets, reasons
from toolbelt.runtime import secrets
from toolbelt.runtime.records import call_metrics, learning, record_writer
from toolbelt.store import call_records, open_questions

MAX_DEPTH = 50
_ENCODER = json.JSONEncoder(allow_nan=False, ensure_ascii=False)

_log = structlog.get_logger(__name__)


@dataclass(slots=True, kw_only=True)
class Recording:
    """A call while it runs; :meth:`end` writes its record.

    ``call_id`` and ``report_by`` are those of a call that the agent's own program runs, once it is admitted.
    """

    key: request_key.RequestKey
    tool: str
    arguments: Any
    plugin: str = ""
    at: dt.datetime = field(default_factory=timezone.now)
    begun: float = field(default_factory=time.monotonic)
    is_ended: bool = False
    outcome: str = ""
    call_id: str | None = None
    report_by: dt.datetime | None = None
    # The true reason of a refusal, which the agent may not read; and the revision of the configuration that was used.
    reason: str = ""
    reason_text: str = ""
    revision: int | None = None

    def explain(self, resolved: budgets.Resolution) -> None:
        """Note why the tool is not active, if its call was refused for that."""
        self.reason = self.reason_text = ""
        stored = resolved.context.catalog
        if self.tool in stored.tools and self.tool not in stored.non_tools:
            decision = resolved.decision(self.tool)
            if decision.state != "active":
                self.reason, self.reason_text = decision.code, reasons.format_line(decision)

    def end(self, outcome: str, *, error: str = "", result_bytes: int = 0) -> None:
        """Record the outcome. Only the first call of this method has an effect.

        If the record cannot be stored, that is only logged, because the tool has run.
        """
        if self.is_ended:
            return
        self.is_ended, self.outcome = True, outcome
        seconds = time.monotonic() - self.begun
        # An admitted call is counted when its outcome is reported.
        if outcome != call_records.ADMITTED:
            call_metrics.count(self.key.agent, self.tool, outcome, seconds, is_known=bool(self.plugin))
        try:
            arguments_bytes = size(self.arguments)
            record = {
                "at": self.at,
                "agent": self.key.agent,
                "session": self.key.session or "",
                "request_id": self.key.request_id or "",
                "tool": self.tool,
                "plugin": self.plugin,
                "outcome": outcome,
                "reason": self.reason,
                "revision": self.revision,
                "error": error and secrets.mask(error),
                "duration_ms": round(seconds * 1000),
                "arguments_bytes": arguments_bytes,
                "result_bytes": result_bytes,
                "arguments": masked(self.arguments) if arguments_bytes and conf.RECORD_ARGUMENTS else None,
                "call_id": self.call_id,
                "report_by": self.report_by,
            }
            if not record_writer.enqueue(record):
                call_records.record_all([record])
            if outcome == "ok":
                learning.note_success(self.key.agent, self.key.session, self.tool)
        except Exception:
            _log.exception("call not recorded", agent=self.key.agent, tool=self.tool, outcome=outcome)


def prune(age: dt.timedelta) -> int:
    """Delete older records of calls, and users' answers to processes that ended; return the number of calls."""
    open_questions.prune()
    return call_records.prune(timezone.now() - age)


def size(value: Any) -> int:
    """Return the size of the value as JSON in UTF-8, in bytes; 0 if it is not JSON."""
    try:
        return len(_ENCODER.encode(value).encode(errors="replace"))
    except (TypeError, ValueError, RecursionError):
        return 0


def masked(value: Any, depth: int = 0) -> Any:
    """Return the value without secrets: those that a key suggests, those that are recognized by their form,
    and the known secrets of plugins.
    """
    if depth > MAX_DEPTH:
        return secrets.MASK
    match value:
        case Mapping():
            return {
                _cleaned(str(key)): _withheld(item)
                if secret_texts.is_name(str(key))
                else masked(item, depth + 1)
                for key, item in value.items()
            }
        case list() | tuple():
            return [masked(item, depth + 1) for item in value]
        case str():
            return _cleaned(value)
    return value


def _withheld(value: Any) -> Any:
    """Return what an argument that is named like a secret leaves: only the names in it."""
    return {_cleaned(str(key)): secrets.MASK for key in value} if isinstance(value, Mapping) else secrets.MASK


def _cleaned(text: str) -> str:
    """Return the text without known secrets, and without characters that a database refuses."""
    return (
        secret_texts.masked(secrets.mask(text))
        .replace("\0", "\N{REPLACEMENT CHARACTER}")
        .encode(errors="replace")
        .decode()
    )
