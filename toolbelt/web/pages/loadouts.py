"""How is the list of loadouts filled?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from toolbelt import conf
from toolbelt.control import holdings
from toolbelt.core import catalog, keys, loadouts
from toolbelt.web import words
from toolbelt.web.pages import inheritance
from toolbelt.web.presenters import access, answers
from toolbelt.web.presenters import loadouts as presenters

# How many agents a line of the list names.
MOST_USERS = 20


def page(
    found: holdings.Holdings, *, here: str, notice: answers.Notice | None, may_add: bool, may_order: bool
) -> presenters.LoadoutsPage:
    """Fill the list."""
    names = loadouts.all_names(found.catalog)
    own = [loadout.name for loadout in found.catalog.loadouts.values()]
    users = _users(found)
    return presenters.LoadoutsPage(
        loadouts=tuple(_line(found, name, own, users.get(keys.fold(name), ())) for name in names),
        picture=inheritance.drawn(found.catalog, names),
        total=f"{words.number(len(names))} loadout{'' if len(names) == 1 else 's'}, "
        f"{words.number(len(names) - len(own))} of them built in",
        notice=notice,
        may_add=may_add,
        may_order=may_order,
        here=here,
    )


def get(stored: catalog.Catalog, name: str) -> catalog.Loadout | None:
    """Give the loadout of exactly this name, stored or built in."""
    loadout = stored.loadouts.get(keys.fold(name)) or loadouts.BUILT_IN.get(keys.fold(name))
    return loadout if loadout is not None and loadout.name == name else None


def marks(stored: catalog.Catalog, name: str) -> Iterator[access.Mark]:
    """Give the words that stand beside a loadout's name wherever it is."""
    folded = keys.fold(name)
    if folded not in stored.loadouts:
        yield access.Mark(word="built in")
    elif folded in loadouts.BUILT_IN:
        yield access.Mark(word="in the place of a built-in one", tone="warning")


def named(loadout: catalog.Loadout) -> tuple[presenters.Names, ...]:
    """Say what the loadout names itself, whatever it extends."""
    lists = (
        ("categories", loadout.categories, ""),
        ("plugins", loadout.plugins, ""),
        ("can be discovered", loadout.discoverable, "quiet"),
        ("disables", loadout.disabled, "danger"),
    )
    return tuple(
        presenters.Names(label=label, names=names, tone=tone) for label, names, tone in lists if names
    )


def having(found: holdings.Holdings, name: str) -> list[holdings.Holder]:
    """List the agents that have this loadout, by itself or because theirs extends it."""
    folded = keys.fold(name)
    return [
        holder
        for holder in found.holders
        if any(keys.fold(link.name) == folded for link in chain(found, holder))
    ]


def _users(found: holdings.Holdings) -> dict[str, list[str]]:
    """Name for each loadout, by its folded name, the agents that have it, by itself or because theirs extends it."""
    by_own: dict[str, list[str]] = {}
    users: dict[str, list[str]] = {}
    for holder in found.holders:
        by_own.setdefault(holder.agent.loadout_name(conf.KIND_LOADOUTS), []).append(holder.agent.key)
    for own, agents in by_own.items():
        for link in loadouts.chain(found.catalog.loadouts, own) if own else ():
            users.setdefault(keys.fold(link.name), []).extend(agents)
    return users


def chain(found: holdings.Holdings, holder: holdings.Holder) -> Sequence[catalog.Loadout]:
    """Give the chain of the loadout that is in force for an agent."""
    own = holder.agent.loadout_name(conf.KIND_LOADOUTS)
    return loadouts.chain(found.catalog.loadouts, own) if own else ()


def tokens(stored: catalog.Catalog, tools: Iterable[str]) -> int:
    """Say what these tools cost."""
    return sum(stored.tools[key].tokens for key in tools)


def _known_parent(stored: catalog.Catalog, loadout: catalog.Loadout) -> str:
    """Name what it extends as that is called itself; empty where there is no such loadout."""
    links = loadouts.chain(stored.loadouts, loadout.parent) if loadout.parent else ()
    return links[0].name if links else ""


def _line(
    found: holdings.Holdings, name: str, own: Sequence[str], users: Sequence[str]
) -> presenters.LoadoutLine:
    loadout = get(found.catalog, name) or catalog.Loadout(name=name)
    tools = loadouts.tools_included(found.catalog, name)
    place = own.index(name) if name in own else -1
    return presenters.LoadoutLine(
        name=name,
        marks=tuple(marks(found.catalog, name)),
        description=loadout.description,
        parent=_known_parent(found.catalog, loadout),
        named=named(loadout),
        tools=words.number(len(tools)),
        tokens=words.about(tokens(found.catalog, tools)),
        used=tuple(users[:MOST_USERS]),
        more_users=f"and {words.number(len(users) - MOST_USERS)} more" if len(users) > MOST_USERS else "",
        percent=round(100 * len(users) / len(found.holders)) if found.holders else 0,
        up=own[place - 1] if place > 0 else "",
        down=own[place + 1] if 0 <= place < len(own) - 1 else "",
    )
