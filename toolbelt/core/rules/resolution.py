"""Resolution: which tools an agent has now, and why (docs/semantics.md: The eleven rules).

The rules are tried in order, and the first that applies decides. Which tools are active follows from the rules' sets,
so that the cost depends on the agent and not on the catalog; any other tool is decided on request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from toolbelt.core import agents, catalog, conflicts, loadouts, rules, sessions


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The frozen input of one resolution. ``session`` is None for a request without a session id."""

    catalog: catalog.Catalog
    agent: agents.Agent
    session: sessions.Session | None = None
    request_id: str | None = None
    subagent: str | None = None
    kind_loadouts: Mapping[str, str] = field(default_factory=lambda: agents.KIND_LOADOUTS)


class Decision(NamedTuple):
    """The decision for one tool; ``rule_number`` is the number (1 to 11) of the rule that decided."""

    tool: str
    state: rules.State
    code: str
    rule_number: int
    origin: rules.Origin

    @property
    def holds_whatever_the_switch(self) -> bool:
        """Return whether turning on a toolkit of the tool would leave its state as it is: a rule before the switch
        decides (unavailable, blocked, its override is off, a loadout disables it, or its risk is denied).
        """
        return self.rule_number in (1, 2, 4, 5)


class Step(NamedTuple):
    """One rule of a trace: its number, its text, and its answer (None: it does not apply)."""

    rule_number: int
    rule: str
    answer: rules.Answer | None


def build_context(snapshot: Snapshot) -> rules.EvaluationContext:
    """Return the values that the rules need from this snapshot."""
    stored, agent, session = snapshot.catalog, snapshot.agent, snapshot.session
    subagent = bool(snapshot.subagent)
    own_loadout = agent.loadout_name(snapshot.kind_loadouts)
    session_loadout = session.loadout if session is not None else ""
    subagent_loadout = snapshot.kind_loadouts.get(snapshot.subagent, "") if snapshot.subagent else ""
    in_force = (
        subagent_loadout
        if subagent
        else sessions.chosen_loadout(session, agent.session_loadouts) or own_loadout
    )
    # A subagent always has a loadout: a kind without one gets no tools, rather than the defaults.
    has_loadout = subagent or bool(in_force)
    # A loadout that the agent may no longer choose still denies: withdrawing it must not grant anything.
    denying = [
        name
        for name in dict.fromkeys((own_loadout, session_loadout, subagent_loadout))
        if name and ((view := loadouts.view_in(stored, name)).disabled or view.denied_risks)
    ]
    toolkits = sessions.in_allowed_order(
        sessions.loaded(session, "toolkit", snapshot.request_id),
        agent.allowed_toolkits,
        agent.initial_toolkits,
    )
    return rules.EvaluationContext(
        catalog=stored,
        agent=agent,
        subagent=subagent,
        subagent_kind=snapshot.subagent or "",
        has_session=session is not None,
        denying=tuple(denying),
        loadout=loadouts.view_in(stored, in_force) if has_loadout else None,
        loadout_name=in_force,
        toolkits=toolkits,
        initial=frozenset(agent.initial_toolkits).intersection(toolkits),
        loadable=frozenset(agent.allowed_toolkits).difference(toolkits),
        tools_by_name=sessions.loaded(session, "tool", snapshot.request_id),
        plugins_by_name=sessions.loaded(session, "plugin", snapshot.request_id),
        load_order=sessions.load_order(session, snapshot.request_id),
    )


def decide(context: rules.EvaluationContext, key: str) -> Decision:
    """Return the first rule's decision for the tool ``key``, before its agent's budget is applied."""
    closing = rules.closing(context.catalog, key)
    if closing is not None:
        number, answer = closing
        return Decision(key, answer.state, answer.code, number, answer.origin)
    for number, answers in context.in_order:
        answer_ = answers.get(key)
        if answer_ is not None:
            return Decision(key, answer_.state, answer_.code, number, answer_.origin)
    raise AssertionError("the last rule always applies")


def _answer(context: rules.EvaluationContext, rule: rules.AgentRule, key: str) -> rules.Answer | None:
    for answers in context.answers(rule):
        answer = answers.get(key)
        if answer is not None:
            return answer
    return None


