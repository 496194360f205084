"""Which tools does this agent have now, and why? (semantics: The resolution)

One list of questions; the first that answers decides. A resolution enumerates what is active, from what could make
a tool active, so that its cost follows the agent and not the catalog; any other tool is decided when somebody asks
for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from toolbelt.core import agents, catalog, conflicts, grants, loadouts, questions, sessions


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The frozen input of one resolution. ``session`` is None for a question without a session id."""

    catalog: catalog.Catalog
    agent: agents.Agent
    session: sessions.Session | None = None
    request_id: str | None = None
    subagent: str | None = None
    kind_loadouts: Mapping[str, str] = field(default_factory=lambda: agents.KIND_LOADOUTS)


class Decision(NamedTuple):
    """What was decided for one tool: ``question`` is the number (1 to 11) of the question that answered."""

    tool: str
    state: questions.State
    code: str
    question: int
    origin: questions.Origin


class Step(NamedTuple):
    """One question of a trace: its number, its words, and its answer (None: it does not apply)."""

    question: int
    asks: str
    answer: questions.Answer | None


def stand(snapshot: Snapshot) -> questions.Standing:
    """Work out what every question of this snapshot needs."""
    stored, agent, session = snapshot.catalog, snapshot.agent, snapshot.session
    subagent = bool(snapshot.subagent)
    own = agent.loadout_name(snapshot.kind_loadouts)
    equipped = session.loadout if session is not None else ""
    borrowed = snapshot.kind_loadouts.get(snapshot.subagent, "") if snapshot.subagent else ""
    in_force = borrowed if subagent else sessions.standing_in(session, agent.session_loadouts) or own
    # A subagent always has a loadout: a kind that maps to none brings nothing in, rather than the defaults.
    has_loadout = subagent or bool(in_force)
    # Of a loadout that the agent may not choose any more, the denials stay: taking it back widens nothing.
    views = [loadouts.view_in(stored, name) for name in dict.fromkeys((own, equipped, borrowed)) if name]
    denying = tuple([view for view in views if view.disabled])
    toolkits = sessions.in_allowed_order(
        sessions.counting(session, "toolkit", snapshot.request_id),
        agent.allowed_toolkits,
        agent.initial_toolkits,
    )
    initial = frozenset(agent.initial_toolkits).intersection(toolkits)
    alone = {} if subagent else _alone(stored, agent)
    switched_on = {} if subagent else _switched_on(stored, agent)
    idle = {
        3: False not in agent.switches.values(),
        4: False not in agent.overrides.values(),
        5: not denying,
        6: not alone,
        7: not switched_on,
        8: subagent,
    }
    return questions.Standing(
        catalog=stored,
        agent=agent,
        subagent=subagent,
        denying=denying,
        loadout=loadouts.view_in(stored, in_force) if has_loadout else None,
        loadout_name=in_force,
        toolkits=toolkits,
        initial=initial,
        loadable=frozenset(agent.allowed_toolkits).difference(toolkits),
        tools_by_name=sessions.counting(session, "tool", snapshot.request_id),
        plugins_by_name=sessions.counting(session, "plugin", snapshot.request_id),
        alone=alone,
        switched_on=switched_on,
        loaded={} if subagent else _loaded(stored, toolkits, initial),
        asked=tuple([question for question in questions.OF_THE_AGENT if not idle.get(question.number)]),
    )


def _alone(stored: catalog.Catalog, agent: agents.Agent) -> dict[str, questions.Answer]:
    """Answer question 6 for every tool that it makes active; what is written last is asked first."""
    found: dict[str, questions.Answer] = {}
    for tool, sub_app in stored.bound.get(agent.key, ()):
        found.setdefault(tool, questions.Answer("active", "sub-app", questions.Origin("sub-app", sub_app)))
    always_on = questions.Answer("active", "always-on", questions.Origin("agent", agent.key))
    found.update((always.tool, always_on) for always in agent.tools)
    for tool, on in agent.overrides.items():
        if on:
            origin = questions.Origin("override", tool, grants.until(agent, tool))
            found[tool] = questions.Answer("active", "override-on", origin)
    return found


def _switched_on(stored: catalog.Catalog, agent: agents.Agent) -> dict[str, questions.Answer]:
    found: dict[str, questions.Answer] = {}
    for toolkit in stored.in_order(key for key, on in agent.switches.items() if on):
        origin = questions.Origin("switch", toolkit.key, grants.until(agent, toolkit.key))
        answer = questions.Answer("active", "switch-on", origin)
        for member in toolkit.members:
            found.setdefault(member.tool, answer)
    return found


def _loaded(
    stored: catalog.Catalog, toolkits: Iterable[str], initial: frozenset[str]
) -> dict[str, questions.Answer]:
    found: dict[str, questions.Answer] = {}
    brought = (("initial", initial), ("loaded", [key for key in toolkits if key not in initial]))
    for code, held in brought:
        for toolkit in stored.in_order(held):
            answer = questions.Answer("active", code, questions.Origin("toolkit", toolkit.key))
            for member in toolkit.members:
                found.setdefault(member.tool, answer)
    return found


