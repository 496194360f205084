"""Calls that the agent's own program runs: each is admitted before it runs, and reported afterwards.

An admission passes the same checks as a call, and writes a record that is open until the report completes it. The id of
a call can be reported only by the same kind of sender for the same agent. A report is recorded truthfully, whatever was
denied or blocked since the admission, because the tool has run.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import functools
import hashlib
import hmac
import random
import time
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal

import structlog
from asgiref.sync import sync_to_async
from django.conf import settings

from toolbelt import conf
from toolbelt.adapters.connection import protocol
from toolbelt.core import admitting, catalog, declared_versions, errors, meta_tools, outcomes, schema
from toolbelt.core.rules import budgets, resolution
from toolbelt.runtime import secrets, surfaces
from toolbelt.runtime.calls import approval_waits, asking, gates, incoming, last_checks
from toolbelt.runtime.records import call_metrics, learning, record_writer, recordings
from toolbelt.runtime.surfaces import request_contexts, snapshots
from toolbelt.store import call_records as records
from toolbelt.store import clock, databases

_log = structlog.get_logger(__name__)

Outcome = protocol.OutcomeCode
OUTCOMES: tuple[Outcome, ...] = ("ok", "tool-failed", "timed-out", "cancelled")
Sender = Literal["agent", "operator", "program"]

# The record of an admission is written a moment after it. How long a report waits for this process to write it, and at
# which intervals it looks for a record that another process writes, in seconds.
FLUSH_SECONDS = 2.0
RETRY_PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8)
_KEY_LENGTH = 32
MAX_VERSION_LENGTH = 100
# Prefix of the error text of calls that were recorded without an admission.
UNADMITTED = "Ran without an admission, because Toolbelt could not be reached."


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """An admitted call: the id to report it under, the options of the tool's source, and when the report is due."""

    call_id: str
    tool: str
    options: Mapping[str, Any] | None
    report_by: dt.datetime

    def document(self) -> dict[str, Any]:
        """Return the admission as a JSON document."""
        return {
            "is_error": False,
            "call_id": self.call_id,
            "tool": self.tool,
            "options": None if self.options is None else dict(self.options),
            "report_by": _in_words(self.report_by),
        }


Answer = Admission | admitting.Refusal


class NotAdmittedError(Exception):
    """A call may not run. ``refusal`` is the answer for the model."""

    def __init__(self, refusal: admitting.Refusal) -> None:
        self.refusal = refusal
        super().__init__(refusal.message)


def admit(
    call: incoming.Call, sender: Sender = "program", caller: incoming.Caller = incoming.PROGRAM
) -> Answer:
    """Admit or refuse a call that the agent's own program is about to run; in a thread that may block.

    ``sender`` is who asks: an agent's token, an operator's, or a program in this process. If the call may wait for
    people to approve it, it does. Raise errors.NotFound for an unknown agent, errors.Invalid for malformed ids, and
    what ``may_call`` of the ``caller`` raises after a wait; everything else is an answer.
    """
    answer = _admit_now(call, sender, caller)
    approval = answer.approval if isinstance(answer, admitting.Refusal) and answer.is_pending else None
    if approval is None or not approval_waits.until_decided_blocking(approval.key, call.wait):
        return answer
    caller.may_call()
    return _admit_now(call, sender, caller)


def _admit_now(call: incoming.Call, sender: Sender, caller: incoming.Caller) -> Answer:
    gate = gates.CallGate(call, caller, may_ask=True)
    try:
        snapshot, resolved, state = gate.resolve()
        return _admit(gate, sender, resolved, snapshot, state)
    finally:
        databases.release()


def admit_at_once(
    call: incoming.Call, sender: Sender, context: request_contexts.RequestContext
) -> Answer | None:
    """Admit or refuse a call on an event loop, given the state that was just read.

    Return None if that would take long or would wait for the database.
    """
    surface = surfaces.cached(context.snapshot, context.cache_key[1])
    if surface is None or not record_writer.has_room():
        return None
    tool = context.snapshot.catalog.tools.get(call.tool)
    if tool is not None and not schema.is_ready(_schema(call, tool) or schema.EMPTY_TEXT):
        return None
    gate = gates.CallGate(call)
    gate.recording.note_state(context.snapshot, context.probed.state.number)
    try:
        return _admit(gate, sender, surface.resolution, context.snapshot, context.probed, is_quick=True)
    except schema.TooComplexError:
        return None


