"""The checks of a call: on arrival, and again directly before its tool runs.

An admitted call may wait for a slot, for a plugin to get ready or for a server to connect. It is checked again directly
before its tool runs, so that an operator's changes in the meantime apply to it. Blocking a tool ends its running calls.
"""

from __future__ import annotations

import copy
import datetime as dt
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django import db
from django.db import transaction

from toolbelt import conf
from toolbelt.core import (
    admitting,
    call_approvals,
    catalog,
    dispatch,
    errors,
    gate_rules,
    names_of_servers,
    schema,
    sessions,
)
from toolbelt.core.rules import budgets, resolution
from toolbelt.runtime import counting, surfaces, threads
from toolbelt.runtime.calls import asking, incoming
from toolbelt.runtime.records import recordings
from toolbelt.runtime.surfaces import conversation_tokens, request_contexts, snapshots
from toolbelt.store import clock, databases, holds, revisions

P = ParamSpec("P")
T = TypeVar("T")
# The refusals that say no more than that the tool cannot be called.
_DENIED = frozenset({"unknown-tool", "tool-denied"})

# The refusals of arguments, which say nothing about the tool's state.
_OF_ARGUMENTS = frozenset({"invalid-arguments", "denied-by-rule", "quota-reached", *admitting.ASKED})
_NO_LABELS: frozenset[str] = frozenset()

Resolved = tuple[resolution.Snapshot, budgets.Resolution, Hashable]