def decide(standing: questions.Standing, key: str) -> Decision:
    """Ask the questions in order about the tool ``key``, leaving its agent's budget aside."""
    closed = _closed(standing, key)
    if closed is not None:
        return closed
    decision = _first(standing, standing.asked, key)
    if decision is None:
        raise AssertionError("the last question always answers")
    return decision


def _closed(standing: questions.Standing, key: str) -> Decision | None:
    """Ask the questions that the catalog alone answers; kept with it."""
    kept: dict[str, Decision | None] = standing.catalog.derived.setdefault("closed", {})
    try:
        return kept[key]
    except KeyError:
        closed = kept[key] = _first(standing, questions.OF_THE_CATALOG, key)
        return closed


def _first(standing: questions.Standing, asked: tuple[questions.Question, ...], key: str) -> Decision | None:
    tool = standing.catalog.tools[key]
    for number, _, ask in asked:
        answer = ask(standing, tool)
        if answer is not None:
            state, code, origin = answer
            return Decision(key, state, code, number, origin)
    return None


def trace(standing: questions.Standing, key: str) -> tuple[Step, ...]:
    """Ask every question about the tool, also those after the one that decides."""
    tool = standing.catalog.tools[key]
    return tuple(Step(number, asks, ask(standing, tool)) for number, asks, ask in questions.QUESTIONS)


def candidates(standing: questions.Standing) -> set[str]:
    """Name everything that a question from 6 to 9 could make active: a superset of what is, and of what exists."""
    found = {*standing.alone, *standing.switched_on, *standing.loaded}
    if not standing.subagent:
        found |= standing.tools_by_name
        for plugin in standing.plugins_by_name:
            found.update(standing.catalog.tools_of_plugin.get(plugin, ()))
    if standing.loadout is None:
        found.update(standing.catalog.default_on)
    else:
        found.update(loadouts.tools_included(standing.catalog, standing.loadout_name))
    return found


def active(standing: questions.Standing) -> dict[str, Decision]:
    """Decide what is active, budget aside: a mapping by key, in key order.

    It says what :func:`decide` says of each candidate, by sets and answers that many tools share.
    """
    stored, shut = standing.catalog, _shut(standing)
    named = bool(standing.tools_by_name or standing.plugins_by_name) and not standing.subagent
    brought = _brought(standing)
    found: dict[str, Decision] = {}
    for key in sorted(candidates(standing)):
        if key in shut or key not in stored.tools or _closed(standing, key) is not None:
            continue
        number, answer = 6, standing.alone.get(key)
        if answer is None:
            number, answer = 7, standing.switched_on.get(key)
        if answer is None:
            number, answer = 8, standing.loaded.get(key)
            if answer is None and named:
                answer = questions.loaded_by_name(standing, stored.tools[key])
        if answer is None:
            number, answer = 9, brought.get(key)
        if answer is not None:
            found[key] = Decision(key, answer.state, answer.code, number, answer.origin)
    return found


def _shut(standing: questions.Standing) -> set[str]:
    """Name what the agent's own configuration denies it: what questions 3 to 5 answer for."""
    agent, stored = standing.agent, standing.catalog
    found = {key for key, on in agent.overrides.items() if not on}
    for key, on in agent.switches.items():
        if not on and key in stored.toolkits:
            found.update(member.tool for member in stored.toolkits[key].members)
    for view in standing.denying:
        found |= loadouts.tools_disabled(stored, view.name)
    return found


def _brought(standing: questions.Standing) -> Mapping[str, questions.Answer]:
    """Answer question 9 for every tool that it makes active; kept with the catalog."""
    stored = standing.catalog
    slot = ("brought", standing.loadout_name if standing.loadout is not None else None)
    known: Mapping[str, questions.Answer] | None = stored.derived.get(slot)
    if known is None:
        keys = (
            stored.default_on
            if standing.loadout is None
            else loadouts.tools_included(stored, standing.loadout_name)
        )
        answers = ((key, questions.brought(standing, stored.tools[key])) for key in keys)
        known = {key: answer for key, answer in answers if answer is not None}
        stored.derived[slot] = known
    return known


def options(
    standing: questions.Standing, tool: str
) -> tuple[Mapping[str, object] | None, conflicts.Conflict | None]:
    """Give the options that the tool's first source hands it, and the conflict if a later source differs."""
    found = sources(standing, tool)
    return (found[0].options, conflicts.among(found, tool)) if found else (None, None)


def sources(standing: questions.Standing, tool: str) -> tuple[conflicts.Source, ...]:
    """List what brings the tool with options of its own, first in rank first; nothing does for a subagent."""
    if standing.subagent:
        return ()
    known = standing.catalog.tools.get(tool)
    by_name = known is not None and questions.loaded_by_name(standing, known) is not None
    return tuple(
        conflicts.sources(
            standing.catalog,
            standing.agent,
            tool,
            loaded=frozenset(standing.toolkits).difference(standing.initial),
            loaded_by_name=(tool,) if by_name else (),
        )
    )
