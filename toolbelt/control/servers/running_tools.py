"""Tools of plugins in code that no running process can run, and the background thread of a server that finds them.

Each server reports every minute which tools it can run, and a report counts for TOOLBELT_RUNNING_SECONDS, so a restart
or a rolling upgrade is not an outage. Requests never read these reports: what no process can run is stored with the
plugin.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Collection, Iterable, Sequence

import structlog
from django.db import connections

from toolbelt import conf
from toolbelt.control import writing
from toolbelt.control.catalog import entries
from toolbelt.control.servers import client_plugins
from toolbelt.core import catalog, facts
from toolbelt.store import running_processes, snapshots

SYSTEM = writing.by("toolbelt", via="system")
MISSING_REASON, RESTORED_REASON = facts.NOT_RUNNING, facts.RUNNING_AGAIN
REPORT_INTERVAL = 60.0
# Shortly after the start, when other work is done.
FIRST_REPORT_DELAY = 1.0
STOP_SECONDS = 5.0

# Returns the tools that this process can run.
Runnable = Callable[[], Collection[str]]
Problem = running_processes.Problem
# Returns what keeps plugins and servers from running in this process.
FindProblems = Callable[[], Sequence[Problem]]

_log = structlog.get_logger(__name__)
_runnable: Runnable = frozenset
_find_problems: FindProblems = tuple
_stopping: threading.Event | None = None
_thread: threading.Thread | None = None


def register(runnable: Runnable, find_problems: FindProblems) -> None:
    """Register what returns the tools that this process can run, and its problems; toolbelt.runtime knows them."""
    global _runnable, _find_problems
    _runnable, _find_problems = runnable, find_problems


def start() -> None:
    """Start a background thread that records what this process can run, until :func:`stop`.

    For servers, and for programs that run plugins without one.
    """
    global _stopping, _thread
    if _stopping is None and conf.RUNNING_SECONDS:
        running_processes.be_server(True)
        _stopping = threading.Event()
        _thread = threading.Thread(
            target=_keep_reporting, args=[_stopping], name="toolbelt-running", daemon=True
        )
        _thread.start()


def stop() -> None:
    """Stop the thread, which records that the process has ended."""
    global _stopping
    if _stopping is not None and _thread is not None:
        _stopping.set()
        _stopping = None
        _thread.join(STOP_SECONDS)
        running_processes.be_server(False)


def report(
    process: str,
    tools: Collection[str],
    *,
    problems: Sequence[Problem] | None = None,
    may_mark_missing: bool = True,
) -> None:
    """Record what a process can run, and store with each plugin in code which of its tools no process can run.

    Without ``may_mark_missing``, tools are only restored, because other processes may be starting at the same time.
    A server also states its ``problems``.
    """
    running_processes.record(process, tools, problems)
    can_run = running_processes.runnable() or frozenset()
    for plugin in snapshots.catalog().plugins.values():
        if _missing(plugin, can_run, may_mark_missing) != plugin.not_running:
            with writing.begin():
                _store(plugin.name, can_run, may_mark_missing)


def restore() -> None:
    """Record what this process can run, if some tools are stored as not running. For commands."""
    if any(plugin.not_running for plugin in snapshots.catalog().plugins.values()):
        report(uuid.uuid4().hex, _runnable(), may_mark_missing=False)


def not_running(tools: Iterable[str]) -> tuple[str, ...]:
    """Return those of the tools that no running process can run; none if no process is known to run."""
    can_run = running_processes.runnable()
    return () if can_run is None else tuple(tool for tool in tools if tool not in can_run)


def _store(name: str, can_run: frozenset[str], may_mark_missing: bool) -> None:
    plugin = snapshots.catalog().plugins.get(name)
    if plugin is None:
        return
    missing = _missing(plugin, can_run, may_mark_missing)
    reason = MISSING_REASON if set(missing) - set(plugin.not_running) else RESTORED_REASON
    write = SYSTEM.replace(reason=reason, confirm=True)
    entries.change(write, "plugin", name, {"not_running": list(missing) or None})


def _missing(plugin: catalog.Plugin, can_run: frozenset[str], may_mark_missing: bool) -> tuple[str, ...]:
    """Return the plugin's tools that no process can run."""
    if not plugin.in_code:
        return ()
    stored = snapshots.catalog()
    tools = [key for key in stored.tools_of_plugin.get(plugin.name, ()) if not stored.tools[key].retired]
    if not may_mark_missing:
        tools = [key for key in tools if key in plugin.not_running]
    return tuple(sorted(key for key in tools if key not in can_run))


def _keep_reporting(stopping: threading.Event) -> None:
    process, is_first, seconds = uuid.uuid4().hex, True, FIRST_REPORT_DELAY
    while not stopping.wait(seconds):
        try:
            report(process, _runnable(), problems=_find_problems(), may_mark_missing=not is_first)
            is_first = False
            client_plugins.end_versions()
        except Exception:
            _log.exception("running tools not announced")
        finally:
            connections.close_all()
        seconds = min(REPORT_INTERVAL, conf.RUNNING_SECONDS / 3)
    if not is_first:
        try:
            running_processes.end(process)
        except Exception:
            _log.exception("end of the server not announced")
        finally:
            connections.close_all()
