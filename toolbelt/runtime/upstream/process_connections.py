"""This process's connections to upstream servers, which are opened when they are first needed.

They run on one event loop: the ASGI server's if there is one (:func:`hosted`), otherwise a loop of their own. They are
held by everyone, an agent or a session (see `pool`). They are closed when the server's configuration changes,
when it is switched off, blocked or removed, and when their agent or session is removed.

Requests on a connection are in `calls.on_servers` and `server_lists`.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog

from toolbelt import conf
from toolbelt.core import catalog, connections
from toolbelt.core.imported import importing
from toolbelt.plugins import background
from toolbelt.plugins.upstream import backoff, connection, connection_owners, live_connection, relay
from toolbelt.runtime import environ, threads
from toolbelt.runtime.upstream import claims as upstream_claims
from toolbelt.runtime.upstream import forwarding, server_notifications, sign_ins
from toolbelt.runtime.upstream import pool as upstream_pool
from toolbelt.store import listings, snapshots
from toolbelt.store import upstream_connections as stored_claims

ServerListing = importing.ServerListing
Unreachable = live_connection.UnreachableError
# Called with what the server of a connection lists when it connects, or after it has announced a change.
Changed = Callable[[upstream_pool.Pooled, ServerListing], None]

STOP_SECONDS = 10.0

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _State:
    """What this process holds, beside its connections."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    # The event loop of the connections, and that of the ASGI server, while it runs.
    loop: background.Loop | None = None
    host: asyncio.AbstractEventLoop | None = None
    listener: relay.Listener | None = None
    being_listed: set[str] = field(default_factory=set)
    # Whether each server over HTTP gives ids of sessions, with the digest of the configuration that this is true for.
    has_session: dict[str, tuple[str, bool]] = field(default_factory=dict)
    # The namespaces of the last known catalog in lowercase, because names of variables are case-insensitive.
    namespaces: frozenset[str] = frozenset()
    # The servers of that catalog that may ask users.
    asking_users: frozenset[str] = frozenset()


_here = _State()


@contextlib.contextmanager
def hosted() -> Iterator[None]:
    """Run the connections on the running event loop within the block, so that calls from there need no other thread.

    Connections that are open when the block ends are abandoned: call :func:`stop` before, in a thread.
    """
    _here.host = here = asyncio.get_running_loop()
    try:
        yield
    finally:
        with _here.lock:
            if _here.host is here:
                _here.host = None
            if _here.loop is not None and _here.loop.host is here:
                pool.remove(lambda pooled: True)
                if _here.listener is not None:
                    # Otherwise its callers would wait for an answer that never comes.
                    _here.listener.stop_listening()
                _here.loop = _here.listener = None


def stop() -> None:
    """Close all connections in parallel, and finish recording lists. The next request connects again."""
    removed = pool.remove(lambda pooled: True)
    with _here.lock:
        loop, _here.loop = _here.loop, None
        listener, _here.listener = _here.listener, None
    if loop is not None and (removed or listener is not None):
        try:
            loop.run_sync(_end(listener, removed), STOP_SECONDS)
        except (background.DeadlineError, RuntimeError):
            _log.warning("upstream servers were left behind", connections=len(removed))
    server_notifications.finish(STOP_SECONDS)
    upstream_claims.release([pooled.claim for pooled in removed if pooled.claim])
    if loop is not None:
        loop.close()


def apply_catalog(stored: catalog.Catalog) -> None:
    """Close, in the background, every connection that this catalog no longer has, or has with another configuration.

    To be called with each catalog that is read, so that a server that was switched off, blocked, removed or
    reconfigured by any process is disconnected with the next request here.
    """
    _here.namespaces = frozenset(
        plugin.namespace.lower() for plugin in stored.plugins.values() if plugin.namespace
    )
    _here.asking_users = frozenset(
        plugin.name
        for plugin in stored.plugins.values()
        if plugin.upstream and catalog.may_ask(stored, plugin)
    )
    digests = {
        plugin.name: digest_of(plugin)
        for plugin in stored.plugins.values()
        # A server that is being listed is disconnected afterwards.
        if plugin.upstream and ((plugin.active and not plugin.blocked) or plugin.name in _here.being_listed)
    }
    pool.close(lambda pooled: digests.get(pooled.name) != pooled.digest)


