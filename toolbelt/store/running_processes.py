"""What the running processes of the installation can run, and what keeps them from it, as last reported."""

from __future__ import annotations

import datetime as dt
import os
import socket
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from toolbelt import conf, models
from toolbelt.store import clock

# How long a process counts as running after its last report, which servers make every minute.
ALIVE = dt.timedelta(seconds=150)

# The environment variable by which `toolbelt serve` tells the processes of the server where it listens.
SERVED_AT = "TOOLBELT_SERVED_AT"

_kind = "command"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What keeps a plugin or a server (``subject``) from running in a process.

    The ``code`` is "variable", "directory" or "command", and ``what`` is what is missing; or "plugin" or "plugin-tools"
    (it offers other tools since it was initialized), and ``what`` is the message.
    """

    code: str
    subject: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A running server process, when it last reported, and its problems.

    The ``address`` is the one that it is reached at on its own machine; empty if `toolbelt serve` did not start it.
    """

    name: str
    address: str
    at: dt.datetime
    problems: tuple[Problem, ...]


def this_process() -> str:
    """Return the name of this process, such as ``server 4242 on web-1``."""
    return f"{_kind} {os.getpid()} on {socket.gethostname()}"


def be_server(is_server: bool) -> None:
    """Name this process a server, or a command."""
    global _kind
    _kind = "server" if is_server else "command"


def record(process: str, tools: Collection[str], problems: Iterable[Problem] | None = None) -> None:
    """Store the tools of plugins in code that a process can run, and delete expired reports.

    A server also states its ``problems``.
    """
    now = clock.now()
    models.RunningProcess.objects.filter(at__lt=_oldest()).delete()
    columns: dict[str, object] = {"at": now, "tools": sorted(tools)}
    if problems is not None:
        stated = [{"code": item.code, "subject": item.subject, "what": item.what} for item in problems]
        columns |= {"name": this_process(), "address": os.environ.get(SERVED_AT, ""), "problems": stated}
    models.RunningProcess.objects.update_or_create(id=process, defaults=columns)


def end(process: str) -> None:
    """Record that a process has ended. What it could run still counts for a time, because it may be restarted."""
    models.RunningProcess.objects.filter(id=process).update(name="", problems=None)


def runnable() -> frozenset[str] | None:
    """Return the tools that any process can run; None if there is no current report."""
    recent = models.RunningProcess.objects.filter(at__gte=_oldest())
    lists = list(recent.values_list("tools", flat=True))
    return frozenset(tool for tools in lists for tool in tools) if lists else None


def alive() -> tuple[Process, ...]:
    """Return the servers that run now, in the order of their names."""
    rows = models.RunningProcess.objects.filter(at__gte=clock.now() - ALIVE).exclude(name="")
    return tuple(
        Process(
            name=row.name,
            address=row.address,
            at=row.at,
            problems=tuple(map(_problem, row.problems or ())),
        )
        for row in rows.order_by("name")
    )


def _problem(stated: Mapping[str, str]) -> Problem:
    return Problem(**{field: str(stated.get(field, "")) for field in ("code", "subject", "what")})


def _oldest() -> dt.datetime:
    """Return the time before which reports have expired."""
    return clock.now() - dt.timedelta(seconds=conf.RUNNING_SECONDS)
