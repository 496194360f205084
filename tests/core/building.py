"""Builders of small catalogs, agents and snapshots for tests of the rules.

Names are written in one text, separated by spaces: ``catalog_of("read push", toolkits={"repo": "read push"})``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from toolbelt.core import agents, budgets, catalog, keys, resolution, sessions

Names = str | Iterable[str]


def names(given: Names) -> tuple[str, ...]:
    """Return the names in a text, or the names themselves."""
    return tuple(given.split()) if isinstance(given, str) else tuple(given)


def tool(key: str, **fields: Any) -> catalog.Tool:
    """Return a tool; the prefix of its key before ``__`` is its plugin."""
    namespace, separator, _ = key.partition(keys.SEPARATOR)
    return catalog.Tool(key=key, **{"plugin": namespace if separator else "", **fields})


def toolkit(key: str, members: Names | Mapping[str, Any] = (), **fields: Any) -> catalog.Toolkit:
    """Return a toolkit; as a mapping, ``members`` hold their options."""
    options = members if isinstance(members, Mapping) else dict.fromkeys(names(members))
    made = tuple(catalog.Member(tool=one, options=handed) for one, handed in options.items())
    return catalog.Toolkit(key=key, members=made, **fields)


def catalog_of(
    tools: str | Iterable[str | catalog.Tool] = (),
    *,
    toolkits: Mapping[str, Names] | Iterable[catalog.Toolkit] = (),
    plugins: Iterable[catalog.Plugin] = (),
    loadouts: Iterable[catalog.Loadout] = (),
    sub_apps: Iterable[catalog.SubApp] = (),
) -> catalog.Catalog:
    """Make a catalog; plugins that tools name and no one gave are in code, ready and without a category."""
    made = [
        tool(one) if isinstance(one, str) else one
        for one in (names(tools) if isinstance(tools, str) else tools)
    ]
    given = {plugin.name: plugin for plugin in plugins}
    for name in (one.plugin for one in made if one.plugin):
        given.setdefault(name, catalog.Plugin(name=name, in_code=True))
    kits = [toolkit(*one) for one in toolkits.items()] if isinstance(toolkits, Mapping) else toolkits
    return catalog.compile_(
        tools=made, toolkits=kits, plugins=given.values(), loadouts=loadouts, sub_apps=sub_apps
    )


def agent(
    *, tools: Names | Mapping[str, Any] = (), allowed: Names = (), initial: Names = (), **fields: Any
) -> agents.Agent:
    """Return the agent ada; ``tools`` are always on (as a mapping, with their options)."""
    options = tools if isinstance(tools, Mapping) else dict.fromkeys(names(tools))
    always_on = tuple(agents.AlwaysOn(tool=one, options=handed) for one, handed in options.items())
    return agents.Agent(
        **{
            "key": "ada",
            "tools": always_on,
            "allowed_toolkits": names(allowed),
            "initial_toolkits": names(initial),
            **fields,
        }
    )


def session(
    toolkits: Names = (),
    *,
    tools: Names = (),
    plugins: Names = (),
    loadout: str = "",
    request_id: str | None = None,
) -> sessions.Session:
    """Return a session that has loaded these names in this request (None: in an earlier one)."""
    made = sessions.Session(key="s", loadout=loadout)
    kinds: tuple[tuple[sessions.Kind, Names], ...] = (
        ("toolkit", toolkits),
        ("tool", tools),
        ("plugin", plugins),
    )
    for kind, loaded in kinds:
        for name in names(loaded):
            made = sessions.with_change(made, kind, name, True, request_id)
    return made


def snapshot(stored: catalog.Catalog, ada: agents.Agent | None = None, **fields: Any) -> resolution.Snapshot:
    """Return a snapshot, with a session in which nothing is loaded if none is given."""
    return resolution.Snapshot(
        catalog=stored, agent=ada or agent(), **{"session": sessions.Session(key="s"), **fields}
    )


def decided(stored: catalog.Catalog, ada: agents.Agent | None, key: str, **fields: Any) -> tuple[str, str]:
    """Return the state of a tool and the reason code."""
    decision = budgets.resolve(snapshot(stored, ada, **fields)).decision(key)
    return decision.state, decision.code


def active(stored: catalog.Catalog, ada: agents.Agent | None = None, **fields: Any) -> list[str]:
    """Return the keys of what is active."""
    return list(budgets.resolve(snapshot(stored, ada, **fields)).active)