class CallGate:
    """The checks of one call, and its record."""

    def __init__(
        self,
        call: incoming.Call,
        caller: incoming.Caller = incoming.PROGRAM,
        *,
        may_ask: bool = False,
    ) -> None:
        self.call, self.caller = call, caller
        # Whether people are asked about the call, if rules ask. Otherwise, nothing is done to what they were asked.
        self.may_ask = may_ask
        # The key of the approval that it has spent.
        self.spent = ""
        # What it adds to the past when it runs, once: the counts that it belongs to, and labels of its session.
        self.counts: tuple[gate_rules.Count, ...] = ()
        self.brings: frozenset[str] = frozenset()
        self.is_counted = False
        self.recording = recordings.Recording(
            key=call.key, tool=call.tool, arguments=call.arguments, begun=call.begun
        )
        # What the model was told, if the call is made in a conversation.
        self.told = (
            conversation_tokens.unseal(call.key.agent, call.conversation) if call.conversation else None
        )
        self._context: request_contexts.RequestContext | None = None
        # The arguments as they were called, if an operator replaced some of them. The record has those that are sent.
        self._called: Any = None
        self._input_schema = ""

    @property
    def by_dispatch(self) -> bool:
        """Return whether the model has ``call_tool``."""
        return self.call.by_dispatch or (self.told is not None and self.told.dispatches)

    @property
    def always_dispatches(self) -> bool:
        """Return whether the model has ``call_tool`` also while it may load nothing."""
        return self.call.keeps_call_tool or self.told is not None

    @property
    def can_probe(self) -> bool:
        """Return whether the state can be read on the event loop, without a thread."""
        return self.caller.probe is not None

    async def probe(self) -> None:
        """Read the state on the event loop, so that :meth:`resolve` need not query the database."""
        if self.caller.probe is not None:
            self._context = await self.caller.probe()

    async def is_unchanged(self) -> bool:
        """Return whether nothing that could affect the call was committed since :meth:`probe`. False if unknown."""
        if self.caller.probe is None or self._context is None or holds.any_held():
            return False
        now = await self.caller.probe()
        return (
            now is not None
            and now.probed == self._context.probed
            and not snapshots.has_expired(self._context.snapshot)
        )

    async def in_thread(self, act: Callable[P, T], *arguments: P.args, **keywords: P.kwargs) -> T:
        """Run ``act`` in the thread that queries the database for this caller, and return its result."""
        if self.caller.probe is not None:
            return await threads.run(act, *arguments, **keywords)
        return await sync_to_async(act)(*arguments, **keywords)

    def identify(self, resolved: budgets.Resolution) -> None:
        """Note which tool is called, if it is called by its server's own name."""
        if self.call.by_host and not self.recording.is_dispatched:
            self.recording.tool = names_of_servers.key_of(resolved, self.recording.tool)

    def resolve(self) -> Resolved:
        """Return the snapshot, its resolution for the agent, and a value that is equal as long as both are."""
        if (cached := self.cached()) is not None:
            return cached
        if (context := self._context) is not None:
            self.recording.note_state(context.snapshot, context.probed.state.number)
            return context.snapshot, budgets.resolve(context.snapshot), context.probed
        snapshot, state = self.take()
        return snapshot, budgets.resolve(snapshot), state

    def cached(self) -> Resolved | None:
        """Return the result of :meth:`resolve` if this process has it cached, else None."""
        if (context := self._context) is None:
            return None
        surface = surfaces.cached(context.snapshot, context.cache_key[1])
        if surface is None:
            return None
        self.recording.note_state(context.snapshot, context.probed.state.number)
        return context.snapshot, surface.resolution, context.probed

    def take(self) -> tuple[resolution.Snapshot, Hashable]:
        """Return a current snapshot from the database, and a value that is equal as long as the snapshot is."""
        snapshot, probed = snapshots.take(self.call.key)
        self.recording.note_state(snapshot, probed.number)
        return snapshot, probed.state

    def admit(
        self,
        resolved: budgets.Resolution,
        snapshot: resolution.Snapshot,
        *,
        is_quick: bool = False,
        input_schema: str = "",
    ) -> admitting.Admission | admitting.Refusal:
        """Admit the call or refuse it; with ``is_quick``, raise schema.TooComplexError where that takes long.

        ``input_schema`` is that of the version which is called; by default, of the one that agents have.
        """
        tool = self.recording.tool
        self._input_schema = input_schema or self._input_schema
        if holds.is_stopped(snapshot.catalog, tool):
            return self.worded(stopped(tool))
        if self.told is not None and f"tool {tool}" in self.told.purged(snapshot.catalog):
            self.recording.reason_text = f"tool {tool} was purged after this conversation began"
            return admitting.withdrawn(tool)
        arguments = self.recording.arguments if self._called is None else self._called
        admission = self._check(resolved, snapshot, arguments, is_quick=is_quick)
        if isinstance(admission, admitting.Refusal) and admission.code == admitting.PENDING:
            if is_quick:
                # People's decisions are in the database.
                raise schema.TooComplexError
            admission = self._ask(resolved, snapshot, arguments, admission)
        is_refused = isinstance(admission, admitting.Refusal) and admission.code not in _OF_ARGUMENTS
        self.recording.note_decision(resolved, is_refused=is_refused, version=self.call.version)
        self.recording.note_judgement(admission.judgement)
        if isinstance(admission, admitting.Admission):
            self.counts = admission.counts
            # A call without a session has none to label, and a label is set once.
            is_labeled = bool(admission.brings) and self.call.key.session is not None
            self.brings = (
                admission.brings - sessions.label_names(snapshot.session) if is_labeled else _NO_LABELS
            )
        return self.worded(admission)

    @property
    def is_due(self) -> bool:
        """Return whether the call adds something to the past that is not stored yet."""
        return bool(self.counts or self.brings) and not self.is_counted

    def count_at_once(self) -> bool:
        """Count the call if that needs no database; return whether nothing is left to be stored."""
        if self.is_due and not self.brings:
            self.is_counted = counting.take_at_once(self.counts)
        return not self.is_due

    def _past(self, snapshot: resolution.Snapshot, at: dt.datetime, *, is_quick: bool) -> gate_rules.Past:
        if not (snapshot.catalog.gate_rules or conf.IDENTICAL_CALLS):
            return gate_rules.UNKNOWN
        return counting.past(
            self.call.key,
            snapshot.session,
            tool=self.recording.tool,
            client_session=self.caller.client_session,
            at=at,
            is_quick=is_quick,
            is_judged=self.is_counted,
        )

    def _check(
        self,
        resolved: budgets.Resolution,
        snapshot: resolution.Snapshot,
        arguments: Any,
        *,
        is_quick: bool = False,
        approval: call_approvals.Approval | None = None,
    ) -> admitting.Admission | admitting.Refusal:
        tool, hide_denied, now = self.recording.tool, conf.HIDE_DENIED, clock.now()
        past = self._past(snapshot, now, is_quick=is_quick)
        if self.recording.is_dispatched:
            # It may also be discoverable.
            return dispatch.admit(
                resolved,
                snapshot,
                tool,
                arguments,
                hide_denied=hide_denied,
                past=past,
                at=now,
                approval=approval,
            )
        return admitting.admit(
            resolved,
            tool,
            arguments,
            hide_denied=hide_denied,
            is_quick=is_quick,
            input_schema=self._input_schema,
            by_host=self.call.by_host,
            past=past,
            at=now,
            approval=approval,
        )

    def _ask(
        self,
        resolved: budgets.Resolution,
        snapshot: resolution.Snapshot,
        arguments: Any,
        refusal: admitting.Refusal,
    ) -> admitting.Admission | admitting.Refusal:
        """Admit the call by the approval that it has, with the arguments as an operator edited them; else return what
        it waits for.
        """
        tool = self.recording.tool
        arguments = admitting.filled(snapshot.catalog, tool, arguments)
        held = asking.HeldCall(
            key=self.call.key,
            asked_by=self.caller.operator,
            tool=snapshot.catalog.tools[tool],
            version=self.call.version,
            options=refusal.options,
            arguments=arguments,
            judgement=refusal.judgement,
        )
        approval = asking.answer(held, may_ask=self.may_ask, spent=self.spent)
        if isinstance(approval, admitting.Refusal):
            return approval
        # A copy: the program that called may still change its own.
        edited = copy.deepcopy({**arguments, **approval.edited})
        admission = self._check(resolved, snapshot, edited, approval=approval)
        if isinstance(admission, admitting.Admission):
            self._called = arguments
            self.recording.arguments = admitting.filled(snapshot.catalog, tool, edited)
        elif approval.edited:
            if self.may_ask:
                asking.withdraw(approval)
            if admission.code in ("invalid-arguments", admitting.PENDING):
                return admitting.expired(approval, refusal.judgement)
        return admission

    def worded(
        self, admission: admitting.Admission | admitting.Refusal
    ) -> admitting.Admission | admitting.Refusal:
        """Return the admission; a refusal does not contradict what the model was told in its conversation."""
        if isinstance(admission, admitting.Admission):
            return admission
        told = self.call.told if self.told is None else self.told.view.all_tools()
        is_told = self.recording.tool in told
        return (
            admitting.withdrawn(self.recording.tool) if is_told and admission.code in _DENIED else admission
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """A call that may run.

    ``definition`` is the stored tool; ``server`` is the plugin if it is an upstream server, else None; ``state``
    identifies the state that the gate checked; ``may_ask``: the server may ask the user. Unless it calls a tool, the
    ``arguments`` of its record are the parameters of the request to the server. ``approval`` is spent directly before
    the tool runs; ``call_id`` is the key of the call's admission, if the agent's own program runs it.
    """

    gate: CallGate
    definition: catalog.Tool
    server: catalog.Plugin | None
    state: Hashable
    options: Mapping[str, Any] | None = None
    active_tools: Mapping[str, Sequence[str]] = field(default_factory=dict)
    may_ask: bool = False
    approval: call_approvals.Approval | None = None
    call_id: str = ""

    @property
    def tool(self) -> str:
        """Return the key of the tool."""
        return self.definition.key

    @property
    def plugin(self) -> str:
        """Return the plugin of the tool."""
        return self.definition.plugin

    @property
    def left(self) -> float:
        """Return the remaining seconds."""
        return max(0.0, self.gate.call.deadline - time.monotonic())


class DeniedError(Exception):
    """A call that was admitted has since been denied."""

    def __init__(self, refusal: admitting.Refusal, operator_reason: str) -> None:
        self.refusal, self.operator_reason = refusal, operator_reason
        super().__init__(operator_reason)


class UncheckedError(Exception):
    """The call cannot be checked again, because the database cannot be read."""


class UnauthorizedError(Exception):
    """The caller may no longer call; ``__cause__`` is the reason."""


def stopped(tool: str) -> admitting.Refusal:
    """Return the refusal of a call of a tool whose block this process holds without having stored it."""
    if conf.HIDE_DENIED:
        return admitting.unknown(tool)
    return admitting.Refusal(
        code="tool-denied", message=f"You are not granted {tool}. An operator can change that."
    )


def check_again(admitted: Admitted) -> None:
    """Raise DeniedError or UnauthorizedError if the call may no longer run, and UncheckedError if that is unknown."""
    try:
        try:
            admitted.gate.caller.may_call()
        except db.Error:
            raise
        except Exception as error:
            raise UnauthorizedError from error
        if admitted.approval is None:
            denied = _denied(admitted) or _count(admitted)
        else:
            # Whatever an operator changes is changed before this, or after the approval is spent.
            with transaction.atomic():
                revisions.lock()
                denied = _denied(admitted) or _count(admitted)
        if denied is not None:
            raise denied
    except (errors.NotFound, errors.Archived) as error:
        raise DeniedError(admitting.unknown(admitted.tool), str(error)) from error
    except db.Error as error:
        raise UncheckedError(str(error)) from error
    finally:
        databases.release()


def _denied(admitted: Admitted) -> DeniedError | None:
    """Return why the call may not run any more."""
    gate, recording = admitted.gate, admitted.gate.recording
    snapshot, state = gate.take()
    if state == admitted.state and not holds.any_held() and admitted.approval is None:
        return None
    sent = recording.arguments
    admission = gate.admit(budgets.resolve(snapshot), snapshot)
    if isinstance(admission, admitting.Refusal):
        reason = recording.reason_text or admission.without_values()
        return DeniedError(admission, f"Denied while it waited: {reason}")
    stored = snapshot.catalog.tools[admitted.tool]
    # What was just checked is not what would be sent, if the schema has other defaults now.
    is_refilled = stored.kind == "tool" and sent != admitting.filled(
        snapshot.catalog, admitted.tool, recording.arguments
    )
    is_changed = stored.plugin != admitted.plugin or admission.options != admitted.options or is_refilled
    if is_changed or _identity(admission.approval) != _identity(admitted.approval):
        return _changed(admitted)
    return None


def _identity(approval: call_approvals.Approval | None) -> tuple[str, Mapping[str, Any]] | None:
    return None if approval is None else (approval.key, approval.edited)


def _count(admitted: Admitted) -> DeniedError | None:
    """Count a call, label its session and spend its approval: all of it once, or nothing. Return why it may not run,
    if a count is full by now, or the approval is spent.
    """
    gate = admitted.gate
    if not (gate.is_due or admitted.approval is not None):
        return None
    denied: DeniedError | None = None
    with transaction.atomic():
        if gate.is_due:
            full = counting.take(gate.call.key, admitted.tool, gate.counts, gate.brings)
            denied = None if full is None else _full(admitted, full)
        if denied is None and admitted.approval is not None:
            denied = _spend(admitted, admitted.approval)
        transaction.set_rollback(denied is not None)
    gate.is_counted = gate.is_counted or denied is None
    return denied


def _full(admitted: Admitted, count: gate_rules.Count) -> DeniedError:
    """Return why a call may not run whose count other calls have filled since it was admitted."""
    if count.rule.effect != "deny":
        return _changed(admitted)
    judgement = gate_rules.Judgement(denied_by=count.rule)
    admitted.gate.recording.note_judgement(judgement)
    refusal = admitting.too_many_calls(admitted.tool, count.limit, judgement, clock.now())
    return DeniedError(refusal, refusal.without_values())


def _spend(admitted: Admitted, approval: call_approvals.Approval) -> DeniedError | None:
    """Spend the approval of a call, once; return why it may not run, if that is not to be had any more."""
    if admitted.gate.spent:
        return None
    if not asking.spend(approval, admitted.gate.recording.arguments, admitted.call_id):
        return _changed(admitted)
    admitted.gate.spent = approval.key
    return None


def _changed(admitted: Admitted) -> DeniedError:
    message = f"{admitted.tool} was changed while this call waited: call it again."
    return DeniedError(admitting.Refusal(code="tool-unavailable", message=message), message)


def blocked(admitted: Admitted) -> DeniedError | None:
    """Return why a running call must end: its tool is blocked, or its agent is archived or deleted. Else None."""
    try:
        snapshot, _ = admitted.gate.take()
        resolved = budgets.resolve(snapshot)
        is_known = admitted.tool in snapshot.catalog.tools
        is_stopped = holds.is_stopped(snapshot.catalog, admitted.tool)
        if is_known and resolved.decision(admitted.tool).code != "blocked" and not is_stopped:
            return None
        admission = admitted.gate.admit(resolved, snapshot)
    except (errors.NotFound, errors.Archived) as error:
        return DeniedError(admitting.unknown(admitted.tool), str(error))
    finally:
        databases.release()
    if isinstance(admission, admitting.Refusal):
        reason = admitted.gate.recording.reason_text or admission.message
        return DeniedError(admission, f"Cancelled while it ran: {reason}")
    return None
