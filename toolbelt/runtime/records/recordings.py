"""The record of a call: its outcome, duration and size, the facts by which it was decided, and its arguments without
secrets.
"""

from __future__ import annotations

import collections
import datetime as dt
import functools
import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog
from django.conf import settings

from toolbelt import conf
from toolbelt.core import (
    chosen_fields,
    declared_versions,
    gate_rules,
    request_key,
    schema,
    secret_texts,
    sessions,
    tool_versions,
)
from toolbelt.core.rules import budgets, reasons, resolution
from toolbelt.runtime import secrets
from toolbelt.runtime.records import call_metrics, learning, record_writer
from toolbelt.store import call_approvals, call_records, clock, open_questions

MAX_DEPTH = 50
# Larger arguments are not digested: that would take longer than a millisecond.
MAX_DIGESTED_BYTES = 64 * 1024
_ENCODER = json.JSONEncoder(allow_nan=False, ensure_ascii=False)
_ORDERED_ENCODER = json.JSONEncoder(allow_nan=False, ensure_ascii=False, sort_keys=True)

_log = structlog.get_logger(__name__)


@dataclass(slots=True, kw_only=True)
class Recording:
    """A call while it runs; :meth:`end` writes its record.

    ``person`` is the name of the person whose client calls. ``call_id`` and ``report_by`` are those of a call that the
    agent's own program runs, once it is admitted.
    """

    key: request_key.RequestKey
    tool: str
    arguments: Any
    plugin: str = ""
    person: str = ""
    at: dt.datetime = field(default_factory=clock.now)
    begun: float = field(default_factory=time.monotonic)
    is_ended: bool = False
    outcome: str = ""
    call_id: str | None = None
    report_by: dt.datetime | None = None
    # The facts by which it was decided: the reason code of the tool's state, which the agent may not read; why the tool
    # is not active, if its call was refused for that; the revision of the configuration; the tool's version; whether
    # it came through call_tool; and what the session had loaded for this request.
    reason: str = ""
    reason_text: str = ""
    revision: int | None = None
    definition: str | None = None
    is_dispatched: bool = False
    state: str | None = None
    # The roll-out in whose new arm the session is.
    trial: int | None = None
    # The gate rule that decided about it, and the observed ones that would have.
    rule: str = ""
    would: str = ""
    # The paths of the arguments that its record keeps; and of a load or unload, its name and status.
    recorded_fields: Sequence[str] = ()
    detail: str | None = None

    def note_state(self, snapshot: resolution.Snapshot, revision: int) -> None:
        """Note the state that decides on the call."""
        self.revision = revision
        arm = snapshot.agent.arm
        self.state = sessions.state(snapshot.session, snapshot.request_id, arm)
        self.trial = None if arm is None else arm.trial

    def note_decision(self, resolved: budgets.Resolution, *, is_refused: bool, version: str = "") -> None:
        """Note the reason code of the tool's state, in words too if its call is refused for that, and its version.

        ``version`` is the one that is called; by default, the one that agents have.
        """
        self.reason = self.reason_text = self.definition = ""
        stored = resolved.context.catalog
        tool = stored.tools.get(self.tool)
        if tool is None:
            return
        decision, shown = resolved.decision(self.tool), declared_versions.offered(tool)
        self.reason, self.recorded_fields = decision.code, tool.recorded_fields
        if is_refused and decision.state != "active" and self.tool not in stored.non_tools:
            self.reason_text = reasons.format_line(decision)
        if not version or tool_versions.is_version(shown, version):
            version = tool_versions.version(shown)
        self.definition = tool_versions.short(version)

    def note_judgement(self, judgement: gate_rules.Judgement) -> None:
        """Note what the gate rules said about the call when it was last checked."""
        self.rule = judgement.decided_by
        self.would = " ".join(judgement.would)

    def end(
        self, outcome: str, *, error: str = "", result_bytes: int = 0, seconds: float | None = None
    ) -> None:
        """Record the outcome. Only the first call of this method has an effect.

        Without ``seconds``, the call took the time since it began.

        If the record cannot be stored, that is only logged, because the tool has run.
        """
        if self.is_ended:
            return
        self.is_ended, self.outcome = True, outcome
        if seconds is None:
            seconds = time.monotonic() - self.begun
        # An admitted call is counted when its outcome is reported.
        if outcome != call_records.ADMITTED:
            call_metrics.count(self.key.agent, self.tool, outcome, seconds, is_known=bool(self.plugin))
        try:
            record = self._record(outcome, error, result_bytes, seconds)
            if not record_writer.enqueue(record):
                call_records.record_all([record])
            if outcome == "ok":
                learning.note_success(self.key.agent, self.key.session, self.tool)
        except Exception:
            _log.exception("call not recorded", agent=self.key.agent, tool=self.tool, outcome=outcome)

    def _record(self, outcome: str, error: str, result_bytes: int, seconds: float) -> dict[str, Any]:
        """Return the fields of the record, without secrets."""
        text = _ordered(self.arguments)
        # In Python, arguments may have keys that cannot be ordered.
        arguments_bytes = len(text) or size(self.arguments)
        return {
            "at": self.at,
            "agent": self.key.agent,
            "session": self.key.session or "",
            "request_id": self.key.request_id or "",
            "tool": self.tool,
            "plugin": self.plugin,
            "outcome": outcome,
            "reason": self.reason,
            "revision": self.revision,
            "state": self.state,
            "subagent": self.key.subagent or "",
            "person": self.person,
            "dispatched": self.is_dispatched,
            "definition": self.definition,
            "rule": self.rule,
            "would": self.would,
            "trial": self.trial,
            "arguments_digest": digest(self.arguments, text),
            "detail": self.detail,
            "chosen_fields": chosen(self.recorded_fields, self.arguments) if self.recorded_fields else None,
            "error": error and secrets.mask(error),
            "duration_ms": round(seconds * 1000),
            "arguments_bytes": arguments_bytes,
            "result_bytes": result_bytes,
            "arguments": masked(self.arguments) if arguments_bytes and conf.RECORD_ARGUMENTS else None,
            "call_id": self.call_id,
            "report_by": self.report_by,
        }


