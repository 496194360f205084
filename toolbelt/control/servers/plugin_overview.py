"""Plugins, in code and upstream servers alike: their status, their tools, and who has them.

Read in a fixed number of queries and only from the database, so that viewing never waits for a server. What operators
do with a plugin from a list (switch it, trust it, review its tools, change its address) is here as well; what concerns
only upstream servers is in :mod:`toolbelt.control.servers.upstream_servers`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from toolbelt.control import writing
from toolbelt.control.access import access_index
from toolbelt.control.catalog import entries
from toolbelt.control.servers import approvals
from toolbelt.core import catalog, connections
from toolbelt.core.rules import resolution
from toolbelt.store import listings, snapshots
from toolbelt.store import plugins as rows

Listing = listings.Listing
Control = Literal["active", "blocked", "trusted", "keep_descriptions"]
CONTROLS: tuple[Control, ...] = ("active", "blocked", "trusted", "keep_descriptions")
# Defaults of fields that an entry leaves out.
_DEFAULTS: Mapping[Control, bool] = {
    "active": True,
    "blocked": False,
    "trusted": False,
    "keep_descriptions": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One plugin. ``connection`` is None for one in code; ``listing`` is a server's last answer, if it was ever asked.

    ``agents`` have at least one of its tools now, ``active`` is how many of its tools any agent has. ``to_review`` is
    the number of tools to review.
    """

    plugin: catalog.Plugin
    connection: connections.Connection | None
    tools: tuple[catalog.Tool, ...]
    to_review: int
    agents: tuple[str, ...]
    active: int
    listing: Listing | None
    error: str

    @property
    def state(self) -> listings.State:
        """Return the state of the plugin."""
        return listings.state(self.plugin, self.listing)

    @property
    def retired(self) -> int:
        """Return the number of tools that it no longer offers, which stay in the catalog."""
        return sum(tool.retired and tool.kind == "tool" for tool in self.tools)

    @property
    def offered(self) -> int:
        """Return the number of tools that it still offers."""
        return sum(not tool.retired and tool.kind == "tool" for tool in self.tools)


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """One plugin with the agents that have each of its tools (by key), and the decision for each tool that no
    agent can have.

    ``gone`` are tools that it no longer offers, up to the requested number, and ``all_gone`` is how many there are.
    """

    provider: Provider
    gone: tuple[approvals.Change, ...]
    all_gone: int
    users: Mapping[str, tuple[str, ...]]
    closed: Mapping[str, resolution.Decision]


def load_all(*, users: bool = True) -> Sequence[Provider]:
    """Return the plugins, in stored order; without ``users``, without the agents that have their tools."""
    # Read before the catalog: an answer must not be newer than the catalog that is shown with it.
    listed = listings.load_all()
    stored = snapshots.catalog()
    failures = rows.errors()
    agents_by_plugin: dict[str, list[str]] = {}
    granted: set[str] = set()
    for access in access_index.load_with_catalog(stored).agents if users else ():
        granted |= access.granted
        for plugin_name in access.plugins:
            agents_by_plugin.setdefault(plugin_name, []).append(access.agent.key)
    return [
        _provider(
            plugin, stored, agents_by_plugin.get(name, ()), granted, listed.get(name), failures.get(name, "")
        )
        for name, plugin in stored.plugins.items()
    ]


def load(name: str, *, maximum: int | None = None) -> Detail:
    """Return one plugin with at most ``maximum`` of the tools that it no longer offers; raise errors.NotFound."""
    listed = listings.find(name)
    stored = snapshots.catalog()
    plugin = approvals.find(name, stored=stored)
    users, agents_having = _users(stored, name)
    gone = [item for item in approvals.review_items(name, stored).values() if item.kind == "gone"]
    return Detail(
        provider=_provider(
            plugin,
            stored,
            agents_having,
            users.keys(),
            listed,
            rows.errors().get(name, ""),
        ),
        gone=approvals.changes(gone[:maximum], stored),
        all_gone=len(gone),
        users=users,
        closed=access_index.closed(stored),
    )


def set_control(write: writing.Write, name: str, control: Control, on: bool, *, was: bool) -> writing.Change:
    """Set one of a plugin's controls; only a server has `keep_descriptions`. Raise errors.NotFound or errors.Stale."""
    default = _DEFAULTS[control]
    changes: dict[str, Any] = {control: None if on is default else on}
    seen: dict[str, Any] = {control: None if was is default else was}
    return entries.change(write, "plugin", name, changes, was=seen)


def reconnect(
    write: writing.Write,
    name: str,
    *,
    url: str,
    headers: Mapping[str, str],
    was: Mapping[str, Any],
    connections_by: Mapping[str, Any] | None = None,
) -> writing.Change:
    """Change a server's URL and headers, in place of what the writer saw. Its timeout is unchanged.

    ``connections_by``: who shares connections, how long they stay open and how many there may be, as in a belt; None
    for the default. Fields that are left out are unchanged. Raise errors.Invalid with the path of each problem,
    errors.Refused, errors.Stale or errors.NotFound.
    """
    approvals.find(name, "upstream")
    unchanged = {
        key: value
        for key, value in was.items()
        if key not in (*connections.COMMAND_FIELDS, *connections.URL_FIELDS)
    }
    unchanged |= connections_by or {}
    unchanged = {key: value for key, value in unchanged.items() if value is not None}
    connection = {"url": url, **({"headers": dict(headers)} if headers else {}), **unchanged}
    return entries.change(write, "plugin", name, {"upstream": connection}, was={"upstream": dict(was)})


def _provider(
    plugin: catalog.Plugin,
    stored: catalog.Catalog,
    having: Iterable[str],
    granted: Collection[str],
    listing: Listing | None,
    error: str,
) -> Provider:
    """Return the overview of a plugin; ``having`` are the agents that have one of its tools, ``granted`` are tools that
    any agent has.
    """
    tools = tuple(stored.tools[key] for key in stored.tools_of_plugin.get(plugin.name, ()))
    return Provider(
        plugin=plugin,
        connection=connections.read(plugin.upstream) if plugin.upstream else None,
        tools=tools,
        to_review=len(approvals.to_review(plugin.name, stored)),
        agents=tuple(having),
        active=sum(tool.key in granted and tool.kind == "tool" for tool in tools),
        listing=listing,
        error=error,
    )


def _users(stored: catalog.Catalog, name: str) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """Return the agents that have each tool of a plugin now, outside any session, and those that have any of them;
    tools that no agent has are left out.
    """
    keys = frozenset(stored.tools_of_plugin.get(name, ()))
    by_tool: dict[str, list[str]] = {}
    agents_having = []
    for access in access_index.load_with_catalog(stored).agents:
        granted = keys & access.granted
        if granted:
            agents_having.append(access.agent.key)
        for key in granted:
            by_tool.setdefault(key, []).append(access.agent.key)
    return {key: tuple(having) for key, having in by_tool.items()}, agents_having