def watch_catalogs() -> None:
    """Apply each catalog that this process reads."""
    snapshots.watch(apply_catalog)


async def end_owner(owner: str) -> None:
    """Close the connections with this key (see connection_owners.key), in all processes of this host."""
    elsewhere = _close_here(await threads.run(stored_claims.held_for, owner))
    await running().run(_close_elsewhere(elsewhere), STOP_SECONDS)


def close_claimed(given_up: Sequence[upstream_claims.Claim]) -> None:
    """Close the connections with these claims, in all processes of this host; for a thread that may block."""
    if not (elsewhere := _close_here(given_up)):
        return
    try:
        running().run_sync(_close_elsewhere(elsewhere), STOP_SECONDS)
    except background.DeadlineError:
        _log.warning("other processes not asked to close connections", claims=len(elsewhere))


def _close_here(given_up: Sequence[upstream_claims.Claim]) -> list[upstream_claims.Claim]:
    """Close this process's connections among these, and return the claims of other processes of this host."""
    ids = {claim.id for claim in given_up}
    pool.close(lambda pooled: pooled.claim in ids)
    here = _here.listener.address if _here.listener is not None else ""
    return [claim for claim in given_up if claim.address != here and claim.host == upstream_claims.host()]


async def _close_elsewhere(given_up: Sequence[upstream_claims.Claim]) -> None:
    """Ask other processes to close connections. A process that cannot be asked notices when its claim is lost."""
    for claim in given_up:
        with contextlib.suppress(relay.UnreachableError, relay.BusyError, relay.LostError, relay.RemoteError):
            await relay.request(claim.address, forwarding.CLOSE, {"claim": claim.id}, {})


def open_connections(name: str) -> int:
    """Return the number of this process's open connections to a server. Other processes have their own."""
    return sum(pooled.server.status().state == "open" for pooled in pool.of(name))


def note_answers_elsewhere(plugin: catalog.Plugin) -> None:
    """End the pause after a failure if the server has answered another process since.

    Queries the database only during a pause.
    """
    pause = pool.backoff_of(plugin.name)
    if pause is None or not pause.left():
        return
    listing = listings.find(plugin.name)
    if listing is not None and listing.answered is not None:
        pause.answered_elsewhere(listing.answered.timestamp())


def is_backing_off(plugin: catalog.Plugin) -> bool:
    """Return whether a server could not be reached, and the pause until the next attempt has not ended."""
    pause = pool.backoff_of(plugin.name)
    return pause is not None and pause.left() > 0


def sharing(plugin: catalog.Plugin) -> connections.Sharing:
    """Return who shares a connection; empty if that depends on the server and it was not connected to yet."""
    settings = connections.read(plugin.upstream)
    has_session = known_session(plugin.name, digest_of(plugin))
    return settings.shared_by(has_session=has_session) if settings is not None else ""


def known_session(name: str, digest: str) -> bool | None:
    """Return whether a server gives ids of sessions; None if it was not connected to."""
    noted = _here.has_session.get(name)
    return noted[1] if noted is not None and noted[0] == digest else None


def connection_of(plugin: catalog.Plugin) -> connections.Connection:
    """Return the connection settings of a server. Raise UnreachableError if its plugin has none."""
    settings = connections.read(plugin.upstream)
    if settings is None:
        raise Unreachable(f"{plugin.name} has no connection settings.")
    return settings


def digest_of(plugin: catalog.Plugin) -> str:
    """Return a digest of everything that identifies a connection's configuration."""
    asks = plugin.name in _here.asking_users
    return _hashed(f"{_secrets_of(plugin)}\n{plugin.upstream}\n{asks}")


def environ_of(plugin: catalog.Plugin) -> environ.Environ:
    """Return the variables that a server's connection may use, given the catalog that was applied last."""
    return environ.Environ(_secrets_of(plugin))


def take(
    plugin: catalog.Plugin,
    key: str,
    settings: connections.Connection,
    digest: str,
    *,
    on_list: Changed,
    on_change: Changed,
    claim: str = "",
) -> upstream_pool.Pooled:
    """Reserve the connection of an owner, and create it if there is none.

    ``on_list`` gets the lists of each new connection, and ``on_change`` changed lists.
    """

    def make(pooled: upstream_pool.Pooled, pause: backoff.Backoff) -> connection.Server:
        def record(answer: ServerListing) -> None:
            _note_session(pooled)
            on_list(pooled, answer)

        return _server(
            plugin,
            settings,
            connection_owners.person_of(key),
            on_list=record,
            on_change=lambda answer: on_change(pooled, answer),
            pause=pause,
        )

    return pool.take(plugin.name, key, digest, settings, make, claim=claim)


