"""The eleven rules that decide about a tool (docs/semantics.md: The eleven rules).

Each rule is stated once, as sets of tools with the answer for them: which tools an agent has follows from the sets, and
why from the answers. Denials come first: rules 1 to 5 deny, 6 to 9 grant, 10 offers, and nothing that an agent can do
(load, rule 8) precedes a denial.

The modules of this package use them: `resolution` decides about an agent's tools, `budgets` defers what does not fit,
`targets` says what a session can load, `inventory` takes an agent's tools without a session, and `reasons` has the
words.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from toolbelt.core import (
    agents,
    catalog,
    declared_versions,
    grants,
    keys,
    loadouts,
    risks,
    sessions,
    tool_versions,
)

State = Literal["active", "discoverable", "denied", "dormant", "unavailable"]
STATES: tuple[State, ...] = ("active", "discoverable", "denied", "dormant", "unavailable")
_NOTHING: frozenset[str] = frozenset()


class Origin(NamedTuple):
    """The origin of a decision: its ``kind`` (switch, override, loadout, …), its ``name``, and a ``detail``."""

    kind: str
    name: str
    detail: str = ""


class Answer(NamedTuple):
    """The result of a rule that applies."""

    state: State
    code: str
    origin: Origin


class Answers:
    """Which tools a rule applies to, and with which answer.

    They are given as sets of tools, each with an origin: a tool has the first origin of its sets.
    """

    # Not `functools.cached_property`, whose lock takes longer than most of these answers.
    __slots__ = ("_but", "_by_tool", "_code", "_sets", "_state", "_tools")

    def __init__(
        self,
        state: State,
        code: str,
        sets: Iterable[tuple[Collection[str], Origin]],
        but: frozenset[str] = _NOTHING,
    ) -> None:
        """Answer with this state and code for the tools of these sets, except those in ``but``.

        Leaving them out here copies no set, which agents may share.
        """
        self._state, self._code, self._sets, self._but = state, code, tuple(sets), but
        self._tools: frozenset[str] | None = None
        self._by_tool: Mapping[str, Answer] | None = None

    @property
    def tools(self) -> frozenset[str]:
        """All of the tools."""
        if self._tools is None:
            self._tools = self._union - self._but if self._but else self._union
        return self._tools

    @property
    def _union(self) -> frozenset[str]:
        sets = [tools for tools, _ in self._sets]
        if len(sets) == 1 and isinstance(sets[0], frozenset):
            return sets[0]
        return _NOTHING.union(*sets)

    def removed_from(self, tools: frozenset[str]) -> frozenset[str]:
        """Return those of these tools that the rule does not apply to, without walking through all that it does."""
        if not self._but:
            return tools - self.tools
        return (tools - self._union) | (tools & self._but)

    @property
    def by_tool(self) -> Mapping[str, Answer]:
        """The answer for each of the tools."""
        if self._by_tool is None:
            answers: dict[str, Answer] = {}
            for tools, origin in reversed(self._sets):
                answers.update(dict.fromkeys(tools, Answer(self._state, self._code, origin)))
            for tool in self._but:
                answers.pop(tool, None)
            self._by_tool = answers
        return self._by_tool

    def get(self, tool: str) -> Answer | None:
        """Return the answer for a tool; None if the rule does not apply to it."""
        if len(self._sets) != 1:
            return self.by_tool.get(tool)
        tools, origin = self._sets[0]
        if tool not in tools or tool in self._but:
            return None
        return Answer(self._state, self._code, origin)


class CatalogRule(NamedTuple):
    """A rule that depends only on the catalog: its number, its text, and the function that applies it to a tool."""

    number: int
    text: str
    answer: Callable[[catalog.Catalog, catalog.Tool], Answer | None]


class AgentRule(NamedTuple):
    """A rule that depends on the agent and its session: its number, its text, and what it answers in a context.

    Of its answers, the first for a tool counts.
    """

    number: int
    text: str
    answers: Callable[[EvaluationContext], Sequence[Answers]]


@dataclass(frozen=True, kw_only=True)
class EvaluationContext:
    """A snapshot with the values that its rules share, and what they answer.

    ``subagent_kind`` is the kind of the subagent that requests, as its agent states it; empty: none. ``denying`` are
    the names of all loadouts whose disabled entries and denied risks apply, ``loadout`` is the one in force.
    ``load_order`` is what the session loaded, the oldest load first. ``has_session``: the request has a session, in
    which something can be loaded.
    """

    catalog: catalog.Catalog
    agent: agents.Agent
    subagent: bool
    subagent_kind: str
    has_session: bool
    denying: tuple[str, ...]
    loadout: loadouts.View | None
    loadout_name: str
    toolkits: tuple[str, ...]
    initial: frozenset[str]
    loadable: frozenset[str]
    tools_by_name: frozenset[str]
    plugins_by_name: frozenset[str]
    load_order: tuple[tuple[sessions.Kind, str], ...]
    _answers: dict[int, Sequence[Answers]] = field(default_factory=dict, compare=False, repr=False)

    def answers(self, rule: AgentRule) -> Sequence[Answers]:
        """Return what a rule answers."""
        answers = self._answers.get(rule.number)
        if answers is None:
            answers = self._answers[rule.number] = rule.answers(self)
        return answers

    @functools.cached_property
    def in_order(self) -> Sequence[tuple[int, Answers]]:
        """The answers of all rules that depend on the agent, with their numbers."""
        return [(rule.number, answers) for rule in AGENT_RULES for answers in self.answers(rule)]

    def tools(self, rules: Iterable[AgentRule]) -> frozenset[str]:
        """Return the tools that these rules apply to."""
        sets = [answers.tools for rule in rules for answers in self.answers(rule)]
        return sets[0] if len(sets) == 1 else _NOTHING.union(*sets)

    @functools.cached_property
    def denied(self) -> frozenset[str]:
        """The tools that the agent's own configuration denies: for lists. They may be most of the catalog."""
        return self.tools(DENYING)

    def denies(self, tool: str) -> bool:
        """Return whether the agent's own configuration denies the tool."""
        return any(answers.get(tool) for rule in DENYING for answers in self.answers(rule))

    def not_denied(self, tools: frozenset[str]) -> frozenset[str]:
        """Return those of the tools that the agent's own configuration does not deny."""
        for rule in DENYING:
            for answers in self.answers(rule):
                tools = answers.removed_from(tools)
        return tools

    @property
    def granted(self) -> frozenset[str]:
        """The tools that are granted to the agent alone, whatever a loadout or a default includes."""
        return self.tools(GRANTING)

    @functools.cached_property
    def active(self) -> frozenset[str]:
        """The active tools, before the budget is applied."""
        # What a loadout includes is much, and shared by many agents, as what loadouts and denied risks take from it:
        # only what the agent's own switches and overrides take is computed here.
        included = _open_and_included(
            self.catalog,
            self.loadout_name if self.loadout else None,
            tuple(map(keys.fold, self.denying)),
            self.agent.denied_risks,
        )
        taken = included & self.tools(BY_SWITCH)
        granted = self.not_denied(self.granted)
        return (included - taken) | (granted - closed(self.catalog, granted))

    def offered(self, active: Set[str]) -> frozenset[str]:
        """Return the tools that the agent could load, besides those that are ``active``."""
        offered = self.not_denied(self.tools((OFFERING,)) - active)
        return offered - closed(self.catalog, offered)

    @functools.cached_property
    def concerned(self) -> frozenset[str]:
        """The toolkits with an off text that concern the agent, whose off text it gets while no member is active.

        The agent's configuration names them (with a switch, or in its allowed toolkits) or one of their members (with
        an override, as an always-on tool, or in a sub-app), or its loadout (or what is on by default) includes one, or
        the session has one of the tools loaded by name. It does not matter whether a block, a denial or an outage takes
        that away.
        """
        stored, agent = self.catalog, self.agent
        if not stored.with_off_text:
            return _NOTHING
        tools = {*agent.overrides}
        if not self.subagent:
            tools.update(*[answers.tools for answers in loaded_by_name(self)])
            tools.update(always.tool for always in agent.tools)
            tools.update(tool for tool, _ in stored.bound.get(agent.key, ()))
        named = {*agent.switches, *agent.allowed_toolkits}
        named.update(kit.key for tool in tools for kit in stored.toolkits_of.get(tool, ()))
        brought = _with_included_members(stored, self.loadout_name if self.loadout else None)
        return brought.union(named & stored.with_off_text.keys())


