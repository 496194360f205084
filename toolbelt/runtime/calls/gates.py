"""The checks of a call on arrival, and what is known of it once it is admitted.

An admitted call may wait for a slot, for a plugin to get ready or for a server to connect, and is checked again
after that (:mod:`toolbelt.runtime.calls.last_checks`).
"""

from __future__ import annotations

import copy
import datetime as dt
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import sync_to_async

from toolbelt import conf
from toolbelt.core import (
    admitting,
    call_approvals,
    catalog,
    dispatch,
    gate_rules,
    names_of_servers,
    outcomes,
    schema,
    sessions,
)
from toolbelt.core.rules import budgets, resolution
from toolbelt.runtime import counting, surfaces, threads
from toolbelt.runtime.calls import asking, incoming
from toolbelt.runtime.records import recordings
from toolbelt.runtime.surfaces import conversation_tokens, request_contexts, snapshots
from toolbelt.store import clock, holds

P = ParamSpec("P")
T = TypeVar("T")
# The refusals that say no more than that the tool cannot be called.
_DENIED = frozenset({"unknown-tool", "tool-denied"})
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
        # The approval that it has spent.
        self.spent: call_approvals.Approval | None = None
        # What it adds to the past when it runs, once: the counts that it belongs to, and labels of its session.
        self.counts: tuple[gate_rules.Count, ...] = ()
        self.brings: frozenset[str] = frozenset()
        self.is_counted = False
        # Whether the server has begun the call, and waits for an answer of the user: the call goes on, not anew.
        self.is_parked = False
        self.recording = recordings.Recording(
            key=call.key,
            tool=call.tool,
            arguments=call.arguments,
            person=caller.person_name,
            begun=call.begun,
        )
        # What the model was told, if the call is made in a conversation.
        self.told = (
            conversation_tokens.unseal(call.key.agent, call.conversation) if call.conversation else None
        )
        self._context: request_contexts.RequestContext | None = None
        # The arguments as they were called, if an operator replaced some of them. The record has those that are sent.
        self._called: Any = None
        self._input_schema = ""
        # When the next gate rule ends that concerns the call; nothing is committed then.
        self._next_end: dt.datetime | None = None

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
        if self.caller.probe is None or self._context is None or holds.any_held() or self.has_rule_ended:
            return False
        now = await self.caller.probe()
        return (
            now is not None
            and now.probed == self._context.probed
            and not snapshots.has_expired(self._context.snapshot)
        )

    @property
    def has_rule_ended(self) -> bool:
        """Return whether a gate rule for the call has ended since it was admitted."""
        return self._next_end is not None and self._next_end <= clock.now()

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
        tool, begun = self.recording.tool, clock.now()
        self._input_schema = input_schema or self._input_schema
        if holds.is_stopped(snapshot.catalog, tool):
            return self.worded(stopped(tool))
        if self.told is not None and f"tool {tool}" in self.told.purged(snapshot.catalog):
            self.recording.reason_text = f"tool {tool} was purged after this conversation began"
            return admitting.withdrawn(tool)
        arguments = self.recording.arguments if self._called is None else self._called
        admission = self._check(resolved, snapshot, arguments, is_quick=is_quick)
        if isinstance(admission, admitting.Refusal) and admission.code == outcomes.PENDING:
            if is_quick:
                # People's decisions are in the database.
                raise schema.TooComplexError
            admission = self._ask(resolved, snapshot, arguments, admission)
        is_refused = isinstance(admission, admitting.Refusal) and admission.code not in outcomes.OF_ARGUMENTS
        self.recording.note_decision(resolved, is_refused=is_refused, version=self.call.version)
        self.recording.note_judgement(admission.judgement)
        if isinstance(admission, admitting.Admission):
            self._next_end = gate_rules.next_end(snapshot.catalog, tool, begun)
        if isinstance(admission, admitting.Admission) and not self.is_counted:
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
        if self.is_parked:
            return gate_rules.LEFT_OUT
        if not (snapshot.catalog.gate_rules or conf.IDENTICAL_CALLS):
            return gate_rules.UNKNOWN
        return counting.past(
            self.call.key,
            snapshot.session,
            tool=self.recording.tool,
            client_session=self.caller.client_session,
            at=at,
            is_quick=is_quick,
            counted=[count.rule.key for count in self.counts] if self.is_counted else (),
            brought=self.brings if self.is_counted else (),
            answered=() if self.spent is None else self.spent.rules,
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
        stored = snapshot.catalog.tools[tool]
        arguments = admitting.filled(snapshot.catalog, tool, arguments)
        held = asking.HeldCall(
            key=self.call.key,
            asked_by=self.caller.user,
            tool=stored,
            # Toolbelt runs a tool in one version, whatever the caller names.
            version=self.call.version if snapshot.catalog.runner(stored) == "client" else "",
            options=refusal.options,
            arguments=arguments,
            judgement=refusal.judgement,
        )
        spent = "" if self.spent is None else self.spent.key
        approval: call_approvals.Approval | admitting.Refusal
        if self.is_parked:
            approval = asking.spent(held) or refusal
        else:
            approval = asking.answer(held, may_ask=self.may_ask, spent=spent)
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
            if admission.code in ("invalid-arguments", outcomes.PENDING):
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


def stopped(tool: str) -> admitting.Refusal:
    """Return the refusal of a call of a tool whose block this process holds without having stored it."""
    if conf.HIDE_DENIED:
        return admitting.unknown(tool)
    return admitting.Refusal(
        code="tool-denied", message=f"You are not granted {tool}. An operator can change that."
    )