def _server(
    plugin: catalog.Plugin, settings: connections.Connection, person: int | None = None, **options: Any
) -> connection.Server:
    tokens = sign_ins.Tokens(plugin, settings, person) if settings.sign_in else None
    may_ask = plugin.name in _here.asking_users
    return connection.Server(settings, environ=environ_of(plugin), may_ask=may_ask, tokens=tokens, **options)


async def list_once(plugin: catalog.Plugin, settings: connections.Connection) -> ServerListing:
    """List a server's tools on a connection that is used for nothing else. Return an answer with an error if that
    fails.
    """
    server = _server(plugin, settings)
    try:
        return await server.ask()
    finally:
        await server.close()


def give_back_listed(pooled: upstream_pool.Pooled) -> None:
    """Return a connection to the pool that was only used to list."""
    _note_session(pooled)
    pool.give_back(pooled, is_fresh=True)


def _note_session(pooled: upstream_pool.Pooled) -> None:
    """Note whether the server gives ids of sessions. A server that did once is never taken for a stateless one."""
    has_session = pooled.server.has_session
    if has_session is not None and not known_session(pooled.name, pooled.digest):
        _here.has_session[pooled.name] = pooled.digest, has_session


async def listening(work: relay.Work) -> str:
    """Return the address of this process, at which ``work`` answers requests of other processes."""
    with _here.lock:
        listener = _here.listener = _here.listener or relay.Listener(work, forwarding.kind)
    return await running().run(listener.start(upstream_claims.directory()), STOP_SECONDS)


def running() -> background.Loop:
    """Return the event loop that runs the connections."""
    with _here.lock:
        if _here.loop is None:
            _here.loop = background.Loop(_here.host)
        return _here.loop


def is_being_listed(name: str) -> bool:
    """Return whether a server's tools are being listed."""
    return name in _here.being_listed


class ListingMark:
    """Marks servers as being listed, except those that are already marked."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = [name for name in names if name not in _here.being_listed]

    def __enter__(self) -> None:
        _here.being_listed.update(self._names)

    def __exit__(self, *raised: object) -> None:
        _here.being_listed.difference_update(self._names)


def _close_soon(removed: Sequence[upstream_pool.Pooled]) -> None:
    """Close connections in the background."""
    loop = running()

    def close() -> None:
        try:
            loop.run_sync(_close(removed), STOP_SECONDS)
        finally:
            upstream_claims.release([pooled.claim for pooled in removed if pooled.claim])

    server_notifications.in_thread(close)


def _renew(claimed: Sequence[upstream_pool.Pooled]) -> None:
    """Renew the claims of connections, and close those that another process has taken over."""
    lost = upstream_claims.renew([pooled.claim for pooled in claimed])
    pool.close(lambda pooled: pooled.claim in lost)


async def _end(listener: relay.Listener | None, removed: Iterable[upstream_pool.Pooled]) -> None:
    if listener is not None:
        await listener.close()
    await _close(removed)


async def _close(removed: Iterable[upstream_pool.Pooled]) -> None:
    await asyncio.gather(*(pooled.server.close() for pooled in removed), return_exceptions=True)


@functools.lru_cache(256)
def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _secrets_of(plugin: catalog.Plugin) -> str:
    """Return the namespace whose secrets a server may use: its own, or its name unless another server has that."""
    if plugin.namespace:
        return plugin.namespace
    return "" if plugin.name.lower() in _here.namespaces else plugin.name


pool = upstream_pool.Pool(_close_soon, lambda: conf.UPSTREAM_CONNECTIONS, renew=_renew)
claims = upstream_claims.Claims()


def _forget() -> None:
    """Forget the parent's connections and locks in a child process."""
    _here.lock = threading.Lock()
    pool.forget()
    claims.forget()
    _here.being_listed.clear()
    _here.host = _here.loop = _here.listener = None


os.register_at_fork(after_in_child=_forget)
