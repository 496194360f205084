"""The list of loadouts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from toolbelt import conf
from toolbelt.control.access import access_index
from toolbelt.core import catalog, keys, loadouts
from toolbelt.web.kit import pieces, tool_sections, words
from toolbelt.web.loadouts import inheritance

# How many agents a line of the list names.
MAX_USERS = 20


def page(index: access_index.AccessIndex) -> pieces.View:
    """Return the list."""
    names = loadouts.all_names(index.catalog)
    own = [loadout.name for loadout in index.catalog.loadouts.values()]
    users = _users(index)
    return pieces.View(
        loadouts=tuple(_line(index, name, own, users.get(keys.fold(name), ())) for name in names),
        picture=inheritance.draw(index.catalog, names),
        total=f"{words.counted(len(names), 'loadout')}, "
        f"{words.number(len(names) - len(own))} of them built in",
    )


def get(stored: catalog.Catalog, name: str) -> catalog.Loadout | None:
    """Return the loadout of exactly this name, stored or built in."""
    loadout = stored.loadouts.get(keys.fold(name)) or loadouts.BUILT_IN.get(keys.fold(name))
    return loadout if loadout is not None and loadout.name == name else None


def marks(stored: catalog.Catalog, name: str) -> Iterator[tool_sections.Mark]:
    """Return the words that stand beside a loadout's name wherever it is."""
    folded = keys.fold(name)
    if folded not in stored.loadouts:
        yield tool_sections.Mark(word="built in")
    elif folded in loadouts.BUILT_IN:
        yield tool_sections.Mark(word="replaces a built-in loadout", tone="warning")


def own_entries(loadout: catalog.Loadout) -> tuple[pieces.View, ...]:
    """Return what the loadout names itself, whatever it extends."""
    lists = (
        ("categories", loadout.categories, ""),
        ("plugins", loadout.plugins, ""),
        ("on request", loadout.discoverable, "quiet"),
        ("disables", loadout.disabled, "danger"),
    )
    return tuple(pieces.View(label=label, names=names, tone=tone) for label, names, tone in lists if names)


def _users(index: access_index.AccessIndex) -> dict[str, list[str]]:
    """Return the agents that have each loadout, directly or because theirs extends it, by its folded name."""
    by_own: dict[str, list[str]] = {}
    users: dict[str, list[str]] = {}
    for access in index.agents:
        by_own.setdefault(access.agent.loadout_name(conf.KIND_LOADOUTS), []).append(access.agent.key)
    for own, agents in by_own.items():
        for link in loadouts.chain(index.catalog.loadouts, own) if own else ():
            users.setdefault(keys.fold(link.name), []).extend(agents)
    return users


def chain(index: access_index.AccessIndex, access: access_index.AgentAccess) -> Sequence[catalog.Loadout]:
    """Return the chain of the loadout that is in force for an agent."""
    own = access.agent.loadout_name(conf.KIND_LOADOUTS)
    return loadouts.chain(index.catalog.loadouts, own) if own else ()


def tokens(stored: catalog.Catalog, tools: Iterable[str]) -> int:
    """Return what these tools cost."""
    return sum(stored.tools[key].tokens for key in tools)


def _line(
    index: access_index.AccessIndex, name: str, own: Sequence[str], users: Sequence[str]
) -> pieces.View:
    loadout = get(index.catalog, name) or catalog.Loadout(name=name)
    tools = loadouts.tools_included(index.catalog, name)
    place = own.index(name) if name in own else -1
    parents = loadouts.chain(index.catalog.loadouts, loadout.parent) if loadout.parent else ()
    return pieces.View(
        name=name,
        marks=tuple(marks(index.catalog, name)),
        description=loadout.description,
        parent=parents[0].name if parents else "",
        named=own_entries(loadout),
        tools=words.number(len(tools)),
        tokens=words.about(tokens(index.catalog, tools)),
        used=tuple(users[:MAX_USERS]),
        more_users=f"and {words.number(len(users) - MAX_USERS)} more" if len(users) > MAX_USERS else "",
        percent=round(100 * len(users) / len(index.agents)) if index.agents else 0,
        up=own[place - 1] if place > 0 else "",
        down=own[place + 1] if 0 <= place < len(own) - 1 else "",
    )