@catalog.derived
def members(stored: catalog.Catalog, toolkit: str) -> frozenset[str]:
    """Return the members of a toolkit that exist."""
    return frozenset(
        member.tool for member in stored.toolkits[toolkit].members if member.tool in stored.tools
    )


@dataclass(frozen=True, slots=True)
class _Closed:
    """The tools that were decided by the rules of the catalog, those of them that are closed, and by which answer.

    Each is decided when it is first asked for, because comparing a tool with its approved version takes time.
    """

    decided: set[str] = field(default_factory=set)
    tools: set[str] = field(default_factory=set)
    answers: dict[str, tuple[int, Answer]] = field(default_factory=dict)


@catalog.derived
def _closed(stored: catalog.Catalog) -> _Closed:
    return _Closed()


def closed(stored: catalog.Catalog, among: Set[str]) -> Set[str]:
    """Return those of the tools that no agent can have: unavailable or blocked (rules 1 and 2)."""
    known = _closed(stored)
    if len(known.decided) < len(stored.tools):
        for key in among - known.decided:
            for rule in CATALOG_RULES:
                answer = rule.answer(stored, stored.tools[key])
                if answer is not None:
                    known.answers[key] = rule.number, answer
                    known.tools.add(key)
                    break
            known.decided.add(key)
    return known.tools & among