def as_shown(stored: catalog.Catalog, decision: Decision) -> Decision:
    """Return a decision as people read it: a tool that an operator blocked is blocked, also if rule 1 makes it
    unavailable at the moment, because then it stays off when that ends.
    """
    if decision.rule_number != 1 or decision.tool not in stored.tools:
        return decision
    origin = rules.block_over(stored, stored.tools[decision.tool])
    return decision if origin is None else Decision(decision.tool, "denied", "blocked", 2, origin)


def trace(context: rules.EvaluationContext, key: str) -> tuple[Step, ...]:
    """Return the answer of every rule for the tool, including those after the one that decides."""
    stored = context.catalog
    return (
        *(Step(r.number, r.text, r.answer(stored, stored.tools[key])) for r in rules.CATALOG_RULES),
        *(Step(r.number, r.text, _answer(context, r, key)) for r in rules.AGENT_RULES),
    )


def denials(context: rules.EvaluationContext, key: str) -> tuple[Decision, ...]:
    """Return the decision of each of the rules 1 to 5 that applies: all of them keep the tool from being granted."""
    return tuple(
        Decision(key, step.answer.state, step.answer.code, step.rule_number, step.answer.origin)
        for step in trace(context, key)
        if step.rule_number <= 5 and step.answer is not None
    )


def is_denied(context: rules.EvaluationContext, key: str) -> bool:
    """Return whether a rule denies the tool ``key``, even if it is unavailable and rule 1 decides."""
    stored = context.catalog
    return context.denies(key) or rules.block_over(stored, stored.tools[key]) is not None


def active(context: rules.EvaluationContext, among: Set[str] | None = None) -> dict[str, Decision]:
    """Return the decisions for the active tools ``among`` these (None: all before the budget is applied), in key order.

    They are those of :func:`decide`, without asking the rules that do not apply.
    """
    answers = [
        (rule.number, answers.by_tool)
        for rule in (*rules.GRANTING, rules.INCLUDING)
        for answers in context.answers(rule)
        if answers.tools
    ]
    decisions: dict[str, Decision] = {}
    for key in sorted(context.active if among is None else among):
        for number, by_tool in answers:
            answer = by_tool.get(key)
            if answer is not None:
                state, code, origin = answer
                decisions[key] = Decision(key, state, code, number, origin)
                break
    return decisions


def not_running(context: rules.EvaluationContext) -> list[str]:
    """Return the tools that would be active if a running process could run them, by key."""
    absent = {key for plugin in context.catalog.plugins.values() for key in plugin.not_running}
    return _active_but_for(context, "not-running", absent)


def invalid(context: rules.EvaluationContext) -> list[str]:
    """Return the tools that would be active if their schemas were valid, by key."""
    return _active_but_for(context, "schema-invalid", context.catalog.with_invalid_schema)


def _active_but_for(context: rules.EvaluationContext, code: str, among: Set[str]) -> list[str]:
    """Return those of the tools that only the rule with this code keeps from being active, by key."""
    if not among:
        return []
    granted = context.not_denied(context.granted | context.tools((rules.INCLUDING,)))
    return [
        key
        for key in sorted(granted & among)
        if (closing := rules.closing(context.catalog, key)) is not None and closing[1].code == code
    ]


def options(
    context: rules.EvaluationContext, tool: str
) -> tuple[Mapping[str, object] | None, conflicts.Conflict | None]:
    """Return the options of the tool's first source, and the conflict if a later source differs."""
    ranked = sources(context, tool)
    return (ranked[0].options, conflicts.first_conflict(ranked, tool)) if ranked else (None, None)


def conflicts_in(context: rules.EvaluationContext, active: Set[str]) -> Iterator[conflicts.Conflict]:
    """Yield the conflicts of these active tools, by key."""
    for tool in sorted(conflicts.tools_with_options(context.catalog, context.agent) & active):
        conflict = options(context, tool)[1]
        if conflict is not None:
            yield conflict


def sources(context: rules.EvaluationContext, tool: str) -> tuple[conflicts.Source, ...]:
    """Return the sources that grant the tool with options, by rank; a subagent has none."""
    if context.subagent:
        return ()
    by_name = any(tool in answers.tools for answers in rules.loaded_by_name(context))
    return tuple(
        conflicts.sources(
            context.catalog,
            context.agent,
            tool,
            loaded=frozenset(context.toolkits).difference(context.initial),
            loaded_by_name=(tool,) if by_name else (),
        )
    )
