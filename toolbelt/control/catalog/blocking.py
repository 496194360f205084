"""Blocking tools, toolkits and plugins for everyone (docs/semantics.md: The eleven rules).

No confirmation is needed, because it is for emergencies, and it can be undone like any other change.
"""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from toolbelt.control import impacts, writing
from toolbelt.control.access import access_index
from toolbelt.control.catalog import entries
from toolbelt.core import catalog, effects, errors, grants, rules
from toolbelt.store import audit, snapshots

Kind = Literal["tool", "toolkit", "plugin"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
# The fields of an entry that say whether it is blocked.
FIELDS: Final = frozenset({"blocked", "block_ends"})


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockChange(writing.Change):
    """The result of blocking or unblocking.

    ``agents`` is how many of its tools, which are on, each agent loses or gets back. ``on_request`` are agents that
    have none of them on, but could use some on request. ``conversations`` are the live ones of all of these.
    """

    agents: Mapping[str, int] = field(default_factory=dict)
    on_request: Sequence[str] = ()
    conversations: effects.Conversations = effects.NO_CONVERSATIONS

    @property
    def is_moved(self) -> bool:
        """Return whether something is blocked, or no longer, that was not before."""
        return "blocked" in {**self.before, **self.after}


def find(target: str) -> tuple[Kind, str]:
    """Return the kind and the name of what ``target`` names: a tool, a toolkit or a plugin, by its name alone or with
    its kind before it, as in ``plugin:slack``.

    Raise errors.NotFound, or errors.Refused for a name of several of them.
    """
    stored = snapshots.catalog()
    kinds: Mapping[Kind, Collection[str]] = {
        "tool": stored.tools,
        "toolkit": stored.toolkits,
        "plugin": stored.plugins,
    }
    found = [kind for kind, names in kinds.items() if target in names]
    if len(found) > 1:
        forms = " or ".join(f"{kind}:{target}" for kind in found)
        raise errors.Refused(f"{target} is the name of a {' and of a '.join(found)}: write {forms}.")
    if found:
        return found[0], target
    prefix, colon, name = target.partition(":")
    for kind, names in kinds.items():
        if colon and kind == prefix:
            if name not in names:
                raise errors.NotFound(kind, name, names)
            return kind, name
    raise errors.NotFound("tool, toolkit or plugin", target, itertools.chain(*kinds.values()))


def set_blocked(
    write: writing.Write,
    kind: Kind,
    name: str,
    on: bool,
    *,
    ends: dt.datetime | None = None,
    was: bool | writing._Any = writing.ANY,
) -> BlockChange:
    """Block it for everyone, until ``ends`` if given, or unblock it; ``was`` is what the writer saw.

    Raise errors.NotFound, errors.Stale if it changed meanwhile, or errors.Invalid for an end in the past, or of a block
    that has none.
    """
    # Entries omit default values.
    seen = None if isinstance(was, writing._Any) else {"blocked": True if was else None}
    end = grants.format_time(ends) if on and ends is not None else None
    return change(write, kind, name, {"blocked": True if on else None, "block_ends": end}, was=seen)


def change(
    write: writing.Write,
    kind: Kind,
    name: str,
    changes: Mapping[str, Any],
    *,
    was: Mapping[str, Any] | None = None,
) -> BlockChange:
    """Change an entry, as :func:`entries.change` does; return which agents a change of ``blocked`` concerns as well."""
    before = snapshots.catalog()
    change = entries.change(write, kind, name, changes, was=was)
    # Counted afterwards, so that blocking need not wait for it, with the catalog in which the tools are available.
    stored = before if change.after.get("blocked") else snapshots.catalog()
    is_moved = "blocked" in {**change.before, **change.after}
    affected = agents_with(access_index.load_uncached(stored), kind, name) if is_moved else {}
    return BlockChange(
        entry=change.entry,
        before=change.before,
        after=change.after,
        result=change.result,
        agents={agent: count for agent, count in affected.items() if count},
        on_request=tuple(agent for agent, count in affected.items() if not count),
        conversations=impacts.of_agents(affected),
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


def ends(origins: Iterable[rules.Origin]) -> Mapping[tuple[str, str], dt.datetime]:
    """Return when each of these blocks ends, by kind and name, without those that do not end."""
    stored = snapshots.catalog()
    by_kind: Mapping[str, Mapping[str, catalog.Plugin | catalog.Toolkit | catalog.Tool]] = {
        "plugin": stored.plugins,
        "toolkit": stored.toolkits,
        "tool": stored.tools,
    }
    subjects = {(origin.kind, origin.name) for origin in origins}
    entries_ = {(kind, name): by_kind[kind].get(name) for kind, name in subjects}
    return {
        subject: entry.block_ends
        for subject, entry in entries_.items()
        if entry is not None and entry.block_ends is not None
    }


def agents_with(index: access_index.AccessIndex, kind: Kind, name: str) -> dict[str, int]:
    """Return the number of these tools that are on, for each agent that has any of them, on or on request."""
    tools = set(_tools(index.catalog, kind, name))
    counts = {}
    for access in index.agents:
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
