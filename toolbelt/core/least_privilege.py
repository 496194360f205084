"""The least that an agent needs: a smaller configuration in which all of its recorded calls still run.

Grants that no call used are cleared, never denied: switches and overrides that are on, always-on tools, and toolkits
that each session begins with. Toolkits without use become loadable on request. Then the agent gets a loadout of its
own, with the plugins and categories that it used. Each step is taken only if deciding the recorded calls again
(:mod:`toolbelt.core.replay`) finds none that would no longer run, if the agent can reach nothing more, and if a request
costs no more tokens: without what was cleared, a budget has room for tools that it had deferred. The steps are repeated
until none is left.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple, TypeVar

from toolbelt.core import (
    agents,
    catalog,
    definitions,
    keys,
    loadouts,
    meta_tools,
    policy,
    replay,
    rules,
    sessions,
)
from toolbelt.core.rules import budgets, resolution, targets

_Unit = TypeVar("_Unit")
# What a step does: it clears grants, lets toolkits be loaded instead, gives the agent its own loadout, or turns tools
# off.
StepKind = Literal["clear", "load", "loadout", "off"]
# Why a tool that was not called stays on.
Why = Literal["kept", "new", "ends", "unavailable", "not-recorded", "together"]
WHYS: Mapping[Why, str] = {
    "kept": "you keep it",
    "new": "the agent did not have it the whole time, or it was granted or reviewed meanwhile",
    "ends": "its grant expires",
    "unavailable": "it is not available now",
    "not-recorded": "its use is not recorded",
    "together": "its toolkit, plugin or category is used",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known of an agent's use: the facts of its ``calls``; the toolkits and tools that are ``new``, because it
    did not have them all the time; and the patterns of plugins, toolkits and tools to ``keep``.
    """

    calls: Collection[replay.Facts]
    new: Set[str] = frozenset()
    keep: Sequence[str] = ()


class Step(NamedTuple):
    """One step: the toolkits and tools that it is about, or what the loadout includes, and the tokens of a request
    before and after it.
    """

    kind: StepKind
    names: tuple[str, ...]
    before: int
    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Smaller:
    """An agent with less, and its own loadout if it gets one.

    ``before`` and ``after`` are its tools and tokens outside any session. ``unused`` are the tools that stay on and
    were not called, each with why.
    """

    agent: agents.Agent
    loadout: catalog.Loadout | None
    steps: tuple[Step, ...]
    before: budgets.Spent
    after: budgets.Spent
    unused: Mapping[str, Why]


class _State(NamedTuple):
    """A configuration that is tried: the catalog, the agent, and the agent's own loadout."""

    catalog: catalog.Catalog
    agent: agents.Agent
    loadout: catalog.Loadout | None = None


class _Grant(NamedTuple):
    """Something that an agent has been granted, with its tools."""

    kind: Literal["switch", "override", "always", "initial"]
    name: str
    tools: Collection[str]

    def cleared(self, agent: agents.Agent) -> agents.Agent:
        """Return the agent without it; what a toolkit has can be loaded instead."""
        match self.kind:
            case "switch":
                left = {key: on for key, on in agent.switches.items() if key != self.name}
                allowed = tuple(dict.fromkeys([*agent.allowed_toolkits, self.name]))
                return dataclasses.replace(agent, switches=left, allowed_toolkits=allowed)
            case "override":
                left = {key: on for key, on in agent.overrides.items() if key != self.name}
                return dataclasses.replace(agent, overrides=left)
            case "always":
                tools = tuple(always for always in agent.tools if always.tool != self.name)
                return dataclasses.replace(agent, tools=tools)
            case "initial":
                initial = tuple(key for key in agent.initial_toolkits if key != self.name)
                return dataclasses.replace(agent, initial_toolkits=initial)