def report(
    agent: str,
    call_id: str,
    outcome: Outcome,
    *,
    error: str = "",
    duration_ms: int | None = None,
    result_bytes: int = 0,
    sender: Sender = "program",
) -> None:
    """Record the outcome of an admitted call; in a thread that may block.

    Without ``duration_ms``, the call took the time since its admission. Raise errors.NotFound for an id that was not
    given to this sender, and errors.Refused for a call that was reported before.
    """
    key = call_id[:_KEY_LENGTH]
    if not hmac.compare_digest(call_id.encode(), _call_id(key, agent, sender).encode()):
        raise errors.NotFound("admitted call", call_id[:_KEY_LENGTH])
    complete = functools.partial(
        records.report,
        agent,
        key,
        outcome,
        error=secrets.mask(error),
        duration_ms=duration_ms,
        result_bytes=result_bytes,
    )
    reported = complete()
    if reported is None and record_writer.flush(FLUSH_SECONDS):
        reported = complete()
    for seconds in RETRY_PAUSES:
        if reported is not None:
            break
        time.sleep(seconds)
        reported = complete()
    if reported is None:
        raise errors.NotFound("admitted call", key)
    if not reported.was_open:
        raise errors.Refused("The outcome of this call was reported before. Report each call once.")
    if reported.rule:
        asking.finish(outcome, call_id=key)
    call_metrics.count(agent, reported.tool, outcome, reported.duration_ms / 1000, is_known=True)
    if outcome == "ok":
        learning.note_success(agent, reported.session, reported.tool)


class NotRunByClientError(errors.Invalid):
    """There is no tool with this name that agents' programs run."""


def record(
    call: incoming.Call,
    outcome: Outcome,
    *,
    seconds_ago: float = 0,
    error: str = "",
    duration_ms: int = 0,
    result_bytes: int = 0,
) -> None:
    """Record a call that the agent's program ran without an admission, because it could not reach Toolbelt.

    ``seconds_ago`` is when it began. Raise errors.NotFound for an unknown or archived agent, errors.Invalid for
    malformed ids, and NotRunByClientError for a tool that the agent's program does not run.
    """
    try:
        snapshot, _ = snapshots.take(call.key)
        tool = snapshot.catalog.tools.get(call.tool)
        if tool is None or snapshot.catalog.runner(tool) != "client":
            message = f"The agent's program runs no tool named {call.tool!r}."
            raise NotRunByClientError([errors.Problem(path="tool", message=message)])
        recording = recordings.Recording(
            key=call.key, tool=call.tool, arguments=call.arguments, plugin=tool.plugin
        )
        recording.at -= dt.timedelta(seconds=seconds_ago)
        recording.begun -= duration_ms / 1000
        recording.end(outcome, error=f"{UNADMITTED} {error}".strip(), result_bytes=result_bytes)
    finally:
        databases.release()


class Running:
    """An admitted call that runs in this program: the block's outcome is reported at its end."""

    def __init__(self, admission: Admission) -> None:
        self.options = admission.options
        self.call_id = admission.call_id
        self._result_bytes = 0

    def result(self, value: Any) -> Any:
        """Note the size of the tool's result for the record, and return the result."""
        self._result_bytes = recordings.size(value)
        return value

    @property
    def result_bytes(self) -> int:
        """Return the size of the noted result as JSON."""
        return self._result_bytes


class admitted:
    """Have a call admitted, run the block, and report its outcome: ``with admitted("ada", "deploy", {…}) as call:``.

    Works with ``with`` and with ``async with``. Raise NotAdmittedError if the call is refused; the block does not run
    then. An exception of the block is reported by its kind and raised again.
    """

    def __init__(
        self,
        agent: str,
        tool: str,
        arguments: Any,
        session: str | None = None,
        request_id: str | None = None,
        subagent: str | None = None,
    ) -> None:
        key = incoming.RequestKey(agent, session, request_id, subagent)
        self._call = incoming.Call(key=key, tool=tool, arguments=arguments)
        self._running: Running | None = None
        self._begun = 0.0

    def __enter__(self) -> Running:
        answer = admit(self._call)
        if isinstance(answer, admitting.Refusal):
            raise NotAdmittedError(answer)
        self._begun = time.monotonic()
        self._running = Running(answer)
        return self._running

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        running = self._running
        if running is None:
            return
        try:
            report(
                self._call.key.agent,
                running.call_id,
                protocol.outcome_of(error),
                error="" if error is None else f"{type(error).__name__}: {error}".removesuffix(": "),
                duration_ms=round((time.monotonic() - self._begun) * 1000),
                result_bytes=running.result_bytes,
            )
        except Exception:
            # The tool has run, and its result counts.
            _log.exception("outcome of a call not reported", tool=self._call.tool)

    async def __aenter__(self) -> Running:
        return await sync_to_async(self.__enter__)()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A cancelled call is reported, too.
        await asyncio.shield(asyncio.ensure_future(sync_to_async(self.__exit__)(kind, error, trace)))


