"""Resolution: which tools an agent has now, and why (docs/semantics.md: The eleven rules).

The rules are tried in order, and the first that applies decides. A resolution starts from what could make a tool
active, so that its cost depends on the agent and not on the catalog; any other tool is decided on request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from toolbelt.core import agents, catalog, conflicts, grants, loadouts, rules, sessions


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
        decides (unavailable, blocked, its override is off, or a loadout disables it).
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
    # A loadout that the agent may no longer choose still denies its disabled tools: withdrawing it must not grant
    # anything.
    views = [
        loadouts.view_in(stored, name)
        for name in dict.fromkeys((own_loadout, session_loadout, subagent_loadout))
        if name
    ]
    denying = tuple([view for view in views if view.disabled])
    toolkits = sessions.in_allowed_order(
        sessions.loaded(session, "toolkit", snapshot.request_id),
        agent.allowed_toolkits,
        agent.initial_toolkits,
    )
    initial = frozenset(agent.initial_toolkits).intersection(toolkits)
    granted_alone = {} if subagent else _granted_alone(stored, agent)
    switched_on = {} if subagent else _switched_on(stored, agent)
    tools_by_name = sessions.loaded(session, "tool", snapshot.request_id)
    plugins_by_name = sessions.loaded(session, "plugin", snapshot.request_id)
    inapplicable = {
        3: False not in agent.switches.values(),
        4: False not in agent.overrides.values(),
        5: not denying,
        6: not granted_alone,
        7: not switched_on,
        8: subagent,
    }
    return rules.EvaluationContext(
        catalog=stored,
        agent=agent,
        subagent=subagent,
        has_session=session is not None,
        concerned=toolkits_that_concern(
            stored,
            agent,
            in_force if has_loadout else None,
            is_subagent=subagent,
            loaded=_matched(stored, in_force, tools_by_name, plugins_by_name),
        ),
        denying=denying,
        loadout=loadouts.view_in(stored, in_force) if has_loadout else None,
        loadout_name=in_force,
        toolkits=toolkits,
        initial=initial,
        loadable=frozenset(agent.allowed_toolkits).difference(toolkits),
        tools_by_name=tools_by_name,
        plugins_by_name=plugins_by_name,
        load_order=sessions.load_order(session, snapshot.request_id),
        granted_alone=granted_alone,
        switched_on=switched_on,
        loaded={} if subagent else _loaded(stored, toolkits, initial),
        rules=tuple([rule for rule in rules.AGENT_RULES if not inapplicable.get(rule.number)]),
    )


def toolkits_that_concern(
    stored: catalog.Catalog,
    agent: agents.Agent,
    loadout: str | None,
    *,
    is_subagent: bool = False,
    loaded: Iterable[str] = (),
) -> frozenset[str]:
    """Return the toolkits with an off text that concern the agent, whose off text it gets while no member is active.

    The agent's configuration names them (with a switch, or in its allowed toolkits) or one of their members (with an
    override, as an always-on tool, or in a sub-app), or its ``loadout`` (None: what is on by default) includes one, or
    the session has one of the tools ``loaded`` by name. It does not matter whether a block, a denial or an outage takes
    that away.
    """
    if not stored.with_off_text:
        return frozenset()
    tools = {*agent.overrides}
    if not is_subagent:
        tools.update(loaded)
        tools.update(always.tool for always in agent.tools)
        tools.update(tool for tool, _ in stored.bound.get(agent.key, ()))
    named = {*agent.switches, *agent.allowed_toolkits}
    named.update(kit.key for tool in tools for kit in stored.toolkits_of.get(tool, ()))
    return _brought(stored, loadout).union(named & stored.with_off_text.keys())


def _matched(
    stored: catalog.Catalog, loadout: str, tools: Iterable[str], plugins: Iterable[str]
) -> list[str]:
    """Return the tools that were loaded by these names and that a pattern of the loadout still matches."""
    named = [*tools, *(tool for plugin in plugins for tool in stored.tools_of_plugin.get(plugin, ()))]
    matched = loadouts.tools_discoverable(stored, loadout) if named and loadout else ()
    return [tool for tool in named if tool in matched]


def _brought(stored: catalog.Catalog, loadout: str | None) -> frozenset[str]:
    """Return the toolkits with an off text of which the loadout includes a member; cached with the catalog."""
    slot = ("off texts", loadout)
    cached: frozenset[str] | None = stored.derived.get(slot)
    if cached is None:
        included = {*(stored.default_on if loadout is None else loadouts.tools_included(stored, loadout))}
        cached = stored.derived[slot] = frozenset(
            key
            for key, toolkit in stored.with_off_text.items()
            if any(member.tool in included for member in toolkit.members)
        )
    return cached


def _granted_alone(stored: catalog.Catalog, agent: agents.Agent) -> dict[str, rules.Answer]:
    """Return the answer of rule 6 for every tool that it makes active; the last grant to be written wins."""
    answers: dict[str, rules.Answer] = {}
    for tool, sub_app in stored.bound.get(agent.key, ()):
        answers.setdefault(tool, rules.Answer("active", "sub-app", rules.Origin("sub-app", sub_app)))
    always_on = rules.Answer("active", "always-on", rules.Origin("agent", agent.key))
    answers.update((always.tool, always_on) for always in agent.tools)
    for tool, on in agent.overrides.items():
        if on:
            origin = rules.Origin("override", tool, grants.describe_expiry(agent, tool))
            answers[tool] = rules.Answer("active", "override-on", origin)
    return answers


def _switched_on(stored: catalog.Catalog, agent: agents.Agent) -> dict[str, rules.Answer]:
    answers: dict[str, rules.Answer] = {}
    for toolkit in stored.in_order(key for key, on in agent.switches.items() if on):
        origin = rules.Origin("switch", toolkit.key, grants.describe_expiry(agent, toolkit.key))
        answer = rules.Answer("active", "switch-on", origin)
        for member in toolkit.members:
            answers.setdefault(member.tool, answer)
    return answers


def _loaded(
    stored: catalog.Catalog, toolkits: Iterable[str], initial: frozenset[str]
) -> dict[str, rules.Answer]:
    answers: dict[str, rules.Answer] = {}
    sources = (("initial", initial), ("loaded", [key for key in toolkits if key not in initial]))
    for code, keys in sources:
        for toolkit in stored.in_order(keys):
            answer = rules.Answer("active", code, rules.Origin("toolkit", toolkit.key))
            for member in toolkit.members:
                answers.setdefault(member.tool, answer)
    return answers


def is_denied(context: rules.EvaluationContext, key: str) -> bool:
    """Return whether a rule denies the tool ``key``, even if it is unavailable and rule 1 decides."""
    tool = context.catalog.tools[key]
    return any(rule.answer(context, tool) is not None for rule in rules.DENYING_RULES)


def decide(context: rules.EvaluationContext, key: str) -> Decision:
    """Return the first rule's decision for the tool ``key``, before its agent's budget is applied."""
    closed = _closed(context, key)
    if closed is not None:
        return closed
    decision = _first(context, context.rules, key)
    if decision is None:
        raise AssertionError("the last rule always applies")
    return decision


def as_shown(stored: catalog.Catalog, decision: Decision) -> Decision:
    """Return a decision as people read it: a tool that an operator blocked is blocked, also if rule 1 makes it
    unavailable at the moment, because then it stays off when that ends.
    """
    if decision.rule_number != 1 or decision.tool not in stored.tools:
        return decision
    origin = rules.block_over(stored, stored.tools[decision.tool])
    return decision if origin is None else Decision(decision.tool, "denied", "blocked", 2, origin)


def _closed(context: rules.EvaluationContext, key: str) -> Decision | None:
    """Return the decision of the rules that depend only on the catalog, which caches it."""
    cache: dict[str, Decision | None] = context.catalog.derived.setdefault("closed", {})
    try:
        return cache[key]
    except KeyError:
        closed = cache[key] = _first(context, rules.CATALOG_RULES, key)
        return closed


def _first(context: rules.EvaluationContext, rules_: tuple[rules.Rule, ...], key: str) -> Decision | None:
    tool = context.catalog.tools[key]
    for number, _, apply in rules_:
        answer = apply(context, tool)
        if answer is not None:
            state, code, origin = answer
            return Decision(key, state, code, number, origin)
    return None


def trace(context: rules.EvaluationContext, key: str) -> tuple[Step, ...]:
    """Return the answer of every rule for the tool, including those after the one that decides."""
    tool = context.catalog.tools[key]
    return tuple(Step(number, text, apply(context, tool)) for number, text, apply in rules.RULES)


def denials(context: rules.EvaluationContext, key: str) -> tuple[Decision, ...]:
    """Return the decision of each of the rules 1 to 5 that applies: all of them keep the tool from being granted."""
    return tuple(
        Decision(key, step.answer.state, step.answer.code, step.rule_number, step.answer.origin)
        for step in trace(context, key)
        if step.rule_number <= 5 and step.answer is not None
    )


def candidates(context: rules.EvaluationContext) -> set[str]:
    """Return every tool that rules 6 to 9 could make active; may contain tools that are denied or do not exist."""
    result = {*context.granted_alone, *context.switched_on, *context.loaded}
    if not context.subagent:
        result |= context.tools_by_name
        for plugin in context.plugins_by_name:
            result.update(context.catalog.tools_of_plugin.get(plugin, ()))
    if context.loadout is None:
        result.update(context.catalog.default_on)
    else:
        result.update(loadouts.tools_included(context.catalog, context.loadout_name))
    return result


def active(context: rules.EvaluationContext) -> dict[str, Decision]:
    """Return the active tools before the budget is applied: decisions by key, in key order.

    The decisions are those of :func:`decide`, computed with sets and answers that many tools share.
    """
    stored, closed_keys = context.catalog, denied(context)
    has_names = bool(context.tools_by_name or context.plugins_by_name) and not context.subagent
    included = _included(context)
    active_tools: dict[str, Decision] = {}
    for key in sorted(candidates(context)):
        if key in closed_keys or key not in stored.tools or _closed(context, key) is not None:
            continue
        number, answer = 6, context.granted_alone.get(key)
        if answer is None:
            number, answer = 7, context.switched_on.get(key)
        if answer is None:
            number, answer = 8, context.loaded.get(key)
            if answer is None and has_names:
                answer = rules.loaded_by_name(context, stored.tools[key])
        if answer is None:
            number, answer = 9, included.get(key)
        if answer is not None:
            active_tools[key] = Decision(key, answer.state, answer.code, number, answer.origin)
    return active_tools


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
    return [
        key
        for key in sorted(among & candidates(context) & context.catalog.tools.keys())
        if (closed := _closed(context, key)) is not None
        and closed.code == code
        and (decision := _first(context, context.rules, key)) is not None
        and decision.state == "active"
    ]


def denied(context: rules.EvaluationContext) -> set[str]:
    """Return the tools that the agent's own configuration denies, by rules 3 to 5."""
    agent, stored = context.agent, context.catalog
    result = {key for key, on in agent.overrides.items() if not on}
    for key, on in agent.switches.items():
        if not on and key in stored.toolkits:
            result.update(member.tool for member in stored.toolkits[key].members)
    for view in context.denying:
        result |= loadouts.tools_disabled(stored, view.name)
    return result


