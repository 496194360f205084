"""Builders of small catalogs, agents and snapshots for tests of the rules.

Several names can be one text, separated by spaces: ``catalog_of("read push", toolkits={"repo": "read push"})``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from toolbelt.core import agents, catalog, keys, sessions
from toolbelt.core.rules import budgets, resolution

Names = str | Iterable[str]


def names(given: Names) -> tuple[str, ...]:
    """Return the names, split at spaces if they are given as one text."""
    return tuple(given.split()) if isinstance(given, str) else tuple(given)


def tool(key: str, **fields: Any) -> catalog.Tool:
    """Return a tool; the prefix of its key before ``__`` is its plugin."""
    namespace, separator, _ = key.partition(keys.SEPARATOR)
    return catalog.Tool(key=key, **{"plugin": namespace if separator else "", **fields})


def toolkit(key: str, members: Names | Mapping[str, Any] = (), **fields: Any) -> catalog.Toolkit:
    """Return a toolkit. If ``members`` is a mapping, its values are the options of the tools."""
    options = members if isinstance(members, Mapping) else dict.fromkeys(names(members))
    uses = tuple(catalog.Member(tool=name, options=value) for name, value in options.items())
    return catalog.Toolkit(key=key, members=uses, **fields)


def catalog_of(
    tools: str | Iterable[str | catalog.Tool] = (),
    *,
    toolkits: Mapping[str, Names] | Iterable[catalog.Toolkit] = (),
    plugins: Iterable[catalog.Plugin] = (),
    loadouts: Iterable[catalog.Loadout] = (),
    sub_apps: Iterable[catalog.SubApp] = (),
) -> catalog.Catalog:
    """Return a catalog. Plugins that tools name but ``plugins`` lacks are in code, ready and without a category."""
    all_tools = [
        tool(entry) if isinstance(entry, str) else entry
        for entry in (names(tools) if isinstance(tools, str) else tools)
    ]
    all_plugins = {plugin.name: plugin for plugin in plugins}
    for name in (entry.plugin for entry in all_tools if entry.plugin):
        all_plugins.setdefault(name, catalog.Plugin(name=name, in_code=True))
    kits = [toolkit(*item) for item in toolkits.items()] if isinstance(toolkits, Mapping) else toolkits
    return catalog.compile_(
        tools=all_tools, toolkits=kits, plugins=all_plugins.values(), loadouts=loadouts, sub_apps=sub_apps
    )


def agent(
    *, tools: Names | Mapping[str, Any] = (), allowed: Names = (), initial: Names = (), **fields: Any
) -> agents.Agent:
    """Return the agent ada. ``tools`` are always on; if it is a mapping, its values are their options."""
    options = tools if isinstance(tools, Mapping) else dict.fromkeys(names(tools))
    always_on = tuple(agents.AlwaysOn(tool=name, options=value) for name, value in options.items())
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
    """Return a session in which the request with this ID (None: an earlier request) loaded these names."""
    session_ = sessions.Session(key="s", loadout=loadout)
    kinds: tuple[tuple[sessions.Kind, Names], ...] = (
        ("toolkit", toolkits),
        ("tool", tools),
        ("plugin", plugins),
    )
    for kind, loaded in kinds:
        for name in names(loaded):
            session_ = sessions.with_change(session_, kind, name, True, request_id)
    return session_


def snapshot(stored: catalog.Catalog, ada: agents.Agent | None = None, **fields: Any) -> resolution.Snapshot:
    """Return a snapshot. Its session has loaded nothing, unless ``fields`` has a session."""
    return resolution.Snapshot(
        catalog=stored, agent=ada or agent(), **{"session": sessions.Session(key="s"), **fields}
    )


def decided(stored: catalog.Catalog, ada: agents.Agent | None, key: str, **fields: Any) -> tuple[str, str]:
    """Return the state of a tool and its reason code."""
    decision = budgets.resolve(snapshot(stored, ada, **fields)).decision(key)
    return decision.state, decision.code


def active(stored: catalog.Catalog, ada: agents.Agent | None = None, **fields: Any) -> list[str]:
    """Return the keys of the active tools."""
    return list(budgets.resolve(snapshot(stored, ada, **fields)).active)