def find(
    stored: catalog.Catalog,
    agent: agents.Agent,
    evidence: Evidence,
    *,
    kind_loadouts: Mapping[str, str] = agents.KIND_LOADOUTS,
    at: datetime,
    turn_off: bool = False,
) -> Smaller:
    """Return the agent with the least that all of its recorded calls need.

    With ``turn_off``, the rest of what was not called is turned off by overrides, which deny it.
    """
    search = _Search(stored, agent, evidence, kind_loadouts, at)
    before = search.resolved.spent
    while search.clear() | search.narrow() | (turn_off and search.turn_off()):
        pass
    return Smaller(
        agent=search.state.agent,
        loadout=search.state.loadout,
        steps=tuple(search.steps),
        before=before,
        after=search.resolved.spent,
        unused=search.unused(),
    )


@dataclass
class _Search:
    """The search for less, from the agent as it is."""

    stored: catalog.Catalog
    agent: agents.Agent
    evidence: Evidence
    kind_loadouts: Mapping[str, str]
    at: datetime
    steps: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.state = _State(self.stored, self.agent)
        self.resolved = self._resolve(self.state)
        self._tokens = _tokens(self.resolved)
        self._reach = _reach(self.resolved)
        self._today = self._judge(self.state)
        # What a record does not tell today, it tells in no configuration: its tool is spared by its name.
        self._calls = [
            call for call in self.evidence.calls if replay.compare(self._today, self._today, call) is None
        ]
        self._called = {call.tool for call in self.evidence.calls}

    def clear(self) -> bool:
        """Clear the grants that no call used; return whether there were any."""
        grants = [grant for grant in self._grants() if not any(map(self._is_spared, grant.tools))]
        before = self._tokens
        cleared = self._take_most(grants, lambda agent, taken: _without(agent, taken))
        parts: Sequence[tuple[StepKind, Collection[str]]] = (
            ("load", ("switch", "initial")),
            ("clear", ("override", "always")),
        )
        for kind, kinds in parts:
            names = tuple(grant.name for grant in cleared if grant.kind in kinds)
            if names:
                self.steps.append(Step(kind, names, before, self._tokens))
        return bool(cleared)

    def narrow(self) -> bool:
        """Give the agent its own loadout, with only what it used of the tools that its loadout brings. Return whether
        that saves tokens.
        """
        context = self.resolved.context
        brought = {
            key
            for key, decision in resolution.active(context).items()
            if decision.rule_number == rules.INCLUDING.number
        }
        name = context.loadout_name if context.loadout else None
        included = frozenset[str]().union(
            *[answers.tools for answers in rules.included(context.catalog, name)]
        )
        for among in (brought | rules.closed(context.catalog, included), included):
            needed = {key for key in context.not_denied(frozenset(among)) if self._is_spared(key)}
            if brought <= needed or (cover := _cover(context.catalog, needed, included, brought)) is None:
                continue
            loadout = _loadout(context.catalog, name or "", cover, self._loadout_name())
            others = [known for known in self.stored.loadouts.values() if known.name != loadout.name]
            proposed = _State(
                catalog.replace(self.stored, loadouts=[*others, loadout]),
                dataclasses.replace(self.state.agent, loadout=loadout.name),
                loadout,
            )
            # The tools are the same, and so are their definitions.
            definitions.computed(proposed.catalog).update(definitions.computed(self.stored))
            before = self._tokens
            if self._take(proposed, less=True):
                names = (*loadout.plugins, *loadout.categories)
                self.steps.append(Step("loadout", names, before, self._tokens))
                return True
        return False

    def turn_off(self) -> bool:
        """Turn off the tools that no call used; return whether there were any."""

        def off(agent: agents.Agent, tools: Collection[str]) -> agents.Agent:
            overrides = dict(sorted({**agent.overrides, **dict.fromkeys(tools, False)}.items()))
            return dataclasses.replace(agent, overrides=overrides)

        # What the budget defers would come back otherwise.
        present = self.resolved.tools | self.resolved.removed.keys()
        # An override that is on can be cleared, once nothing would come back for it.
        present -= {key for key, on in self.state.agent.overrides.items() if on}
        before = self._tokens
        taken = self._take_most([key for key in sorted(present) if not self._is_spared(key)], off)
        if taken:
            self.steps.append(Step("off", tuple(taken), before, self._tokens))
        return bool(taken)

    def unused(self) -> Mapping[str, Why]:
        """Return the tools that stay on and were not called, each with why."""
        return {
            key: self._why_spared(key) or "together"
            for key in sorted(self.resolved.tools)
            if key not in self._called
        }

    def _grants(self) -> Iterable[_Grant]:
        """Yield what could be cleared: what is on, and does not expire."""
        stored, agent = self.state.catalog, self.state.agent
        for key, on in agent.switches.items():
            if on and key in stored.toolkits and key not in agent.ends:
                yield _Grant("switch", key, rules.members(stored, key))
        for key, on in agent.overrides.items():
            if on and key in stored.tools and key not in agent.ends:
                yield _Grant("override", key, (key,))
        for always in agent.tools:
            if always.tool in stored.tools:
                yield _Grant("always", always.tool, (always.tool,))
        for key in agent.initial_toolkits:
            if key in stored.toolkits:
                yield _Grant("initial", key, rules.members(stored, key))

    def _take_most(
        self, units: Sequence[_Unit], act: Callable[[agents.Agent, Sequence[_Unit]], agents.Agent]
    ) -> list[_Unit]:
        """Change the agent by as many of these units as possible: by all, else by as many of each half."""
        if not units:
            return []
        if self._take(self.state._replace(agent=act(self.state.agent, units))):
            return [*units]
        if len(units) == 1:
            return []
        middle = len(units) // 2
        return [*self._take_most(units[:middle], act), *self._take_most(units[middle:], act)]

    def _take(self, proposed: _State, *, less: bool = False) -> bool:
        """Go on with a configuration if all recorded calls still run in it, nothing more can be reached, and it costs
        no more; with ``less``, it must cost less.
        """
        resolved = self._resolve(proposed)
        tokens = _tokens(resolved)
        if tokens > self._tokens or (less and tokens == self._tokens) or not _reach(resolved) <= self._reach:
            return False
        judge = self._judge(proposed)
        if any(_is_worse(replay.compare(self._today, judge, call)) for call in self._calls):
            return False
        self.state, self.resolved, self._tokens = proposed, resolved, tokens
        return True

    def _judge(self, state: _State) -> replay.Judge:
        return replay.Judge(state.catalog, {state.agent.key: state.agent}, self.kind_loadouts, self.at)

    def _resolve(self, state: _State) -> budgets.Resolution:
        return budgets.resolve(
            resolution.Snapshot(
                catalog=state.catalog,
                agent=state.agent,
                session=sessions.NEW,
                kind_loadouts=self.kind_loadouts,
            )
        )

    def _is_spared(self, tool: str) -> bool:
        return tool in self._called or self._why_spared(tool) is not None

    def _why_spared(self, tool: str) -> Why | None:
        """Return why a tool that was not called stays as it is; None if nothing speaks for it."""
        stored = self.stored
        value, kits = stored.tools[tool], [kit.key for kit in stored.toolkits_of.get(tool, ())]
        names = [tool, *kits, *filter(None, [value.plugin])]
        if any(loadouts.matches(pattern, name) for pattern in self.evidence.keep for name in names):
            return "kept"
        if not self.evidence.new.isdisjoint([tool, *kits]):
            return "new"
        if not self.agent.ends.keys().isdisjoint([tool, *kits]):
            return "ends"
        if tool in stored.non_tools:
            return "not-recorded"
        if not value.retired and rules.closing(stored, tool) is not None:
            return "unavailable"
        return None

    def _loadout_name(self) -> str:
        """Return a name that no stored loadout has."""
        base = f"{self.agent.key[: keys.MAX_LENGTH - 8]}-used"
        names = itertools.chain([base], (f"{base}-{number}" for number in itertools.count(2)))
        return next(name for name in names if not loadouts.chain(self.stored.loadouts, name))