def prune(age: dt.timedelta) -> int:
    """Delete older records of calls, with approvals of them, and users' answers to processes that ended; return the
    number of calls.
    """
    open_questions.prune()
    call_approvals.prune(clock.now() - age)
    return call_records.prune(clock.now() - age)


def size(value: Any) -> int:
    """Return the size of the value as JSON in UTF-8, in bytes; 0 if it is not JSON."""
    try:
        return len(_ENCODER.encode(value).encode(errors="replace"))
    except (TypeError, ValueError, RecursionError):
        return 0


def _ordered(value: Any) -> bytes:
    """Return the value as JSON with its keys in order; empty if it is not JSON. Lone surrogates are kept apart."""
    try:
        return _ORDERED_ENCODER.encode(value).encode(errors="surrogatepass")
    except (TypeError, ValueError, RecursionError):
        return b""


def chosen(paths: Sequence[str], arguments: Any) -> dict[str, Any] | None:
    """Return the arguments at these paths without secrets; None if they are too large, or not JSON."""
    found = masked(chosen_fields.find(paths, arguments))
    return found if 0 < size(found) <= chosen_fields.MAX_BYTES else None


def digest(arguments: Any, text: bytes) -> str:
    """Return a digest of the arguments, which ``text`` has as JSON in order; empty if they are too large or not JSON.

    It is the same for the same JSON (1 is 1.0).
    """
    if len(text) > MAX_DIGESTED_BYTES:
        return ""
    if b".0" in text or b"e+" in text:
        # Perhaps a whole number that is written as a fraction.
        try:
            text = _ordered(json.loads(schema.comparable(arguments)))
        except (TypeError, ValueError, RecursionError):
            return ""
    return keyed_digest("arguments", text, 16) if text else ""


def identity(value: Any) -> str:
    """Return a digest that is the same for the same JSON, however large; empty if it is not JSON."""
    text = _ordered(value)
    if b".0" in text or b"e+" in text:
        try:
            text = _ordered(json.loads(schema.comparable(value)))
        except (TypeError, ValueError, RecursionError):
            return ""
    return keyed_digest("identical", text, 16) if text else ""


def keyed_digest(purpose: str, text: bytes, size: int) -> str:
    """Return a digest of this many bytes that depends on the installation's secret key: without the key, no one can
    find out by trying which text it stands for, however few there are.
    """
    return hashlib.blake2b(text, key=_key(purpose, settings.SECRET_KEY), digest_size=size).hexdigest()


@functools.lru_cache(4)
def _key(purpose: str, secret_key: str) -> bytes:
    # Derived for one purpose alone, so that a digest says nothing of what else the key signs.
    return hashlib.blake2b(f"toolbelt.{purpose} {secret_key}".encode()).digest()


def masked(value: Any, depth: int = 0) -> Any:
    """Return the value without secrets: those that a key suggests, those that are recognized by their form,
    and the known secrets of plugins.
    """
    if depth > MAX_DEPTH:
        return secrets.MASK
    match value:
        case Mapping():
            names = _names(value)
            return {
                names[key]: _withheld(item) if secret_texts.is_name(str(key)) else masked(item, depth + 1)
                for key, item in value.items()
            }
        case list() | tuple():
            return [masked(item, depth + 1) for item in value]
        case str():
            return _cleaned(value)
    return value


def _withheld(value: Any) -> Any:
    """Return what an argument that is named like a secret leaves: only the names in it."""
    return dict.fromkeys(_names(value).values(), secrets.MASK) if isinstance(value, Mapping) else secrets.MASK


def _names(value: Mapping[Any, Any]) -> dict[Any, str]:
    """Return the names without secrets, by key; those that are the same then are numbered, so that none is hidden."""
    names: dict[Any, str] = {}
    taken: set[str] = set()
    numbers: collections.Counter[str] = collections.Counter()
    for key in value:
        name = cleaned = _cleaned(str(key))
        while name in taken:
            numbers[cleaned] += 1
            name = f"{cleaned} ({numbers[cleaned] + 1})"
        taken.add(name)
        names[key] = name
    return names


def _cleaned(text: str) -> str:
    """Return the text without known secrets, and without characters that a database refuses."""
    return (
        secret_texts.masked(secrets.mask(text))
        .replace("\0", "\N{REPLACEMENT CHARACTER}")
        .encode(errors="replace")
        .decode()
    )