def closing(stored: catalog.Catalog, key: str) -> tuple[int, Answer] | None:
    """Return the number of the rule that closes a tool for all agents, and its answer; None if it is open."""
    known = _closed(stored)
    if key not in known.decided:
        closed(stored, {key})
    return known.answers.get(key)


def pattern_for(context: EvaluationContext, tool: catalog.Tool) -> str | None:
    """Return the pattern of the loadout in force that makes the tool discoverable, or None."""
    if context.loadout is None or not context.loadout.patterns:
        return None
    return context.loadout.discovers(tool.key) or context.loadout.discovers(tool.plugin)


def block_over(stored: catalog.Catalog, tool: catalog.Tool) -> Origin | None:
    """Return what is blocked for everyone: the tool, its plugin or one of its toolkits; None if nothing is. The detail
    is until when.
    """
    if tool.blocked:
        return Origin("tool", tool.key, grants.until(tool.block_ends))
    plugin = stored.plugins.get(tool.plugin)
    if plugin is not None and plugin.blocked:
        return Origin("plugin", plugin.name, grants.until(plugin.block_ends))
    for toolkit in stored.toolkits_of.get(tool.key, ()):
        if toolkit.blocked:
            return Origin("toolkit", toolkit.key, grants.until(toolkit.block_ends))
    return None


def _unavailable(stored: catalog.Catalog, tool: catalog.Tool) -> Answer | None:
    plugin = stored.plugins.get(tool.plugin)
    if plugin is not None and plugin.status == "failed":
        return Answer("unavailable", "plugin-failed", Origin("plugin", plugin.name))
    if plugin is not None and not plugin.active:
        return Answer("unavailable", "plugin-disabled", Origin("plugin", plugin.name))
    if tool.retired:
        return Answer("unavailable", "tool-retired", Origin("tool", tool.key))
    if stored.is_not_running(tool.key):
        return Answer("unavailable", "not-running", Origin("plugin", tool.plugin))
    if tool.schema_problem:
        return Answer("unavailable", "schema-invalid", Origin("tool", tool.key, tool.schema_problem))
    if tool.blocked and tool_versions.is_rejected(tool):
        return None  # blocked until it is reviewed again
    if not tool.seen and not (plugin is not None and plugin.trusted):
        return Answer("unavailable", "tool-unseen", Origin("tool", tool.key))
    if tool_versions.is_changed(declared_versions.offered(tool)):
        return Answer("unavailable", "tool-changed", Origin("tool", tool.key))
    return None


def _blocked(stored: catalog.Catalog, tool: catalog.Tool) -> Answer | None:
    origin = block_over(stored, tool)
    return Answer("denied", "blocked", origin) if origin is not None else None


def _switched(context: EvaluationContext, state: State, code: str, *, on: bool) -> tuple[Answers, ...]:
    agent, stored = context.agent, context.catalog
    toolkits = stored.in_order(key for key, is_on in agent.switches.items() if is_on is on)
    if not toolkits:
        return ()
    sets = [
        (members(stored, kit.key), Origin("switch", kit.key, grants.describe_expiry(agent, kit.key)))
        for kit in toolkits
    ]
    return (Answers(state, code, sets),)


def _overridden(context: EvaluationContext, state: State, code: str, *, on: bool) -> tuple[Answers, ...]:
    agent = context.agent
    sets = [
        ((key,), Origin("override", key, grants.describe_expiry(agent, key)))
        for key, is_on in agent.overrides.items()
        if is_on is on and key in context.catalog.tools
    ]
    return (Answers(state, code, sets),) if sets else ()


def _switched_off(context: EvaluationContext) -> tuple[Answers, ...]:
    return _switched(context, "denied", "switch-off", on=False)


def _overridden_off(context: EvaluationContext) -> tuple[Answers, ...]:
    return _overridden(context, "denied", "override-off", on=False)