def _is_worse(answer: replay.Difference | replay.Unproven | None) -> bool:
    """Return whether a call would no longer run, or may not. What has room in a budget now may run: it is in reach."""
    return isinstance(answer, replay.Unproven) or (answer is not None and answer.after.kind != "runs")


def _without(agent: agents.Agent, grants: Iterable[_Grant]) -> agents.Agent:
    for grant in grants:
        agent = grant.cleared(agent)
    return agent


def _reach(resolved: budgets.Resolution) -> frozenset[str]:
    """Return everything that the agent has, and can load."""
    return resolved.tools | resolved.others | resolved.on_request


def _tokens(resolved: budgets.Resolution) -> int:
    """Return the tokens of a request in a new session, with the meta-tools and the list of what can be loaded."""
    stored = resolved.context.catalog
    count = stored.count_tokens
    loadable = [stored.toolkits[key] for key in targets.loadable(resolved)]
    if count is None or not (loadable or targets.is_anything_to_change(resolved)):
        return resolved.spent.tokens
    listed = policy.with_loadable(policy.EMPTY, loadable).text
    return resolved.spent.tokens + count(listed) + _meta_tokens(stored, count)


@catalog.derived
def _meta_tokens(stored: catalog.Catalog, count: Callable[[str], int]) -> int:
    """Return the tokens of the meta-tools."""
    return sum(
        count(catalog.model_json(tool.name, tool.description, tool.input_schema))
        for tool in meta_tools.DEFINITIONS.values()
    )


