"""Which upstream servers does this process speak with, how are they, and what do they answer?

One connection for each server, on an event loop that they share and that nobody else does: made when it is first
needed, made anew when the server is configured otherwise, ended when it is switched off, stopped or gone. Nobody who
shows a page waits for one: :func:`status` says what is known, and :func:`refresh_soon` asks behind the page's back.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import dataclasses
import hashlib
import os
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar

import structlog

from toolbelt.core import catalog, connections, errors
from toolbelt.plugins import background, registry
from toolbelt.plugins.upstream import connection, importing, lives, results
from toolbelt.runtime import environ, secrets, upstream_news, upstream_status
from toolbelt.store import databases, listings, snapshots

Answer = importing.Answer
Progress = connection.Progress
Unreachable = lives.Unreachable
ToolResult = results.ToolResult
ToolFailed = results.ToolFailed
content = results.content
Seen = TypeVar("Seen")

STOP_WITHIN = 10.0
MOST_AT_ONCE = 32

_log = structlog.get_logger(__name__)
_lock = threading.Lock()
_loop: background.Loop | None = None
_servers: dict[str, tuple[str, connection.Server]] = {}
_asking: set[str] = set()
# The namespaces of the catalog that was seen last, in small letters, as names of variables have no case.
_namespaces: frozenset[str] = frozenset()


class TooSlow(registry.TimedOut):
    """The server took longer than its own connection allows."""


async def call(
    plugin: catalog.Plugin,
    tool: catalog.Tool,
    arguments: Mapping[str, Any],
    *,
    within: float,
    progress: Progress | None = None,
    check: background.Check | None = None,
) -> ToolResult:
    """Return what the tool answers, whole. Cancelling it takes the request back at the server, too.

    ``check`` is awaited on the servers' event loop, directly before the request is written. Raises what that raises,
    contract.ToolError for the model, registry.TimedOut (:class:`TooSlow`), and :class:`Unreachable` where the server
    is not there, or has not the version of the tool that is stored.
    """
    server = _server(plugin)
    try:
        return await _running().answer(_answer(server, plugin, tool, arguments, progress, check), within)
    except TimeoutError:
        raise TooSlow(tool.key, server.reached.timeout) from None
    except background.Late:
        raise registry.TimedOut(tool.key, within) from None


def refresh(names: Iterable[str], record: Callable[[str, Answer], Seen]) -> dict[str, Seen]:
    """Ask these servers for their tools, side by side, and let ``record`` see each answer, in this thread, as it comes.

    Gives what that says, by name. A server that cannot be asked has an answer, too: one with an error. Raises
    errors.NotFound, before any is asked.
    """
    stored = snapshots.catalog()
    attend(stored)
    wanted = {name: _known(stored, name) for name in names}
    # Servers may take long to answer, and others need the connection meanwhile.
    databases.release()
    found: dict[str, Seen] = {}
    with _Asked(wanted), concurrent.futures.ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        asked = {pool.submit(_ask, plugin): name for name, plugin in wanted.items()}
        for done in concurrent.futures.as_completed(asked):
            answer = done.result()
            if answer is not None:
                found[asked[done]] = record(asked[done], answer)
    # One that is off may be asked, too; but it is not kept running for that.
    attend(snapshots.catalog())
    return {name: found[name] for name in wanted if name in found}


def refresh_soon(names: Iterable[str], record: Callable[[str, Answer], object]) -> None:
    """Do as :func:`refresh` does, but without anybody waiting for it; ``status`` says when it is over."""
    stored = snapshots.catalog()
    wanted = [_known(stored, name).name for name in names]
    marked = _Asked(wanted)
    marked.__enter__()

    def ask() -> None:
        try:
            refresh(wanted, record)
        finally:
            marked.__exit__()
            attend(snapshots.catalog())

    upstream_news.in_thread(ask)


def status(name: str) -> upstream_status.Status:
    """Say how a server is, without asking it. Raises errors.NotFound."""
    stored = snapshots.catalog()
    _known(stored, name)
    attend(stored)
    known = _servers.get(name)
    now = known[1].status() if known is not None else lives.Status()
    return upstream_status.of(now, listings.find(name), is_being_asked=name in _asking)


def note_answers_elsewhere(plugin: catalog.Plugin) -> None:
    """Leave a server alone no longer if it has answered another process since it could not be reached here.

    Asks the database only where the server is being left alone.
    """
    known = _servers.get(plugin.name)
    if known is None or not known[1].status().pause:
        return
    listing = listings.find(plugin.name)
    if listing is not None and listing.answered is not None:
        known[1].answered_elsewhere(listing.answered.timestamp())


def attend(stored: catalog.Catalog) -> None:
    """End every connection that this catalog no longer has, or has otherwise; nobody waits for it.

    For whoever sees a catalog, so that a server that was switched off, stopped, removed or configured otherwise ends
    here with the next question, also where another process changed it.
    """
    global _namespaces
    ended = []
    with _lock:
        _namespaces = frozenset(one.namespace.lower() for one in stored.plugins.values() if one.namespace)
        for name, (digest, server) in [*_servers.items()]:
            plugin = stored.plugins.get(name)
            is_wanted = plugin is not None and plugin.active and not plugin.blocked
            # One that is being asked is ended when that is over.
            if plugin is None or _digest(plugin) != digest or not (is_wanted or name in _asking):
                del _servers[name]
                ended.append(server)
    if ended:
        loop = _running()
        upstream_news.in_thread(lambda: loop.answer_sync(_close(ended), STOP_WITHIN))


def stop() -> None:
    """End all connections, side by side, and what is still being told; whoever asks next connects anew."""
    global _loop
    with _lock:
        servers, loop = [server for _, server in _servers.values()], _loop
        _servers.clear()
        _loop = None
    if loop is not None and servers:
        try:
            loop.answer_sync(_close(servers), STOP_WITHIN)
        except (background.Late, RuntimeError):
            _log.warning("upstream servers were left behind", servers=len(servers))
    upstream_news.finish(STOP_WITHIN)
    if loop is not None:
        loop.close()


async def _close(servers: Iterable[connection.Server]) -> None:
    await asyncio.gather(*(server.close() for server in servers), return_exceptions=True)


async def _answer(
    server: connection.Server,
    plugin: catalog.Plugin,
    tool: catalog.Tool,
    arguments: Mapping[str, Any],
    progress: Progress | None,
    check: background.Check | None,
) -> ToolResult:
    name = catalog.name_at_server(tool, plugin.namespace)

    def expected(listed: Answer) -> None:
        if listed.version(name, plugin.namespace) != catalog.version(tool):
            # It changed behind our back. What it says now is recorded, and waits for an operator.
            _told(plugin.name, listed)
            raise Unreachable(f"{plugin.name} no longer offers {name} as it was approved.")

    heard = _masking(progress) if progress is not None else None
    result = await server.call(name, arguments, progress=heard, check=check, expected=expected)
    return results.read(result)


def _ask(plugin: catalog.Plugin) -> Answer | None:
    """Ask a server; None where the process ends meanwhile: that is no fault of the server's."""
    server = _server(plugin)
    # What it takes to connect, to list, and to let go of a process that does neither.
    within = 2 * server.reached.timeout + STOP_WITHIN
    try:
        answer = _running().answer_sync(server.ask(), within)
    except (lives.Closed, concurrent.futures.CancelledError):
        return None
    except background.Late:
        return Answer(error=f"The server did not answer within {within:g} s.")
    return _masked(answer)