def _denied_by_profile(context: EvaluationContext) -> tuple[Answers, ...]:
    stored, agent = context.catalog, context.agent
    if not context.denying and not agent.denied_risks:
        return ()
    denying = list(map(keys.fold, context.denying))
    return (
        *[_disabled_by(stored, name) for name in denying],
        *[answers for name in denying for answers in _risky_by(stored, name)],
        *_risky(context),
    )


def _risky(context: EvaluationContext) -> Iterator[Answers]:
    """Yield the answers for the risks that the agent denies. An override that is on lifts that, except for subagents,
    which have no tool by an override.
    """
    agent = context.agent
    lifted = (
        _NOTHING if context.subagent else frozenset(key for key, is_on in agent.overrides.items() if is_on)
    )
    for risk in agent.denied_risks:
        tools = risks.tools_with(context.catalog, risk)
        yield Answers(
            "denied", "risk-denied", [(tools, Origin("agent", agent.key, risk))], but=lifted & tools
        )


@catalog.derived
def _risky_by(stored: catalog.Catalog, loadout: str) -> tuple[Answers, ...]:
    return tuple(
        Answers("denied", "risk-denied", [(tools, Origin("loadout", origin, risk))])
        for risk, origin, tools in loadouts.risky_sets(stored, loadout)
    )


@catalog.derived
def _disabled_by(stored: catalog.Catalog, loadout: str) -> Answers:
    view = loadouts.view_in(stored, loadout)
    sets = []
    for origin, tools in loadouts.disabled_sets(stored, loadout):
        level = view.chain.index(origin) + 1
        sets.append((tools, Origin("loadout", origin, f"level {level} of {view.name}")))
    return Answers("denied", "loadout-disabled", sets)


def _granted_alone(context: EvaluationContext) -> tuple[Answers, ...]:
    if context.subagent:
        return ()
    stored, agent = context.catalog, context.agent
    answers = [*_overridden(context, "active", "override-on", on=True)]
    if agent.tools:
        tools = stored.tools.keys() & {always.tool for always in agent.tools}
        answers.append(Answers("active", "always-on", [(tools, Origin("agent", agent.key))]))
    if bound := stored.bound.get(agent.key):
        sets = [((tool,), Origin("sub-app", sub_app)) for tool, sub_app in bound]
        answers.append(Answers("active", "sub-app", sets))
    return tuple(answers)


def _switched_on(context: EvaluationContext) -> tuple[Answers, ...]:
    return () if context.subagent else _switched(context, "active", "switch-on", on=True)


def _loaded(context: EvaluationContext) -> tuple[Answers, ...]:
    if context.subagent:
        return ()
    if not context.toolkits:
        return loaded_by_name(context)
    loaded = [key for key in context.toolkits if key not in context.initial]
    return (
        *_of_toolkits(context, "active", "initial", context.initial),
        *_of_toolkits(context, "active", "loaded", loaded),
        *loaded_by_name(context),
    )


def _of_toolkits(
    context: EvaluationContext, state: State, code: str, toolkits: Collection[str]
) -> tuple[Answers, ...]:
    if not toolkits:
        return ()
    stored = context.catalog
    sets = [(members(stored, kit.key), Origin("toolkit", kit.key)) for kit in stored.in_order(toolkits)]
    return (Answers(state, code, sets),)


def loaded_by_name(context: EvaluationContext) -> tuple[Answers, ...]:
    """Return the answers for tools that were loaded by their names or their plugins', while a pattern still matches."""
    if not (context.tools_by_name or context.plugins_by_name):
        return ()
    stored = context.catalog
    named = [
        *[("tool", key, key) for key in context.tools_by_name],
        *[
            ("plugin", name, key)
            for name in context.plugins_by_name
            for key in stored.tools_of_plugin.get(name, ())
        ],
    ]
    sets = [
        ((key,), Origin(kind, name, pattern))
        for kind, name, key in named
        if key in stored.tools and (pattern := pattern_for(context, stored.tools[key]))
    ]
    return (Answers("active", "loaded", sets),) if sets else ()


def _included(context: EvaluationContext) -> tuple[Answers, ...]:
    return included(context.catalog, context.loadout_name if context.loadout else None)


def included(stored: catalog.Catalog, loadout: str | None) -> tuple[Answers, ...]:
    """Return the answers for what the loadout includes, or for what is on by default without one (None)."""
    return _included_by(stored, None if loadout is None else keys.fold(loadout))


@catalog.derived
def _included_by(stored: catalog.Catalog, loadout: str | None) -> tuple[Answers, ...]:
    if loadout is None:
        sets = [((key,), Origin("tool", key)) for key in stored.default_on]
        return (Answers("active", "default-on", sets),)
    return tuple(
        Answers(
            "active",
            f"loadout-{kind}",
            [
                (tools, Origin("loadout", origin, name))
                for kind_, name, origin, tools in loadouts.included_sets(stored, loadout)
                if kind_ == kind
            ],
        )
        for kind in ("plugin", "category")
    )


