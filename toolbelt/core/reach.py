"""What a change of a configuration can concern: which agents and tools, so that only their calls are decided again.

It is found from the values before and after, so that nothing that changes them can be missed. Whatever is not certain
concerns everything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.core import agents, catalog, gate_rules, keys, loadouts, meta_tools

# The kinds of a catalog whose entries are compared.
_KINDS = ("plugins", "tools", "toolkits", "loadouts", "sub_apps", "gate_rules")
# With more names than this, reading everything is faster than naming each.
MAX_NAMES = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The calls of these agents, and those of these tools; or of everything (``is_all``)."""

    agents: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()
    is_all: bool = False

    def __or__(self, other: Reach) -> Reach:
        return Reach(
            agents=self.agents | other.agents,
            tools=self.tools | other.tools,
            is_all=self.is_all or other.is_all,
        )

    def covers(self, agent: str, tool: str) -> bool:
        """Return whether a call of this tool by this agent can be concerned."""
        return self.is_all or agent in self.agents or tool in self.tools

    @property
    def is_narrow(self) -> bool:
        """Return whether few enough names are concerned to name them."""
        return not self.is_all and len(self.agents) + len(self.tools) <= MAX_NAMES


EVERYTHING = Reach(is_all=True)
NOTHING = Reach()
Agents = Mapping[str, agents.Agent]


def between(
    before: catalog.Catalog,
    after: catalog.Catalog,
    agents_before: Agents,
    agents_after: Agents,
    kind_loadouts: Mapping[str, str],
) -> Reach:
    """Return what the difference of two configurations can concern."""
    every = {**agents_before, **agents_after}
    reach = Reach(agents=frozenset(key for key in every if agents_before.get(key) != agents_after.get(key)))
    if before is after:
        return reach
    if [*before.toolkits] != [*after.toolkits] and before.toolkits.keys() == after.toolkits.keys():
        return EVERYTHING
    if before.categories != after.categories or before.brings != after.brings:
        return EVERYTHING
    for kind in _KINDS:
        for name in _differing(getattr(before, kind), getattr(after, kind)):
            reach |= of_entry(kind, name, before, after, every.values(), kind_loadouts)
    return reach


def of_entry(
    kind: str,
    name: str,
    before: catalog.Catalog,
    after: catalog.Catalog,
    among: Collection[agents.Agent],
    kind_loadouts: Mapping[str, str],
) -> Reach:
    """Return what a change of an entry can concern; ``kind`` is its section of a belt."""
    sides = (before, after)
    match kind:
        case "tools":
            return _of_tools([name], among)
        case "plugins":
            return _of_tools([key for side in sides for key in side.tools_of_plugin.get(name, ())], among)
        case "toolkits":
            kits = [side.toolkits[name] for side in sides if name in side.toolkits]
            return _of_tools([member.tool for kit in kits for member in kit.members], among)
        case "gate_rules":
            rules = [(side, side.gate_rules[name]) for side in sides if name in side.gate_rules]
            tools = (tool.key for side, rule in rules for tool in gate_rules.tools_of(side, rule))
            return Reach(tools=frozenset(tools))
        case "sub_apps":
            apps = [side.sub_apps[name] for side in sides if name in side.sub_apps]
            return Reach(agents=frozenset(agent for app in apps for agent in app.agents))
        case "loadouts":
            if name in before.loadouts:
                # A session may have chosen it when its agent still could: then it denies for it.
                return EVERYTHING
            return having(name, after, among, kind_loadouts)
    return EVERYTHING


def _of_tools(tools: Iterable[str], among: Iterable[agents.Agent]) -> Reach:
    """Return the reach of tools: their calls and loads, and whatever an agent does whose budget defers for them."""
    deferring = (agent.key for agent in among if agent.budget is not None and agent.budget.defers)
    return Reach(agents=frozenset(deferring), tools=frozenset(tools).union(meta_tools.DEFINITIONS))


def having(
    loadout: str,
    stored: catalog.Catalog,
    among: Iterable[agents.Agent],
    kind_loadouts: Mapping[str, str],
) -> Reach:
    """Return the reach of the agents that have a loadout, or one that extends it: themselves, in their sessions or for
    their subagents.
    """
    folded = keys.fold(loadout)

    def has(agent: agents.Agent) -> bool:
        named = {agent.loadout_name(kind_loadouts), *agent.session_loadouts, *kind_loadouts.values()}
        chains = (loadouts.chain(stored.loadouts, name) for name in named)
        return any(keys.fold(link.name) == folded for chain in chains for link in chain)

    return Reach(agents=frozenset(agent.key for agent in among if has(agent)))


def _differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for name in {**before, **after}:
        if before.get(name) != after.get(name):
            yield name
