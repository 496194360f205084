"""Tools of plugins in code that no running process can run, and the background thread of a server that finds them.

Each server reports every minute which tools it can run, and a report counts for TOOLBELT_RUNNING_SECONDS, so a restart
or a rolling upgrade is not an outage. Requests never read these reports: what no process can run is stored with the
plugin.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Collection, Iterable

import structlog
from django.db import connections

from toolbelt import conf
from toolbelt.control import writing
from toolbelt.control.catalog import entries
from toolbelt.core import catalog
from toolbelt.store import running_processes, snapshots

SYSTEM = writing.by("toolbelt", via="system")
ABSENT = "no running process can run these tools"
BACK = "a running process can run these tools again"
SECONDS_BETWEEN = 60.0
# Shortly after the start, when other work is done.
SECONDS_UNTIL_FIRST = 1.0

# Returns the tools that this process can run.
Runnable = Callable[[], Collection[str]]

_log = structlog.get_logger(__name__)
_stopping: threading.Event | None = None


def start(runnable: Runnable) -> None:
    """Start a background thread that records what this process can run, until :func:`stop`.

    For servers, and for programs that run plugins without one.
    """
    global _stopping
    if _stopping is None and conf.RUNNING_SECONDS:
        _stopping = threading.Event()
        threading.Thread(
            target=_keep_announcing, args=[_stopping, runnable], name="toolbelt-running", daemon=True
        ).start()


def stop() -> None:
    """Stop the thread; callers need not wait."""
    global _stopping
    if _stopping is not None:
        _stopping.set()
        _stopping = None


def announce(process: str, tools: Collection[str], *, may_end: bool = True) -> None:
    """Record what a process can run, and store with each plugin in code which of its tools no process can run.

    Without ``may_end``, tools only come back: others may be starting at the same time.
    """
    running_processes.announce(process, tools)
    can_run = running_processes.runnable() or frozenset()
    for plugin in snapshots.catalog().plugins.values():
        if _absent(plugin, can_run, may_end) != plugin.not_running:
            with writing.begin():
                _store(plugin.name, can_run, may_end)


def bring_back(runnable: Runnable) -> None:
    """Record what this process can run, if some tools are stored as not running. For commands."""
    if any(plugin.not_running for plugin in snapshots.catalog().plugins.values()):
        announce(uuid.uuid4().hex, runnable(), may_end=False)


def not_running(tools: Iterable[str]) -> tuple[str, ...]:
    """Return those of the tools that no running process can run; none if no process is known to run."""
    can_run = running_processes.runnable()
    return () if can_run is None else tuple(tool for tool in tools if tool not in can_run)


def _store(name: str, can_run: frozenset[str], may_end: bool) -> None:
    plugin = snapshots.catalog().plugins.get(name)
    if plugin is None:
        return
    absent = _absent(plugin, can_run, may_end)
    reason = ABSENT if set(absent) - set(plugin.not_running) else BACK
    write = SYSTEM.replace(reason=reason, confirm=True)
    entries.change(write, "plugin", name, {"not_running": list(absent) or None})


def _absent(plugin: catalog.Plugin, can_run: frozenset[str], may_end: bool) -> tuple[str, ...]:
    """Return the plugin's tools that no process can run."""
    if not plugin.in_code:
        return ()
    stored = snapshots.catalog()
    tools = [key for key in stored.tools_of_plugin.get(plugin.name, ()) if not stored.tools[key].retired]
    if not may_end:
        tools = [key for key in tools if key in plugin.not_running]
    return tuple(sorted(key for key in tools if key not in can_run))


def _keep_announcing(stopping: threading.Event, runnable: Runnable) -> None:
    process, is_first, seconds = uuid.uuid4().hex, True, SECONDS_UNTIL_FIRST
    while not stopping.wait(seconds):
        try:
            announce(process, runnable(), may_end=not is_first)
            is_first = False
        except Exception:
            _log.exception("running tools not announced")
        finally:
            connections.close_all()
        seconds = min(SECONDS_BETWEEN, conf.RUNNING_SECONDS / 3)
