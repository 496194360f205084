"""Blocking tools, toolkits and plugins for everyone (docs/semantics.md: The eleven rules).

No confirmation is needed, because it is for emergencies, and it can be undone like any other change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from toolbelt.control import writing
from toolbelt.control.access import access_index
from toolbelt.control.catalog import entries
from toolbelt.core import catalog, rules
from toolbelt.store import audit, snapshots

Kind = Literal["tool", "toolkit", "plugin"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockChange(writing.Change):
    """The result of blocking or unblocking.

    ``agents`` is how many of its tools, which are on, each agent loses or gets back. ``on_request`` are agents that
    have none of them on, but could use some on request.
    """

    agents: Mapping[str, int] = field(default_factory=dict)
    on_request: Sequence[str] = ()


def set_blocked(write: writing.Write, kind: Kind, name: str, on: bool, *, was: bool) -> BlockChange:
    """Block it for everyone, or unblock it; ``was`` is what the writer saw.

    Raise errors.NotFound, or errors.Stale if it changed meanwhile.
    """
    before = snapshots.catalog()
    # Entries omit default values.
    changes = {"blocked": True if on else None}
    change = entries.change(write, kind, name, changes, was={"blocked": True if was else None})
    # Counted afterwards, so that blocking need not wait for it, with the catalog in which the tools are available.
    stored = before if on else snapshots.catalog()
    affected = {} if change.is_nothing else _affected_agents(stored, kind, name)
    return BlockChange(
        entry=change.entry,
        before=change.before,
        after=change.after,
        result=change.result,
        agents={agent: count for agent, count in affected.items() if count},
        on_request=tuple(agent for agent, count in affected.items() if not count),
    )


def blocked(stored: catalog.Catalog) -> Iterator[tuple[Kind, str]]:
    """Yield everything that is blocked for everyone, as (kind, name)."""
    for plugin in stored.plugins.values():
        if plugin.blocked:
            yield "plugin", plugin.name
    for toolkit in stored.toolkits.values():
        if toolkit.blocked:
            yield "toolkit", toolkit.key
    for tool in stored.tools.values():
        if tool.blocked:
            yield "tool", tool.key


def latest_blocks(origins: Iterable[rules.Origin]) -> Mapping[tuple[str, str], audit.Entry]:
    """Return the audit entry of each of these blocks, if there is one, by kind and name; none need no query."""
    subjects = {(origin.kind, origin.name) for origin in origins}
    return audit.newest_of_value(subjects, "blocked", True) if subjects else {}


def _affected_agents(stored: catalog.Catalog, kind: Kind, name: str) -> dict[str, int]:
    """Return the number of these tools that are on, for each agent that has any of them, on or on request."""
    tools = set(_tools(stored, kind, name))
    counts = {}
    for access in access_index.load_uncached(stored).agents:
        count = len(tools.intersection(access.granted))
        if count or not tools.isdisjoint(access.on_request):
            counts[access.agent.key] = count
    return counts


def _tools(stored: catalog.Catalog, kind: Kind, name: str) -> tuple[str, ...]:
    if kind == "tool":
        return (name,)
    if kind == "toolkit":
        return access_index.members(stored, stored.toolkits[name])
    return tuple(stored.tools_of_plugin.get(name, ()))
