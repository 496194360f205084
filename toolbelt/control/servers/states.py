"""The state of every plugin and upstream server: the one answer of doctor, Overview, Review, `mcp list` and `/readyz`.

It is what is stored, because the process that is asked is seldom the one that runs the plugin. What only a process can
know of itself, such as its environment, is what the running servers last reported; :func:`load` gets what this
process knows, for an installation that no server runs.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from toolbelt import conf
from toolbelt.control.servers import approvals
from toolbelt.core import catalog
from toolbelt.store import listings, plugins, running_processes, snapshots

Problem = running_processes.Problem
Process = running_processes.Process
State = listings.State
SERVED_AT = running_processes.SERVED_AT


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginState:
    """The state of one plugin, with the ``error`` of one that has failed or not responded, the tools that no process
    runs, and the number of tools that await review.

    ``seen_by`` is the process that saw the error, at the time ``seen``; empty if that is not known. ``is_empty``: the
    server answers, but lists nothing.
    """

    plugin: catalog.Plugin
    state: State
    error: str
    seen_by: str
    seen: dt.datetime | None
    not_running: tuple[str, ...]
    to_review: int
    is_empty: bool


def load(stored: catalog.Catalog | None = None, runnable: Collection[str] | None = None) -> list[PluginState]:
    """Return the states, in stored order.

    ``runnable`` are the tools that this process can run, which count only while no server is known to run.
    """
    stored = stored or snapshots.catalog()
    # Overview shows the states: only what the plugins need is read.
    of_plugins = stored.plugins.values()
    failures = plugins.errors() if any(plugin.status == "failed" for plugin in of_plugins) else {}
    listed = listings.load_all() if any(plugin.upstream for plugin in of_plugins) else {}
    counts = runnable is not None and conf.RUNNING_SECONDS and running_processes.runnable() is None
    return [
        _state(
            plugin,
            stored,
            listed.get(name),
            failures.get(name, ""),
            _missing(plugin, stored, runnable) if counts and runnable is not None else plugin.not_running,
        )
        for name, plugin in stored.plugins.items()
    ]


def servers() -> Sequence[Process]:
    """Return the servers that run now, with what keeps plugins from running in each."""
    return running_processes.alive()


def _state(
    plugin: catalog.Plugin,
    stored: catalog.Catalog,
    listing: listings.Listing | None,
    failure: str,
    not_running: Collection[str],
) -> PluginState:
    state = listings.state(plugin, listing)
    if state == "ready" and not_running:
        state = "not-running"
    is_seen = listing is not None and bool(listing.error)
    return PluginState(
        plugin=plugin,
        state=state,
        error=(failure if plugin.status == "failed" else "") or (listing.error if listing else ""),
        seen_by=listing.seen_by if listing is not None and is_seen else "",
        seen=listing.asked if listing is not None and is_seen else None,
        not_running=tuple(not_running),
        to_review=len(approvals.to_review(plugin.name, stored)),
        is_empty=is_empty(plugin, stored, state),
    )


def is_empty(plugin: catalog.Plugin, stored: catalog.Catalog, state: State) -> bool:
    """Return whether a server answers, but lists nothing."""
    keys = stored.tools_of_plugin.get(plugin.name, ())
    return bool(plugin.upstream) and state == "ready" and all(stored.tools[key].retired for key in keys)


def _missing(plugin: catalog.Plugin, stored: catalog.Catalog, runnable: Collection[str]) -> tuple[str, ...]:
    if not plugin.in_code:
        return ()
    keys = stored.tools_of_plugin.get(plugin.name, ())
    return tuple(sorted(key for key in keys if not stored.tools[key].retired and key not in runnable))
