"""Lists of upstream servers, requested by operators, and recorded when a server announces a change.

What is recorded is what a server lists on an unused connection, so that the state of one session does not change the
catalog of all. If only descriptions changed, further unused connections are listed: they may differ between the
server's processes. Operators' lists use the connection that everyone shares, if there is one. No page waits for an
answer: :func:`refresh_soon` asks in the background.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import os
import threading
from collections.abc import Callable, Iterable
from typing import TypeVar

import structlog

from toolbelt.core import catalog, errors
from toolbelt.core.imported import importing, rewordings
from toolbelt.plugins import background
from toolbelt.plugins.upstream import connection_owners, live_connection
from toolbelt.runtime import environ
from toolbelt.runtime.upstream import pool as upstream_pool
from toolbelt.runtime.upstream import process_connections, server_notifications
from toolbelt.store import databases, listings, snapshots

Recorded = TypeVar("Recorded")
ServerListing = importing.ServerListing

MAX_AT_ONCE = 32

_log = structlog.get_logger(__name__)
_lock = threading.Lock()
# The servers that are being listed because an owner's connection announced a change, and those to list again.
_listing: set[str] = set()
_list_again: set[str] = set()


def refresh(names: Iterable[str], record: Callable[[str, ServerListing], Recorded]) -> dict[str, Recorded]:
    """List the tools of these servers in parallel. Return what ``record`` returns for each answer, by name.

    ``record`` is called in this thread. A server that cannot be reached has an answer with an error. Raise
    errors.NotFound before any server is asked, and the errors of ``record`` after all servers have been.
    """
    stored = snapshots.catalog()
    process_connections.apply_catalog(stored)
    servers = {name: find_server(stored, name) for name in names}
    # Servers may take long to answer, and other threads need the database connection.
    databases.release()
    results: dict[str, Recorded] = {}
    failures: dict[str, errors.ToolbeltError] = {}
    with (
        process_connections.ListingMark(servers),
        concurrent.futures.ThreadPoolExecutor(MAX_AT_ONCE) as pool,
    ):
        servers_by_future = {pool.submit(_ask, plugin): name for name, plugin in servers.items()}
        for future in concurrent.futures.as_completed(servers_by_future):
            name, answer = servers_by_future[future], future.result()
            if answer is not None:
                try:
                    results[name] = record(name, _complete(name, answer))
                except errors.ToolbeltError as error:
                    failures[name] = error
    # A server that is off may be asked as well, but is not kept connected.
    process_connections.apply_catalog(snapshots.catalog())
    if len(failures) == 1:
        raise next(iter(failures.values()))
    if failures:
        raise errors.Invalid([errors.Problem(path=name, message=str(failures[name])) for name in failures])
    return {name: results[name] for name in servers if name in results}


def refresh_soon(names: Iterable[str], record: Callable[[str, ServerListing], object]) -> None:
    """Do the same as :func:`refresh` in the background; `status` shows when it has ended."""
    stored = snapshots.catalog()
    servers = [find_server(stored, name).name for name in names]
    mark = process_connections.ListingMark(servers)
    mark.__enter__()

    def ask() -> None:
        try:
            refresh(servers, record)
        finally:
            mark.__exit__()
            process_connections.apply_catalog(snapshots.catalog())

    server_notifications.in_thread(ask)


def record_list(pooled: upstream_pool.Pooled, answer: ServerListing) -> None:
    """Record what a server lists on an unused connection, or on the one that everyone shares; not on that of a person,
    who may see something else.
    """
    if connection_owners.person_of(pooled.key) is not None:
        return
    server_notifications.record(pooled.name, answer, functools.partial(_complete, pooled.name))


def record_change(pooled: upstream_pool.Pooled, answer: ServerListing) -> None:
    """Record what a server lists now. If the connection belongs to one owner, list on an unused connection instead.

    A server that has really changed lists the same there.
    """
    if pooled.key == connection_owners.EVERYBODY:
        record_list(pooled, answer)
        return
    if connection_owners.person_of(pooled.key) is not None:
        return
    with _lock:
        _list_again.add(pooled.name)
        if pooled.name in _listing:
            return
        _listing.add(pooled.name)
    server_notifications.in_thread(lambda: _list(pooled.name))


# Reserves a connection, whose lists are recorded.
take = functools.partial(process_connections.take, on_list=record_list, on_change=record_change)


def _list(name: str) -> None:
    """List a server's tools on the connection for operators, and record them; again as long as it changes."""
    while True:
        with _lock:
            if name not in _list_again:
                _listing.discard(name)
                return
            _list_again.discard(name)
        try:
            plugin = snapshots.catalog().plugins.get(name)
            if (
                plugin is not None
                and plugin.active
                and not plugin.blocked
                and (answer := _ask(plugin)) is not None
            ):
                server_notifications.record(name, answer, functools.partial(_complete, name))
        except Exception:
            _log.exception("tools of a server not listed", server=name)


