"""Recorded calls, decided again: by the same rules, from the facts that their records have.

A call is decided under two configurations, the one of today and a changed one, and what differs is said. Nothing runs:
its arguments, its result and the model's next step stay as they were. What the facts do not decide under the changed
configuration is :class:`Unproven`, and is never guessed; under today's, the recorded outcome stands for it.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypeVar

from toolbelt.core import (
    agents,
    call_limits,
    catalog,
    conditions,
    declared_versions,
    gate_rules,
    loading,
    meta_tools,
    rollouts,
    rules,
    schema,
    secret_texts,
    sessions,
    surface,
    tool_versions,
)
from toolbelt.core.rules import budgets, reasons, resolution

_Value = TypeVar("_Value")
# What becomes of a call: it runs, its tool must be loaded first, a person must approve it first, or it is refused.
Kind = Literal["runs", "load", "ask", "refused", "unknown"]
KINDS: tuple[Kind, ...] = ("refused", "load", "ask", "runs")
# Why a call cannot be decided again.
Reason = Literal[
    "no-facts",
    "agent-gone",
    "arguments-not-recorded",
    "past-not-recorded",
    "no-revision",
    "history-gap",
    "not-there-yet",
]
REASONS: Mapping[Reason, str] = {
    "no-facts": "recorded without what decided on them",
    "agent-gone": "of agents that no longer exist",
    "arguments-not-recorded": "whose arguments decide, and are not recorded",
    "past-not-recorded": "about which the calls before them decide",
    "no-revision": "recorded without the revision that decided",
    "history-gap": "before something was written without the audit log",
    "not-there-yet": "before there was what the change is about",
}
# The outcomes of calls that ran.
RAN = frozenset({"ok", "tool-failed", "timed-out", "cancelled", "admitted", "unreported"})
# Refusals that the state of a tool does not explain, and that stand as long as its definition is the same.
_OF_THE_CALL = frozenset({"invalid-arguments", "run-by-client", "run-by-toolbelt"})
_LOADS = frozenset({"loaded", "already_loaded", "unloaded", "not_loaded", "sticky"})


class Facts(NamedTuple):
    """The facts of a call, as its record has them.

    ``state`` is what its session had loaded, as JSON, and None if that is not known, as ``subagent``, ``dispatched``
    and ``definition``. ``arguments`` are all of them as JSON, ``chosen`` those that an operator chose to record.
    """

    agent: str
    tool: str
    has_session: bool
    state: str | None
    subagent: str | None
    dispatched: bool | None
    definition: str | None
    outcome: str
    detail: str | None = None
    chosen: str | None = None
    arguments: str | None = None


class Verdict(NamedTuple):
    """What a configuration does to a call: the code says why, and ``words`` say it to people. ``basis`` is what it
    depends on, if it is unknown.
    """

    kind: Kind
    code: str
    words: str = ""
    basis: tuple[Any, ...] = ()


class Difference(NamedTuple):
    """A call that would go otherwise."""

    before: Verdict
    after: Verdict


class Unproven(NamedTuple):
    """A call that cannot be decided again, and the arguments that its record would need."""

    reason: Reason
    fields: tuple[str, ...] = ()


# What a session had loaded, and who calls: whether there is a session, its state, and the kind of the subagent.
_Situation = tuple[bool, str, str]
_Resolved = tuple[rules.EvaluationContext, Mapping[str, rules.Origin]]


class Judge:
    """A configuration that decides calls again; ``at`` is the time, by which gate rules have ended.

    It can step to another configuration, and keeps what was decided about everything that a step does not concern. The
    ``rollouts`` are the numbers of those that run in it: a call in the new arm of another one is decided as all others;
    None: every call in the arm in which it was made.
    """

    def __init__(
        self,
        stored: catalog.Catalog,
        among: Mapping[str, agents.Agent],
        kind_loadouts: Mapping[str, str],
        at: datetime,
        rollouts: Collection[int] | None = (),
    ) -> None:
        self.catalog, self.agents, self.at = stored, {**among}, at
        self._kind_loadouts = kind_loadouts
        self._rollouts = rollouts
        # The agents in the new arms of roll-outs, by the states of sessions.
        self._in_arms: dict[str, dict[str, agents.Agent]] = {}
        # Many calls are made in the same state. A verdict is valid while the number of its tool is the same.
        self._verdicts: dict[str, dict[tuple[Any, ...], tuple[int, Verdict]]] = {}
        self._contexts: dict[str, dict[_Situation, _Resolved]] = {}
        self._versions: dict[str, tuple[int, str]] = {}
        self._numbers: dict[str, int] = {}
        self._number = 0

    def set_agent(self, key: str, agent: agents.Agent | None) -> None:
        """Step to a configuration with another agent under this key; None: there is none."""
        self._verdicts.pop(key, None)
        self._contexts.pop(key, None)
        self._in_arms.pop(key, None)
        if agent is None:
            self.agents.pop(key, None)
        else:
            self.agents[key] = agent

    def set_catalog(
        self, stored: catalog.Catalog, concerned: Collection[str] | None, of_agents: Collection[str] = ()
    ) -> None:
        """Step to a configuration with another catalog, in which only these tools, and what these agents have, are not
        as before; None: anything may be.
        """
        self.catalog = stored
        self._number += 1
        self._contexts.clear()
        # What a new arm has may depend on all of the catalog, and such calls are few.
        for key in self._in_arms:
            self._verdicts.pop(key, None)
        self._in_arms.clear()
        if concerned is None:
            self._verdicts.clear()
            self._versions.clear()
            return
        self._numbers.update(dict.fromkeys(concerned, self._number))
        for key in of_agents:
            self._verdicts.pop(key, None)
        # What a budget defers depends on all tools.
        for key, agent in self.agents.items():
            if agent.budget is not None and agent.budget.defers:
                self._verdicts.pop(key, None)

    def verdict(self, facts: Facts) -> Verdict:
        """Return what becomes of a call of an agent that exists."""
        agent = self.agents.get(facts.agent)
        if agent is None:
            return Verdict("refused", "no-agent", "there is no such agent")
        if agent.archived:
            return Verdict("refused", "archived", "the agent is archived")
        if facts.tool in meta_tools.DEFINITIONS:
            return self._meta(facts)
        if facts.tool not in self.catalog.tools:
            return Verdict("refused", "unknown-tool", "there is no such tool")
        verdict = self._decided(facts)
        if verdict.kind == "load" and facts.dispatched:
            verdict = verdict._replace(kind="runs")
        if verdict.kind != "runs":
            return verdict
        return self._with_arguments(facts, self._agent(facts.agent, facts.state or ""), verdict)

    def reason(self, facts: Facts) -> str:
        """Return the reason code that a call's record has; empty if there is no such tool in the catalog."""
        return self._decided(facts).code if facts.tool in self.catalog.tools else ""

    def _decided(self, facts: Facts) -> Verdict:
        """Return what the rules and the budget say about the tool of a call."""
        known = self._verdicts.setdefault(facts.agent, {})
        situation = (facts.has_session, facts.state or "", facts.subagent or "")
        number = self._numbers.get(facts.tool, 0)
        slot = (facts.tool, *situation)
        if (found := known.get(slot)) is None or found[0] != number:
            found = known[slot] = number, self._decide(facts.agent, situation, facts.tool)
        return found[1]

    def _agent(self, key: str, state: str) -> agents.Agent:
        """Return an agent as it is in a session with this state."""
        agent, arm = self.agents[key], sessions.arm(state)
        if arm is None or (self._rollouts is not None and arm.trial not in self._rollouts):
            return agent
        known = self._in_arms.setdefault(key, {})
        if state not in known:
            known[state] = rollouts.changed(agent, arm, self.catalog)
        return known[state]

    def _snapshot(self, agent: str, has_session: bool, state: str, subagent: str) -> resolution.Snapshot:
        session = None
        if has_session:
            session = sessions.with_state(json.loads(state)) if state else sessions.NEW
        return resolution.Snapshot(
            catalog=self.catalog,
            agent=self._agent(agent, state),
            session=session,
            subagent=subagent or None,
            kind_loadouts=self._kind_loadouts,
        )

    def _resolve(self, agent: str, situation: _Situation) -> _Resolved:
        """Return the context of an agent's request, and what its budget defers."""
        snapshot = self._snapshot(agent, *situation)
        budget = snapshot.agent.budget
        if budget is None or not budget.defers:
            return resolution.build_context(snapshot), {}
        resolved = budgets.resolve(snapshot)
        return resolved.context, resolved.removed

    def _decide(self, agent: str, situation: _Situation, tool: str) -> Verdict:
        """Return what the eleven rules and the budget say about a tool."""
        contexts = self._contexts.setdefault(agent, {})
        if (resolved := contexts.get(situation)) is None:
            resolved = contexts[situation] = self._resolve(agent, situation)
        context, removed = resolved
        if tool in removed:
            return Verdict("load", "budget", "deferred by the agent's budget")
        decision = resolution.decide(context, tool)
        kind: Kind = "refused"
        if decision.state == "active":
            kind = "runs"
        elif decision.state == "discoverable":
            kind = "load"
        return Verdict(kind, decision.code, reasons.explain_briefly(decision))

    def _meta(self, facts: Facts) -> Verdict:
        """Return what becomes of a call of one of Toolbelt's own tools."""
        known = self._verdicts.setdefault(facts.agent, {})
        slot = (facts.tool, facts.has_session, facts.state or "", facts.subagent or "", facts.detail)
        if (found := known.get(slot)) is None or found[0] != self._number:
            found = known[slot] = self._number, self._decide_meta(facts)
        return found[1]

    def _decide_meta(self, facts: Facts) -> Verdict:
        snapshot = self._snapshot(facts.agent, facts.has_session, facts.state or "", facts.subagent or "")
        if not surface.may_load(budgets.resolve(snapshot)):
            return Verdict("refused", "unknown-tool", "the agent may load nothing")
        if not facts.detail or facts.tool not in (meta_tools.LOAD, meta_tools.UNLOAD):
            return Verdict("runs", "loading")
        name = facts.detail.rpartition(" ")[0]
        change = loading.load if facts.tool == meta_tools.LOAD else loading.unload
        status = change(snapshot, name).status
        return Verdict(
            "runs" if status in _LOADS else "refused", status, f"{name}: {status.replace('_', ' ')}"
        )

    def _with_arguments(self, facts: Facts, agent: agents.Agent, verdict: Verdict) -> Verdict:
        """Return what becomes of a call of a tool that the agent has: its arguments fit, and no gate rule decides."""
        definition = self._version_of(facts.tool)
        rules = gate_rules.of_tool(self.catalog, facts.tool) if self.catalog.gate_rules else ()
        concerned = tuple(
            rule
            for rule in rules
            if not gate_rules.has_ended(rule, self.at)
            and not rule.observed
            and gate_rules.concerns(self.catalog, rule, agent, facts.subagent or "")
        )
        if (denying := next(filter(_always_denies, concerned), None)) is not None:
            return Verdict("refused", "denied-by-rule", f"rule {denying.key} denies it")
        if definition != facts.definition:
            return Verdict("unknown", "arguments-not-recorded", basis=((), definition, concerned))
        if facts.outcome in _OF_THE_CALL:
            return Verdict("refused", facts.outcome, "its arguments do not fit")
        return self._ruled(facts, agent, concerned) or verdict

    def _version_of(self, tool: str) -> str:
        """Return the beginning of the hash of the version that agents have of a tool."""
        number = self._numbers.get(tool, 0)
        if (found := self._versions.get(tool)) is None or found[0] != number:
            offered = declared_versions.offered(self.catalog.tools[tool])
            found = self._versions[tool] = number, tool_versions.short(tool_versions.version(offered))
        return found[1]

    def _ruled(
        self, facts: Facts, agent: agents.Agent, concerned: tuple[catalog.GateRule, ...]
    ) -> Verdict | None:
        """Return what gate rules do to a call, if one of them decides: they need the arguments that they read."""
        if not concerned:
            return None
        known, is_complete = _known(facts)
        needed = dict.fromkeys(field for rule in concerned for field in gate_rules.fields(rule))
        missing = tuple(name for name in needed if name not in known)
        if not is_complete and (missing or not all(map(_reads_only_its_fields, concerned))):
            return Verdict("unknown", "arguments-not-recorded", basis=(missing, concerned))
        verdicts = {self._judged(facts, agent, known, past) for past in self._pasts(facts, concerned)}
        if len(verdicts) > 1:
            return Verdict("unknown", "past-not-recorded", basis=((), concerned))
        return verdicts.pop()

    def _judged(
        self, facts: Facts, agent: agents.Agent, known: Mapping[str, Any], past: gate_rules.Past
    ) -> Verdict | None:
        judgement = gate_rules.judge(
            self.catalog, agent, facts.tool, known, subagent=facts.subagent or "", past=past, at=self.at
        )
        if judgement.denied_by is not None:
            return Verdict("refused", "denied-by-rule", f"rule {judgement.denied_by.key} denies it")
        if judgement.asked_by:
            return Verdict("ask", "approval-pending", f"rule {judgement.asked_by[0].key} asks")
        return None

    def _pasts(self, facts: Facts, rules: tuple[catalog.GateRule, ...]) -> Iterator[gate_rules.Past]:
        """Yield what may have come before a call. How many calls did, and what they would have brought to its session
        in this configuration, is not recorded: nothing, or everything.
        """
        had: frozenset[str] | None = None
        if facts.has_session:
            state = json.loads(facts.state) if facts.state else {}
            had = frozenset(state.get("labels", ()))
        labels = [had]
        if had is not None and any(rule.labels or rule.without for rule in rules):
            labels.append(had.union(*self.catalog.brings.values()))
        counted = [0, call_limits.MAX_CALLS] if any(rule.more_than for rule in rules) else [0]
        for known, number in itertools.product(labels, counted):
            yield gate_rules.Past(
                labels=known,
                count=functools.partial(_constant, number),
                identity=functools.partial(_constant, "unknown"),
            )


