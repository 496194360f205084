"""What provides tools here, how is it, and what does it bring to whom? Plugins in code and upstream servers alike.

Read in a fixed number of queries, from rows alone: nobody who looks waits for a server. What an operator does with one
of them from a list (switch it, trust it, look at its tools, say where it is) is here too; what is an upstream
server's alone is in :mod:`toolbelt.control.upstreams`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from toolbelt.control import actors, entries, holdings, reviews, upstreams, writing
from toolbelt.core import agents, catalog, connections, errors, resolution
from toolbelt.store import audit, listings, snapshots
from toolbelt.store import plugins as rows

Listing = listings.Listing
Control = Literal["active", "blocked", "trusted"]
CONTROLS: tuple[Control, ...] = ("active", "blocked", "trusted")
# What each of them is where an entry says nothing of it.
_DEFAULTS: Mapping[Control, bool] = {"active": True, "blocked": False, "trusted": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One plugin. ``connection`` is None for one in code; ``listing`` is what a server last said, if it was ever asked.

    ``agents`` have at least one of its tools now, ``active`` is how many of its tools anybody has. ``waiting`` counts
    the tools that wait for a look.
    """

    plugin: catalog.Plugin
    connection: connections.Connection | None
    tools: tuple[catalog.Tool, ...]
    waiting: int
    agents: tuple[str, ...]
    active: int
    listing: Listing | None
    error: str

    @property
    def offered(self) -> int:
        """Count the tools that it still offers."""
        return sum(not tool.retired for tool in self.tools)


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """One plugin with what there is to look at, who has each of its tools (agents by the tool's key), and the decision
    for each that nobody can have, whatever the agent: it is unavailable, or blocked.

    ``changes`` are as many as were asked for, of what waits and of the ``gone`` tools that are no longer offered.
    """

    provider: Provider
    changes: tuple[reviews.Change, ...]
    gone: int
    users: Mapping[str, tuple[str, ...]]
    closed: Mapping[str, resolution.Decision]


def every(*, users: bool = True) -> Sequence[Provider]:
    """List what provides tools, in stored order; without ``users`` nobody is named as having any."""
    # Before the catalog: whoever waits for an answer must not be told that it came beside what was there before it.
    listed = listings.every()
    stored = snapshots.catalog()
    failures = rows.errors()
    having: dict[str, list[str]] = {}
    held: set[str] = set()
    for holder in holdings.of_now(stored).holders if users else ():
        held |= holder.active
        for plugin_name in holder.plugins:
            having.setdefault(plugin_name, []).append(holder.agent.key)
    return [
        _provider(plugin, stored, having.get(name, ()), held, listed.get(name), failures.get(name, ""))
        for name, plugin in stored.plugins.items()
    ]


def find(name: str, *, most: int | None = None, first: str = "") -> Detail:
    """Look at one of them: at no more than ``most`` tools of each sort, and at ``first`` before all others.

    Raises errors.NotFound.
    """
    listed = listings.find(name)
    stored = snapshots.catalog()
    plugin = _plugin(name, stored)
    users, having = _users(stored, name)
    pending = reviews.pending(name, stored)
    sorts: dict[bool, list[str]] = {False: [], True: []}
    for key in sorted(pending, key=lambda key: key != first):
        sorts[pending[key].kind == "gone"].append(key)
    wanted = [*sorts[False][:most], *sorts[True][:most]]
    looked = upstreams.review(name, wanted).changes if plugin.upstream else _of_code(stored, users, pending)
    changes = {change.key: change for change in looked}
    return Detail(
        provider=_provider(
            plugin,
            stored,
            having,
            users.keys(),
            listed,
            rows.errors().get(name, ""),
        ),
        changes=tuple(changes[key] for key in wanted if key in changes),
        gone=len(sorts[True]),
        users=users,
        closed=dict(_closed(stored, stored.tools_of_plugin.get(name, ()))),
    )


def doubts(name: str, tools: Collection[str]) -> Sequence[tuple[str, str]]:
    """Say what deserves a second look before these tools are approved: the tool, and what raised the flag."""
    if not _plugin(name, snapshots.catalog()).upstream:
        return []
    changes = upstreams.review(name, tools).waiting
    return [(change.key, flag) for change in changes for flag in change.flags]


def switch(
    actor: actors.Actor, name: str, control: Control, on: bool, *, was: bool, reason: str = ""
) -> writing.Change:
    """Switch a plugin on or off, stop it for everyone, or trust it. Raises errors.NotFound and errors.Stale."""
    default = _DEFAULTS[control]
    wanted: dict[str, Any] = {control: None if on is default else on}
    seen: dict[str, Any] = {control: None if was is default else was}
    return entries.change(actor, "plugin", name, wanted, was=seen, reason=reason)


def reconnect(
    actor: actors.Actor,
    name: str,
    *,
    url: str,
    headers: Mapping[str, str],
    was: Mapping[str, Any],
    reason: str = "",
) -> writing.Change:
    """Say where a server is, in place of what the writer saw. How long it may take stays as it is.

    Raises errors.Invalid with the path of what is wrong, errors.Refused, errors.Stale and errors.NotFound.
    """
    upstreams.find(name)
    kept = {key: value for key, value in was.items() if key not in (*connections.RUN, *connections.ASKED)}
    wanted = {"url": url, **({"headers": dict(headers)} if headers else {}), **kept}
    return entries.change(
        actor, "plugin", name, {"upstream": wanted}, was={"upstream": dict(was)}, reason=reason
    )