class _Included(NamedTuple):
    """A plugin or a category that a loadout can include, with its tools."""

    kind: Literal["plugin", "category"]
    name: str
    tools: Collection[str]


def _cover(
    stored: catalog.Catalog, needed: Collection[str], included: Collection[str], brought: Collection[str]
) -> list[_Included] | None:
    """Return the plugins and categories that have these tools and cost the least tokens; None if there are none.

    They have no tools but those that the loadout includes now. For each tool, the one that costs less is chosen.
    """

    def tokens(candidate: _Included) -> int:
        return definitions.tokens(stored, [key for key in candidate.tools if key in brought])

    chosen: dict[tuple[str, str], _Included] = {}
    covered: set[str] = set()
    for key in sorted(needed):
        if key in covered:
            continue
        tool = stored.tools[key]
        candidates = [
            _Included("plugin", tool.plugin, stored.tools_of_plugin.get(tool.plugin, ())),
            _Included("category", (name := stored.category(tool)), stored.tools_of_category.get(name, ())),
        ]
        narrow = [
            candidate
            for candidate in candidates
            if candidate.name
            and all(tool in included or stored.tools[tool].retired for tool in candidate.tools)
        ]
        if not narrow:
            return None
        best = min(narrow, key=tokens)
        chosen[best[:2]] = best
        covered.update(best.tools)
    for place, one in sorted(chosen.items(), key=lambda item: -tokens(item[1])):
        others = frozenset[str]().union(*[other.tools for at, other in chosen.items() if at != place])
        if others.issuperset(key for key in one.tools if key in needed):
            del chosen[place]
    return [*chosen.values()]


def _loadout(
    stored: catalog.Catalog, name: str, cover: Collection[_Included], own_name: str
) -> catalog.Loadout:
    """Return a loadout that includes only this, with the patterns and the denials of the one with this name."""
    chain = loadouts.chain(stored.loadouts, name)

    def union(field: str) -> tuple[str, ...]:
        return tuple(
            {keys.fold(text): text for link in reversed(chain) for text in getattr(link, field)}.values()
        )

    return catalog.Loadout(
        name=own_name,
        description=f"What the calls used{f' of {chain[0].name}' if chain else ''}.",
        plugins=tuple(sorted(one.name for one in cover if one.kind == "plugin")),
        categories=tuple(sorted(one.name for one in cover if one.kind == "category")),
        discoverable=union("discoverable"),
        disabled=union("disabled"),
        denied_risks=tuple(dict.fromkeys(risk for link in chain for risk in link.denied_risks)),
    )
