"""The tools that the running processes of the installation can run, as last reported."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection

from toolbelt import conf, models
from toolbelt.store import clock


def record(process: str, tools: Collection[str]) -> None:
    """Store the tools of plugins in code that a process can run, and delete expired reports."""
    now = clock.now()
    models.RunningProcess.objects.filter(at__lt=_oldest()).delete()
    models.RunningProcess.objects.update_or_create(id=process, defaults={"at": now, "tools": sorted(tools)})


def runnable() -> frozenset[str] | None:
    """Return the tools that any process can run; None if there is no current report."""
    recent = models.RunningProcess.objects.filter(at__gte=_oldest())
    lists = list(recent.values_list("tools", flat=True))
    return frozenset(tool for tools in lists for tool in tools) if lists else None


def _oldest() -> dt.datetime:
    """Return the time before which reports have expired."""
    return clock.now() - dt.timedelta(seconds=conf.RUNNING_SECONDS)