def _server(plugin: catalog.Plugin) -> connection.Server:
    """Give the connection of a server as it is configured now; one that was configured otherwise is ended."""
    reached = connections.read(plugin.upstream)
    if reached is None:
        raise Unreachable(f"{plugin.name} says nothing of how it is reached.")
    with _lock:
        digest = _digest(plugin)
        known = _servers.get(plugin.name)
        if known is not None and known[0] == digest:
            return known[1]
        server = connection.Server(
            reached,
            environ=environ.Environ(_secrets_of(plugin)),
            told=lambda answer: _told(plugin.name, answer),
        )
        _servers[plugin.name] = digest, server
    if known is not None:
        upstream_news.in_thread(lambda: _running().answer_sync(known[1].close(), STOP_WITHIN))
    return server


def _digest(plugin: catalog.Plugin) -> str:
    """Name all that makes a connection this one."""
    return hashlib.sha256(f"{_secrets_of(plugin)}\n{plugin.upstream}".encode()).hexdigest()


def _secrets_of(plugin: catalog.Plugin) -> str:
    """Name the namespace whose secrets a server may have: its own, else its name's, unless that is another's."""
    if plugin.namespace:
        return plugin.namespace
    return "" if plugin.name.lower() in _namespaces else plugin.name


def _masked(answer: Answer) -> Answer:
    """Take out of what is recorded and shown whatever secrets the server said back."""
    return dataclasses.replace(answer, error=secrets.mask(answer.error), stderr=secrets.mask(answer.stderr))


def _masking(hear: Progress) -> Progress:
    """Pass progress on without whatever secrets the server says back."""

    async def masked(progress: float, total: float | None, message: str | None) -> None:
        await hear(progress, total, message and secrets.mask(message))

    return masked


def _known(stored: catalog.Catalog, name: str) -> catalog.Plugin:
    plugin = stored.plugins.get(name)
    if plugin is None or not plugin.upstream:
        known = [one.name for one in stored.plugins.values() if one.upstream]
        raise errors.NotFound("upstream server", name, known)
    return plugin


def _running() -> background.Loop:
    global _loop
    with _lock:
        if _loop is None:
            _loop = background.Loop()
        return _loop


def _told(name: str, answer: Answer) -> None:
    upstream_news.told(name, _masked(answer))


class _Asked:
    """Marks servers as being asked, but those that somebody else has marked already."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = [name for name in names if name not in _asking]

    def __enter__(self) -> None:
        _asking.update(self._names)

    def __exit__(self, *raised: object) -> None:
        _asking.difference_update(self._names)


def _forget() -> None:
    """In a child process: the connections are its parent's."""
    global _loop
    _servers.clear()
    _asking.clear()
    _loop = None


os.register_at_fork(after_in_child=_forget)
