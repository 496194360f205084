"""The last answers of upstream servers, and the problems with them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from django.db import models as orm
from django.utils import timezone

from toolbelt import models
from toolbelt.core import catalog, errors
from toolbelt.store import running_processes

State = Literal[
    "ready", "not-running", "not-responding", "not-asked", "failed", "off", "blocked", "sign-in-needed"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The last answer of one server. ``answered`` is when it last answered; ``error`` is why it has not since.
    ``sign_in_needed``: because no one is signed in.

    ``seen_by`` is the process that asked it; empty if that is not known. ``instructions`` are those that it states, and
    ``instructions_seen`` those that an operator has seen.
    """

    asked: dt.datetime
    answered: dt.datetime | None = None
    protocol: str = ""
    server: str = ""
    tools: int = 0
    problems: tuple[errors.Problem, ...] = ()
    error: str = ""
    sign_in_needed: bool = False
    seen_by: str = ""
    stderr: str = ""
    instructions: str = ""
    instructions_seen: str = ""


def state(plugin: catalog.Plugin, listing: Listing | None) -> State:
    """Return the state of a plugin, as it is stored for all processes. An operator's switches take precedence."""
    if plugin.blocked or not plugin.active:
        return "blocked" if plugin.blocked else "off"
    if listing is not None and listing.sign_in_needed:
        return "sign-in-needed"
    if plugin.status == "failed":
        return "failed"
    if plugin.not_running:
        return "not-running"
    if not plugin.upstream:
        return "ready"
    if listing is None:
        return "not-asked"
    return "not-responding" if listing.error else "ready"


def record_answer(
    plugin: str,
    *,
    protocol: str,
    server: str,
    tools: int,
    problems: Iterable[errors.Problem],
    stderr: str,
) -> None:
    """Store the server's answer."""
    now = timezone.now()
    written = [{"path": problem.path, "message": problem.message} for problem in problems]
    _put(
        plugin,
        asked=now,
        answered=now,
        protocol=protocol,
        server=server,
        tools=tools,
        problems=written,
        error="",
        sign_in_needed=False,
        stderr=stderr,
    )


def record_failure(plugin: str, *, error: str, sign_in_needed: bool, stderr: str) -> None:
    """Store why the server did not answer, with its earlier answer."""
    _put(plugin, asked=timezone.now(), error=error, sign_in_needed=sign_in_needed, stderr=stderr)


def load_all() -> Mapping[str, Listing]:
    """Return the last answers, by the plugin's name."""
    rows = models.Listing.objects.select_related("plugin")
    return {row.plugin.name: _read(row) for row in rows}


def find(plugin: str) -> Listing | None:
    """Return the last answer of one server, if it was ever asked."""
    row = models.Listing.objects.filter(plugin__name=plugin).first()
    return None if row is None else _read(row)


def record_instructions(plugin: str, text: str) -> None:
    """Store the instructions that the server states."""
    _put(plugin, instructions=text)


def see_instructions(plugin: str) -> None:
    """Store that an operator has seen the instructions that the server states."""
    models.Listing.objects.filter(plugin__name=plugin).update(instructions_seen=orm.F("instructions"))


def is_same_server(plugin: str, server: str) -> bool:
    """Return whether the server stated this name and version the last time that it answered."""
    return models.Listing.objects.filter(plugin__name=plugin, server=server, answered__isnull=False).exists()


def _put(plugin: str, **columns: object) -> None:
    plugin_row = models.Plugin.objects.filter(name=plugin).first()
    if plugin_row is not None:
        columns["seen_by"] = running_processes.this_process()
        models.Listing.objects.update_or_create(plugin=plugin_row, defaults=columns)


def _read(row: models.Listing) -> Listing:
    return Listing(
        asked=row.asked,
        answered=row.answered,
        protocol=row.protocol,
        server=row.server,
        tools=row.tools,
        problems=tuple(
            errors.Problem(path=str(problem.get("path", "")), message=str(problem.get("message", "")))
            for problem in row.problems
            if isinstance(problem, Mapping)
        ),
        error=row.error,
        sign_in_needed=row.sign_in_needed,
        seen_by=row.seen_by,
        stderr=row.stderr,
        instructions=row.instructions,
        instructions_seen=row.instructions_seen,
    )