def _admit(
    gate: gates.CallGate,
    sender: Sender,
    resolved: budgets.Resolution,
    snapshot: resolution.Snapshot,
    state: Hashable,
    *,
    is_quick: bool = False,
) -> Answer:
    call, recording = gate.call, gate.recording
    tool = snapshot.catalog.tools.get(call.tool)
    if tool is not None:
        recording.plugin = tool.plugin
    admission = judge(gate, resolved, snapshot, is_quick=is_quick)
    # Only has to be unique, because _call_id signs it. The system's random numbers take ten times as long.
    key = f"{random.getrandbits(4 * _KEY_LENGTH):0{_KEY_LENGTH}x}"
    # What an approval is for is judged once more before it is counted.
    is_due = isinstance(admission, admitting.Admission) and (
        admission.approval is not None or not gate.count_at_once()
    )
    if is_due and is_quick:
        # It is counted in the database.
        raise schema.TooComplexError
    if isinstance(admission, admitting.Admission) and tool is not None and is_due:
        # It runs as soon as this is answered.
        admitted = gates.Admitted(
            gate=gate,
            definition=tool,
            server=None,
            state=state,
            options=admission.options,
            approval=admission.approval,
            call_id=key,
        )
        admission = _denied(admitted) or admission
    if isinstance(admission, admitting.Refusal):
        recording.end(admission.code, error=recording.reason_text or admission.without_values())
        return admission
    recording.call_id = key
    recording.report_by = _time(int(recording.at.timestamp() + conf.REPORT_SECONDS))
    # Its record begins now, and the report completes it.
    recording.begun = time.monotonic()
    recording.end(records.ADMITTED)
    return Admission(
        call_id=_call_id(key, call.key.agent, sender),
        tool=call.tool,
        options=admission.options,
        report_by=recording.report_by,
    )


def _denied(admitted: gates.Admitted) -> admitting.Refusal | None:
    """Count the call and spend its approval; return why it may no longer run, or None."""
    try:
        last_checks.check_again(admitted)
    except last_checks.DeniedError as denied:
        return denied.refusal
    except (last_checks.UnauthorizedError, last_checks.UncheckedError) as error:
        raise (error.__cause__ or error) from None
    return None


def judge(
    gate: gates.CallGate,
    resolved: budgets.Resolution,
    snapshot: resolution.Snapshot,
    *,
    is_quick: bool = False,
) -> admitting.Admission | admitting.Refusal:
    """Admit or refuse the call of a tool that the agent's own program runs, in the version that it has."""
    call, key, stored = gate.call, gate.recording.tool, snapshot.catalog
    if key in meta_tools.DEFINITIONS:
        return admitting.run_by_toolbelt(key)
    tool = stored.tools.get(key)
    takes = "" if tool is None else _schema(call, tool)
    if takes is None:
        gate.recording.note_decision(resolved, is_refused=False, version=call.version)
        # Not described to an agent that does not have the tool.
        refusal = admitting.not_active(resolved, key, hide_denied=conf.HIDE_DENIED)
        return gate.worded(refusal or admitting.other_version(key))
    is_own = tool is not None and stored.runner(tool) == "client"
    # No one is asked about a call that cannot run there.
    gate.may_ask = gate.may_ask and is_own
    admission = gate.admit(resolved, snapshot, is_quick=is_quick, input_schema=takes)
    is_granted = isinstance(admission, admitting.Admission) or admission.code == outcomes.PENDING
    return admitting.run_by_toolbelt(key) if is_granted and not is_own else admission


def _schema(call: incoming.Call, tool: catalog.Tool) -> str | None:
    """Return the schema of the version that the program runs; None if that version may not be called."""
    if not call.version:
        return declared_versions.offered(tool).input_schema
    return declared_versions.schema_of(tool, call.version, clock.now())


@functools.lru_cache(4)
def _time(second: int) -> dt.datetime:
    """Return the time of a second since 1970. Cached, because many calls are due to be reported in the same one."""
    return dt.datetime.fromtimestamp(second, dt.UTC)


@functools.lru_cache(4)
def _in_words(at: dt.datetime) -> str:
    """Return a time in UTC as it is written in JSON."""
    return at.isoformat().replace("+00:00", "Z")


def _call_id(key: str, agent: str, sender: Sender) -> str:
    """Return the id of the call with this key: only Toolbelt can make it, for this agent and this kind of sender."""
    text = f"toolbelt.call {sender} {agent} {key}"
    secret = _secret(settings.SECRET_KEY)
    return key + hashlib.blake2b(text.encode(), key=secret, digest_size=_KEY_LENGTH // 2).hexdigest()


@functools.lru_cache(1)
def _secret(key: str) -> bytes:
    """Return the secret key at a length that a keyed hash takes."""
    return hashlib.sha256(key.encode()).digest()