def _included(context: rules.EvaluationContext) -> Mapping[str, rules.Answer]:
    """Return the answer of rule 9 for every tool that it makes active; cached with the catalog."""
    stored = context.catalog
    slot = ("brought", context.loadout_name if context.loadout is not None else None)
    cached: Mapping[str, rules.Answer] | None = stored.derived.get(slot)
    if cached is None:
        keys = (
            stored.default_on
            if context.loadout is None
            else loadouts.tools_included(stored, context.loadout_name)
        )
        answers = ((key, rules.included(context, stored.tools[key])) for key in keys)
        cached = {key: answer for key, answer in answers if answer is not None}
        stored.derived[slot] = cached
    return cached


def options(
    context: rules.EvaluationContext, tool: str
) -> tuple[Mapping[str, object] | None, conflicts.Conflict | None]:
    """Return the options of the tool's first source, and the conflict if a later source differs."""
    ranked = sources(context, tool)
    return (ranked[0].options, conflicts.first_conflict(ranked, tool)) if ranked else (None, None)


def sources(context: rules.EvaluationContext, tool: str) -> tuple[conflicts.Source, ...]:
    """Return the sources that grant the tool with options, by rank; a subagent has none."""
    if context.subagent:
        return ()
    definition = context.catalog.tools.get(tool)
    by_name = definition is not None and rules.loaded_by_name(context, definition) is not None
    return tuple(
        conflicts.sources(
            context.catalog,
            context.agent,
            tool,
            loaded=frozenset(context.toolkits).difference(context.initial),
            loaded_by_name=(tool,) if by_name else (),
        )
    )
