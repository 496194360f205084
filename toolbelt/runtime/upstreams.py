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
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import structlog
from django.db import connections as database

from toolbelt.core import catalog, connections, errors
from toolbelt.plugins import background, registry
from toolbelt.plugins.upstream import connection, importing, results
from toolbelt.runtime import environ, secrets
from toolbelt.store import listings, snapshots

Answer = importing.Answer
Progress = connection.Progress
Unreachable = connection.Unreachable
# Told what a server lists, by its name, where nobody asked for it; the operators' door listens.
Listener = Callable[[str, Answer], object]
Seen = TypeVar("Seen")

STOP_WITHIN = 10.0
MOST_AT_ONCE = 32

_log = structlog.get_logger(__name__)
_lock = threading.Lock()
_loop: background.Loop | None = None
_servers: dict[str, tuple[str, connection.Server]] = {}
_telling: set[threading.Thread] = set()
_asking: set[str] = set()
# What servers told that is not yet recorded, the newest of each; and whose is being recorded now.
_untold: dict[str, Answer] = {}
_recording: set[str] = set()
# The namespaces of the catalog that was seen last, in small letters, as names of variables have no case.
_namespaces: frozenset[str] = frozenset()
_listener: Listener | None = None


class TooSlow(registry.TimedOut):
    """The server took longer than its own connection allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How a server is, as far as this process and the rows know. ``state`` is this process's connection to it.

    ``answered`` is when it last listed its tools, to whichever process; ``problems`` what of that could not be taken.
    """

    state: connection.State
    is_being_asked: bool
    protocol: str = ""
    server: str = ""
    error: str = ""
    stderr: str = ""
    pause: float = 0.0
    asked: datetime | None = None
    answered: datetime | None = None
    tools: int = 0
    problems: tuple[errors.Problem, ...] = ()


def call(
    plugin: catalog.Plugin,
    tool: catalog.Tool,
    arguments: Mapping[str, Any],
    *,
    within: float,
    progress: Progress | None = None,
) -> Any:
    """Give what the tool answers, as JSON, in a thread that may block.

    Raises contract.ToolError for the model, registry.TimedOut (:class:`TooSlow`), and :class:`Unreachable` where the
    server is not there, or has not the version of the tool that is stored.
    """
    server = _server(plugin)
    try:
        return _running().answer_sync(_answer(server, plugin, tool, arguments, progress), within)
    except TimeoutError:
        raise TooSlow(tool.key, server.reached.timeout) from None
    except background.Late:
        raise registry.TimedOut(tool.key, within) from None


async def acall(
    plugin: catalog.Plugin,
    tool: catalog.Tool,
    arguments: Mapping[str, Any],
    *,
    within: float,
    progress: Progress | None = None,
) -> Any:
    """Do as :func:`call` does, in an event loop. Cancelling it takes the request back at the server, too."""
    server = _server(plugin)
    try:
        return await _running().answer(_answer(server, plugin, tool, arguments, progress), within)
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
    found: dict[str, Seen] = {}
    with _being_asked(wanted), concurrent.futures.ThreadPoolExecutor(MOST_AT_ONCE) as pool:
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

    _in_thread(ask)


def status(name: str) -> Status:
    """Say how a server is, without asking it. Raises errors.NotFound."""
    stored = snapshots.catalog()
    _known(stored, name)
    attend(stored)
    live, said = _live(name), listings.find(name)
    now = live.status() if live is not None else connection.Status()
    return Status(
        state=now.state,
        is_being_asked=name in _asking,
        protocol=now.protocol or (said.protocol if said else ""),
        server=now.server or (said.server if said else ""),
        error=secrets.mask(now.error or (said.error if said else "")),
        stderr=secrets.mask(now.stderr or (said.stderr if said else "")),
        pause=now.pause,
        asked=said.asked if said else None,
        answered=said.answered if said else None,
        tools=said.tools if said else 0,
        problems=said.problems if said else (),
    )


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
        _in_thread(lambda: loop.answer_sync(_close(ended), STOP_WITHIN))


def tell(listener: Listener | None) -> None:
    """Let ``listener`` be told what servers list, when they come or say that it changed."""
    global _listener
    _listener = listener


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
    for thread in [*_telling]:
        thread.join(STOP_WITHIN)
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
) -> Any:
    name = catalog.name_at_server(tool, plugin.namespace)
    listed = await server.tools()
    if not _is_as_stored(listed, name, plugin, tool):
        # It changed behind our back. What it says now is recorded, and waits for an operator.
        _told(plugin.name, listed)
        raise Unreachable(f"{plugin.name} no longer offers {name} as it was approved.")
    return results.content(await server.call(name, arguments, progress=progress))


def _is_as_stored(listed: Answer, name: str, plugin: catalog.Plugin, tool: catalog.Tool) -> bool:
    for one in listed.tools:
        if one.get("name") == name:
            made = importing.definition(one, plugin.namespace)
            return not isinstance(made, str) and made.version() == catalog.version(tool)
    return False


def _ask(plugin: catalog.Plugin) -> Answer | None:
    """Ask a server; None where the process ends meanwhile: that is no fault of the server's."""
    server = _server(plugin)
    # What it takes to connect, to list, and to let go of a process that does neither.
    within = 2 * server.reached.timeout + STOP_WITHIN
    try:
        answer = _running().answer_sync(server.ask(), within)
    except (connection.Closed, concurrent.futures.CancelledError):
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
        _in_thread(lambda: _running().answer_sync(known[1].close(), STOP_WITHIN))
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


def _live(name: str) -> connection.Server | None:
    with _lock:
        known = _servers.get(name)
    return known[1] if known is not None else None


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
    """Tell the listener, in a thread: it writes to the database, and here runs the loop of all servers.

    One thread for each server, and the newest answer: one that never stops telling keeps nobody else from writing.
    """
    with _lock:
        if _listener is None:
            return
        _untold[name] = _masked(answer)
        if name in _recording:
            return
        _recording.add(name)
    _in_thread(lambda: _record(name))


def _record(name: str) -> None:
    """Tell the listener what this server told, until there is no more of it."""
    while True:
        with _lock:
            answer, listener = _untold.pop(name, None), _listener
            if answer is None or listener is None:
                _recording.discard(name)
                return
        try:
            listener(name, answer)
        except Exception:
            _log.exception("what an upstream server told was not recorded", server=name)


def _in_thread(work: Callable[[], object]) -> None:
    def run() -> None:
        try:
            work()
        except Exception:
            _log.exception("work for an upstream server failed")
        finally:
            database.close_all()
            _telling.discard(threading.current_thread())

    thread = threading.Thread(target=run, name="toolbelt-upstream", daemon=True)
    _telling.add(thread)
    thread.start()


class _Asked:
    """Marks servers as being asked, but those that somebody else has marked already."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = [name for name in names if name not in _asking]

    def __enter__(self) -> None:
        _asking.update(self._names)

    def __exit__(self, *raised: object) -> None:
        _asking.difference_update(self._names)


def _being_asked(names: Iterable[str]) -> _Asked:
    return _Asked([*names])


def _forget() -> None:
    """In a child process: the connections are its parent's."""
    global _loop
    _servers.clear()
    _telling.clear()
    _asking.clear()
    _untold.clear()
    _recording.clear()
    _loop = None


os.register_at_fork(after_in_child=_forget)