def _open_and_included(
    stored: catalog.Catalog,
    loadout: str | None,
    denying: tuple[str, ...],
    denied_risks: tuple[catalog.DeniedRisk, ...],
) -> frozenset[str]:
    """Return what the loadout includes that is open and that neither the ``denying`` loadouts nor the risks deny. What
    an override lifts is granted by that.
    """
    return _open_and_included_by(
        stored, None if loadout is None else keys.fold(loadout), denying, denied_risks
    )


@catalog.derived
def _open_and_included_by(
    stored: catalog.Catalog,
    loadout: str | None,
    denying: tuple[str, ...],
    denied_risks: tuple[catalog.DeniedRisk, ...],
) -> frozenset[str]:
    if denying or denied_risks:
        return _open_and_included_by(stored, loadout, (), ()).difference(
            *[_disabled_by(stored, name).tools for name in denying],
            *[answers.tools for name in denying for answers in _risky_by(stored, name)],
            *[risks.tools_with(stored, risk) for risk in denied_risks],
        )
    tools = _NOTHING.union(*[answers.tools for answers in included(stored, loadout)])
    return tools - closed(stored, tools)


def _with_included_members(stored: catalog.Catalog, loadout: str | None) -> frozenset[str]:
    return _with_included_members_by(stored, None if loadout is None else keys.fold(loadout))


@catalog.derived
def _with_included_members_by(stored: catalog.Catalog, loadout: str | None) -> frozenset[str]:
    """Return the toolkits with an off text of which the loadout includes a member, and does not disable it."""
    tools = {*(stored.default_on if loadout is None else loadouts.tools_included(stored, loadout))}
    return frozenset(key for key in stored.with_off_text if not tools.isdisjoint(members(stored, key)))


def _discoverable(context: EvaluationContext) -> tuple[Answers, ...]:
    loadable = _of_toolkits(context, "discoverable", "loadable", context.loadable)
    if context.loadout is None or not context.loadout.patterns:
        return loadable
    return (*loadable, _matched_by(context.catalog, keys.fold(context.loadout_name)))


@catalog.derived
def _matched_by(stored: catalog.Catalog, loadout: str) -> Answers:
    patterns = loadouts.view_in(stored, loadout).patterns
    return Answers(
        "discoverable",
        "pattern",
        [
            (tools, Origin("loadout", patterns[pattern], pattern))
            for pattern, tools in loadouts.matched_sets(stored, loadout)
        ],
    )


def _otherwise(context: EvaluationContext) -> tuple[Answers, ...]:
    return (Answers("dormant", "not-granted", [(context.catalog.tools, Origin("agent", context.agent.key))]),)


CATALOG_RULES = (
    CatalogRule(
        1,
        "Has its plugin failed or been disabled, or is the tool retired, not running, invalid, new, or changed?",
        _unavailable,
    ),
    CatalogRule(2, "Is the tool, its plugin or one of its toolkits blocked for everyone?", _blocked),
)
BY_SWITCH = (
    AgentRule(3, "Is the switch of one of its toolkits off?", _switched_off),
    AgentRule(4, "Is its override off?", _overridden_off),
)
DENYING = (
    *BY_SWITCH,
    AgentRule(
        5,
        "Does the agent's loadout, or one that it extends, disable the tool or its plugin, or deny its risk? Or does"
        " the agent deny its risk, while its override is not on?",
        _denied_by_profile,
    ),
)
BY_OPERATORS = (
    AgentRule(6, "Is its override on, is it an always-on tool, or does a sub-app bind it?", _granted_alone),
    AgentRule(7, "Is the switch of one of its toolkits on?", _switched_on),
)
GRANTING = (
    *BY_OPERATORS,
    AgentRule(8, "Is it in a toolkit that this session has, or was it loaded by name?", _loaded),
)
INCLUDING = AgentRule(
    9,
    "Does the loadout include its plugin or category? Or, without a loadout, is it on by default?",
    _included,
)
OFFERING = AgentRule(
    10,
    "Is it in a toolkit that the agent may load, or does a pattern of the agent's loadout match it?",
    _discoverable,
)
AGENT_RULES = (*DENYING, *GRANTING, INCLUDING, OFFERING, AgentRule(11, "Otherwise", _otherwise))
RULES: tuple[CatalogRule | AgentRule, ...] = (*CATALOG_RULES, *AGENT_RULES)