def _constant(value: _Value, _: object) -> _Value:
    return value


def compare(today: Judge, changed: Judge, facts: Facts) -> Difference | Unproven | None:
    """Return how a call would go otherwise in a changed configuration, or why that is unknown; None if it would not."""
    if facts.state is None or facts.subagent is None or facts.dispatched is None:
        return Unproven("no-facts")
    if facts.agent not in today.agents and facts.agent not in changed.agents:
        return Unproven("agent-gone")
    before, after = today.verdict(facts), changed.verdict(facts)
    if before.kind == after.kind and before.basis == after.basis:
        return None
    if after.kind == "unknown":
        reason: Reason = (
            "past-not-recorded" if after.code == "past-not-recorded" else "arguments-not-recorded"
        )
        return Unproven(reason, after.basis[0])
    if before.kind == "unknown":
        before = Verdict("runs" if facts.outcome in RAN else "refused", facts.outcome)
    # A call that does not run anyway is refused in other words.
    is_same = before.kind == after.kind or {before.kind, after.kind} == {"refused", "load"}
    return None if is_same else Difference(before, after)


def _always_denies(rule: catalog.GateRule) -> bool:
    is_conditional = rule.when or rule.unless or rule.labels or rule.without or rule.more_than
    return rule.effect == "deny" and not is_conditional


def _reads_only_its_fields(rule: catalog.GateRule) -> bool:
    return all(conditions.reads_only_its_fields(text) for text in (rule.when, rule.unless) if text)


def _known(facts: Facts) -> tuple[Mapping[str, Any], bool]:
    """Return the arguments that are recorded as they were, and whether they are all of them."""
    arguments = schema.mapping(facts.arguments or "", None)
    if arguments is not None:
        whole = {name: value for name, value in arguments.items() if not _is_masked(value)}
        return whole, len(whole) == len(arguments)
    chosen = schema.mapping(facts.chosen or "", None) or {}
    return {name: value for name, value in chosen.items() if not _is_masked(value)}, False


def _is_masked(value: Any) -> bool:
    """Return whether a part of the value was withheld from the record, or replaced."""
    text = schema.canonical(value)
    return secret_texts.WITHHELD in text or "\N{REPLACEMENT CHARACTER}" in text