def approve(
    actor: actors.Actor, name: str, shown: Mapping[str, str], *, carry_over: bool = True, reason: str = ""
) -> upstreams.Approved:
    """Let those tools be had whose version was shown: an upstream server's are held to it from now on, a plugin's in
    code have been seen, and go on following the code. Raises errors.Stale for another version; then nothing is done.
    """
    if _plugin(name, snapshots.catalog()).upstream:
        return upstreams.approve(actor, name, shown, carry_over=carry_over, reason=reason)
    return upstreams.Approved(keys=_see(actor, name, shown, blocked=False, reason=reason))


def keep_off(
    actor: actors.Actor, name: str, shown: Mapping[str, str], *, reason: str = ""
) -> tuple[str, ...]:
    """Have looked at the versions that were shown, and block them for everyone. Raises as :func:`approve`."""
    if _plugin(name, snapshots.catalog()).upstream:
        return upstreams.refuse(actor, name, shown, reason=reason)
    return _see(actor, name, shown, blocked=True, reason=reason)


def decision(tool: str) -> int | None:
    """Give the newest audit entry of a tool: right after an approval, what would take it back."""
    newest = audit.page(subject_kind="tool", subject_key=tool, size=1).entries
    return newest[0].id if newest else None


def _plugin(name: str, stored: catalog.Catalog) -> catalog.Plugin:
    found = stored.plugins.get(name)
    if found is None:
        raise errors.NotFound("plugin", name, stored.plugins)
    return found


def _provider(
    plugin: catalog.Plugin,
    stored: catalog.Catalog,
    having: Iterable[str],
    held: Collection[str],
    listing: Listing | None,
    error: str,
) -> Provider:
    """Put a provider together; ``having`` are the agents that have one of its tools, ``held`` are tools that some
    agent has.
    """
    own = tuple(stored.tools[key] for key in stored.tools_of_plugin.get(plugin.name, ()))
    return Provider(
        plugin=plugin,
        connection=connections.read(plugin.upstream) if plugin.upstream else None,
        tools=own,
        waiting=sum(one.kind != "gone" for one in reviews.pending(plugin.name, stored).values()),
        agents=tuple(having),
        active=sum(tool.key in held for tool in own),
        listing=listing,
        error=error,
    )


def _users(stored: catalog.Catalog, name: str) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """Return which agents have each tool of a plugin now, outside any session, and which have any of them; a tool that
    nobody has is not named.
    """
    own = frozenset(stored.tools_of_plugin.get(name, ()))
    found: dict[str, list[str]] = {}
    agents_having = []
    for holder in holdings.of_now(stored).holders:
        held = own & holder.active
        if held:
            agents_having.append(holder.agent.key)
        for key in held:
            found.setdefault(key, []).append(holder.agent.key)
    return {key: tuple(having) for key, having in found.items()}, agents_having


def _closed(stored: catalog.Catalog, keys: Iterable[str]) -> Iterator[tuple[str, resolution.Decision]]:
    """Decide for each of the tools as for an agent that nothing is set for; give what the catalog alone decided."""
    nobody = resolution.stand(resolution.Snapshot(catalog=stored, agent=agents.Agent(key="")))
    for key in keys:
        decision = resolution.decide(nobody, key)
        if decision.state in ("unavailable", "denied"):
            yield key, decision


def _of_code(
    stored: catalog.Catalog,
    users: Mapping[str, tuple[str, ...]],
    pending: Mapping[str, reviews.Pending],
) -> Iterator[reviews.Change]:
    """Give what there is to look at in a plugin in code: it keeps no older versions, so nothing is compared."""
    for key, one in pending.items():
        yield reviews.Change(
            kind="new" if one.kind == "renamed" else one.kind,
            tool=one.tool,
            shown=one.shown,
            tokens_after=0 if one.kind == "gone" else one.tool.tokens,
            users=tuple(f"the agent {agent}" for agent in users.get(key, ())),
        )


def _see(
    actor: actors.Actor, name: str, shown: Mapping[str, str], *, blocked: bool, reason: str
) -> tuple[str, ...]:
    with writing.begin():
        stored = snapshots.catalog()
        own = stored.tools_of_plugin.get(name, ())
        for key, seen in shown.items():
            if key not in own:
                raise errors.NotFound(f"tool of {name}", key, own)
            now = "retired" if stored.tools[key].retired else catalog.version(stored.tools[key])
            if now != seen:
                raise errors.Stale(key, seen, now)
        waiting = reviews.pending(name, stored)
        wanted = [key for key in shown if key in waiting]
        batch = writing.new_batch()
        for key in wanted:
            # One that somebody held to a version is held to this one from now on; the others follow the code.
            held = {"approved": shown[key], "approved_version": None} if stored.tools[key].approved else {}
            change = {"seen": None, **held, **({"blocked": True} if blocked else {})}
            entries.change(actor, "tool", key, change, reason=reason, batch=batch)
    return tuple(wanted)
