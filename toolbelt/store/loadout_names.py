"""Does every name of a loadout name one?

Loadouts are named by words, so rows that were written past the doors, and settings, can name what is not there. An
answer goes on without it; who runs this installation is told here, as a system check.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.db import DatabaseError, connections

from toolbelt import conf, models
from toolbelt.core import catalog, keys, loadouts

_Known = Mapping[str, catalog.Loadout]


def connect() -> None:
    """Let the system checks that look into databases look for such names."""
    checks.register(check, checks.Tags.database)


def check(
    app_configs: Sequence[AppConfig] | None, databases: Iterable[str] | None = None, **options: Any
) -> list[checks.CheckMessage]:
    """Warn of names of loadouts that name none, and of loadouts that build on themselves."""
    return [message for alias in databases or () for message in _messages(alias)]


def _messages(alias: str) -> list[checks.CheckMessage]:
    needed = {models.Loadout._meta.db_table, models.Agent._meta.db_table}
    try:
        # `migrate` checks first: there may be no tables yet, or tables without all of their columns.
        if not needed <= set(connections[alias].introspection.table_names()):
            return []
        rows = models.Loadout.objects.using(alias).values_list("name", "parent")
        known = {keys.fold(name): catalog.Loadout(name=name, parent=parent) for name, parent in rows}
        return [*_parents(known), *_agents(known, alias), *_settings(known)]
    except DatabaseError:
        return []


def _parents(known: _Known) -> Iterator[checks.CheckMessage]:
    for loadout in known.values():
        if not loadout.parent:
            continue
        if not loadouts.exists(known, loadout.parent):
            problem = f"builds on {loadout.parent!r}, which is no loadout"
        elif keys.fold(loadouts.chain(known, loadout.name)[-1].parent) == keys.fold(loadout.name):
            problem = f"builds on itself, by way of {loadout.parent!r}"
        else:
            continue
        yield checks.Warning(
            f"The loadout {loadout.name!r} {problem}: its chain is cut there.",
            hint="Give it another parent, or none.",
            id="toolbelt.W003",
        )


def _agents(known: _Known, alias: str) -> Iterator[checks.CheckMessage]:
    rows = models.Agent.objects.using(alias).values_list("key", "loadout", "session_loadouts")
    for agent, own, of_sessions in rows.iterator():
        for name in dict.fromkeys((own, *of_sessions)):
            if name and not loadouts.exists(known, str(name)):
                yield checks.Warning(
                    f"The agent {agent!r} names the loadout {name!r}, which there is not: it brings nothing in.",
                    hint="Make a loadout of this name, or let the agent's loadout or session_loadouts name another.",
                    id="toolbelt.W004",
                )


def _settings(known: _Known) -> Iterator[checks.CheckMessage]:
    if any(name == "TOOLBELT_KIND_LOADOUTS" for name, _ in conf.unsound()):
        return  # that is an error of its own (toolbelt.E001)
    for kind, name in conf.KIND_LOADOUTS.items():
        if not loadouts.exists(known, name):
            yield checks.Warning(
                f"TOOLBELT_KIND_LOADOUTS gives the kind {kind} the loadout {name!r}, which there is not.",
                hint="Make a loadout of this name, or let the setting name another.",
                id="toolbelt.W005",
            )