def _ask(plugin: catalog.Plugin) -> ServerListing | None:
    """List a server's tools. Return None if this process ends meanwhile, which is not the server's error."""
    try:
        settings = process_connections.connection_of(plugin)
        digest = process_connections.digest_of(plugin)
        pooled = take(plugin, connection_owners.EVERYBODY, settings, digest)
    except errors.ToolbeltError as error:
        return ServerListing(error=str(error))
    # The time to connect, to list, and to end a process that does neither.
    within = 2 * settings.timeout + process_connections.STOP_SECONDS
    try:
        answer = process_connections.running().run_sync(pooled.server.ask(), within)
    except (live_connection.ClosedError, concurrent.futures.CancelledError):
        return None
    except background.DeadlineError:
        return ServerListing(error=f"The server did not answer within {within:g} s.")
    finally:
        process_connections.give_back_listed(pooled)
    return server_notifications.masked(answer)


def _complete(name: str, answer: ServerListing) -> ServerListing:
    """Return a list with what further unused connections list, if it has to be known whether descriptions differ
    between them. One that cannot be listed ends this: nothing else is known then.
    """
    stored = snapshots.catalog()
    plugin = stored.plugins.get(name)
    if answer.error or plugin is None:
        return answer
    is_same_server = listings.is_same_server(name, answer.server)
    databases.release()
    if not rewordings.is_unconfirmed(stored, plugin, answer, is_same_server=is_same_server):
        return answer
    again: list[ServerListing] = []
    while len(again) < rewordings.MAX_LISTED_AGAIN:
        other = _listed_once(plugin)
        if other is None:
            break
        again.append(other)
        if other.tools != answer.tools or other.non_tools != answer.non_tools:
            break
    return dataclasses.replace(answer, again=tuple(again))


def _listed_once(plugin: catalog.Plugin) -> ServerListing | None:
    """Return what a server lists on a connection that is used for nothing else; None if that is not known."""
    settings = process_connections.connection_of(plugin)
    within = 2 * settings.timeout + process_connections.STOP_SECONDS
    try:
        answer = process_connections.running().run_sync(
            process_connections.list_once(plugin, settings), within
        )
    except (live_connection.ClosedError, concurrent.futures.CancelledError, background.DeadlineError):
        return None
    return None if answer.error else answer


def environ_of(name: str) -> environ.Environ:
    """Return the variables that the connection of this server may use. Raise errors.NotFound."""
    stored = snapshots.catalog()
    process_connections.apply_catalog(stored)
    return process_connections.environ_of(find_server(stored, name))


def find_server(stored: catalog.Catalog, name: str) -> catalog.Plugin:
    """Return the plugin of an upstream server. Raise errors.NotFound if there is none."""
    plugin = stored.plugins.get(name)
    if plugin is None or not plugin.upstream:
        names = [plugin.name for plugin in stored.plugins.values() if plugin.upstream]
        raise errors.NotFound("upstream server", name, names)
    return plugin


def _forget() -> None:
    """Forget the parent's threads and lock in a child process."""
    global _lock
    _lock = threading.Lock()
    _listing.clear()
    _list_again.clear()


os.register_at_fork(after_in_child=_forget)
