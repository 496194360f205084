"""Claims of processes on connections to upstream servers that belong to an agent or a session.

A connection is claimed in the database before it is opened, so that all calls of a session reach one process, whichever
receives them. The database is only queried for connections that are new to this process. The lease of a claim is
renewed about once a minute.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import hashlib
import os
import socket
import tempfile
import threading
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import structlog
from django.db import DEFAULT_DB_ALIAS, Error, connections

from toolbelt import conf
from toolbelt.plugins.upstream import live_connection, relay
from toolbelt.store import databases, upstream_connections

T = TypeVar("T")
Claim = upstream_connections.Claim
# Runs a function in a thread that may use the database.
InThread = Callable[..., Awaitable[Any]]

# The maximum number of cached claims of other processes.
MAX_CACHED = 4096

_log = structlog.get_logger(__name__)


class Claims:
    """The claims of this process, and the known ones of others."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # The connections whose claims are being settled; other calls wait.
        self._pending: dict[tuple[str, str], concurrent.futures.Future[None]] = {}
        self._other_claims: dict[tuple[str, str], Claim] = {}

    async def settle(
        self,
        plugin: str,
        owner: str,
        address: Callable[[], Awaitable[str]],
        take: Callable[[str], T],
        in_thread: InThread,
        *,
        stale_claim_id: str = "",
    ) -> T | Claim | None:
        """Return the result of ``take`` for the id of this process's claim, or the claim of another process.

        Return None if another call in this process has just settled it. ``address`` returns the address of this
        process; ``stale_claim_id`` is the id of a claim that is void. Raise UnreachableError.
        """
        key = plugin, owner
        with self._lock:
            other_claim = self._other_claims.get(key)
            if other_claim is not None and other_claim.id != stale_claim_id:
                return other_claim
            mine: concurrent.futures.Future[None] = concurrent.futures.Future()
            pending = self._pending.setdefault(key, mine)
        if pending is not mine:
            # Unlike awaiting it, this does not cancel it for the other calls.
            await asyncio.wait({asyncio.wrap_future(pending)})
            return None
        try:
            return await self._settled(plugin, owner, address, take, in_thread, stale_claim_id)
        finally:
            with self._lock:
                del self._pending[key]
            mine.set_result(None)

    def forget_process(self, plugin: str, owner: str) -> None:
        """Forget which process holds a connection, because it does not answer."""
        with self._lock:
            self._other_claims.pop((plugin, owner), None)

    def pending(self, plugin: str, owner: str) -> concurrent.futures.Future[None] | None:
        """Return a future that ends when the claim of a connection is settled; None if it is not being settled."""
        with self._lock:
            return self._pending.get((plugin, owner))

    def forget(self) -> None:
        """Forget everything, in a child process: the claims are its parent's."""
        self._lock = threading.Lock()
        self._pending.clear()
        self._other_claims.clear()

    async def _settled(
        self,
        plugin: str,
        owner: str,
        address: Callable[[], Awaitable[str]],
        take: Callable[[str], T],
        in_thread: InThread,
        stale_claim_id: str,
    ) -> T | Claim:
        try:
            here = await address()
        except (OSError, NotImplementedError) as error:
            raise live_connection.UnreachableError(
                f"This process cannot listen for calls of other processes: {error}"
            ) from error
        own_claim = Claim(id=uuid.uuid4().hex, plugin=plugin, owner=owner, host=host(), address=here)
        try:
            claim: Claim = await in_thread(_claim, own_claim, stale_claim_id)
            # An older claim of this process is being released; a process that ended or hangs does not renew its claim.
            if claim.id != own_claim.id and (claim.address == here or claim.is_expired):
                claim = await in_thread(_claim, own_claim, claim.id)
            with self._lock:
                self._other_claims.pop((plugin, owner), None)
            if claim.id == own_claim.id:
                try:
                    return take(own_claim.id)
                except BaseException:
                    await in_thread(upstream_connections.release, [own_claim.id])
                    raise
        except Error as error:
            raise live_connection.UnreachableError(
                f"The process that holds the connection to {plugin} could not be determined: {error}"
            ) from error
        if claim.host != own_claim.host:
            raise live_connection.UnreachableError(
                f"This session's connection to {plugin} is held by another host ({claim.host.partition('/')[0]}):"
                " route each session to one host (sticky sessions)."
            )
        with self._lock:
            if len(self._other_claims) >= MAX_CACHED:
                self._other_claims.clear()
            self._other_claims[plugin, owner] = claim
        return claim


def _claim(claim: Claim, stale_claim_id: str) -> Claim:
    """Claim a connection, in a thread, and release the database connection before the server is connected to."""
    try:
        return upstream_connections.claim(claim, stale_claim_id=stale_claim_id)
    finally:
        databases.release()


def directory() -> Path:
    """Return the directory of the sockets of this host's processes."""
    if conf.SOCKET_DIR:
        return Path(conf.SOCKET_DIR)
    return Path(tempfile.gettempdir()) / f"toolbelt-{os.getuid()}"


def host() -> str:
    """Return a name of this host that is equal for processes that share the directory of sockets, unlike containers.

    It also depends on the database: a copy contains the claims of the original installation, whose processes it must
    not ask.
    """
    status = relay.private(directory()).stat()
    database = connections[DEFAULT_DB_ALIAS].settings_dict
    settings = [str(database.get(name, "")) for name in ("ENGINE", "HOST", "PORT", "NAME")]
    digest = hashlib.sha256(f"{status.st_dev} {status.st_ino} {_boot()} {settings}".encode()).hexdigest()[:12]
    return f"{socket.gethostname()[:150]}/{digest}"


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def renew(ids: list[str]) -> frozenset[str]:
    """Renew claims, in a thread. Return the ids of those that other processes have taken over."""
    try:
        return upstream_connections.renew(ids)
    except Error:
        _log.exception("claims of connections not renewed")
        return frozenset()
    finally:
        connections.close_all()


def release(ids: list[str]) -> None:
    """Release claims, in a thread."""
    if not ids:
        return
    try:
        upstream_connections.release(ids)
    except Exception:
        # They expire.
        _log.warning("claims of connections not released", claims=len(ids))
    finally:
        connections.close_all()
