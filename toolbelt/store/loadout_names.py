"""System checks of the names of loadouts.

Loadouts are referred to by name, so rows that were written around Toolbelt, and settings, can name loadouts that do not
exist. Requests are answered without them; these checks report them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.db import Error
from django.db import models as orm

from toolbelt import conf, models
from toolbelt.core import catalog, keys, loadouts

_Loadouts = Mapping[str, catalog.Loadout]

# The fields of a loadout that name plugins and tools.
_NAMING = ("plugins", "discoverable", "disabled")


def connect() -> None:
    """Register the check with Django's system checks of databases."""
    checks.register(check, checks.Tags.database)


def check(
    app_configs: Sequence[AppConfig] | None, databases: Iterable[str] | None = None, **options: Any
) -> list[checks.CheckMessage]:
    """Return a warning for each name of a loadout that does not exist, and each loadout that inherits from itself."""
    return [message for alias in databases or () for message in _messages(alias)]


def _messages(alias: str) -> list[checks.CheckMessage]:
    try:
        rows = models.Loadout.objects.using(alias).values_list("name", "parent", *_NAMING)
        loadouts_ = {keys.fold(row[0]): _loadout(*row) for row in rows}
        return [
            *_parents(loadouts_),
            *_agents(loadouts_, alias),
            *_settings(loadouts_),
            *_unresolved(loadouts_, alias),
        ]
    except Error:
        # `migrate` runs the checks first: tables or some of their columns may be missing.
        return []


def _parents(stored_loadouts: _Loadouts) -> Iterator[checks.CheckMessage]:
    for loadout in stored_loadouts.values():
        if not loadout.parent:
            continue
        if not loadouts.exists(stored_loadouts, loadout.parent):
            problem = f"inherits from {loadout.parent!r}, which does not exist"
        elif keys.fold(loadouts.chain(stored_loadouts, loadout.name)[-1].parent) == keys.fold(loadout.name):
            problem = f"inherits from itself, through {loadout.parent!r}"
        else:
            continue
        yield checks.Warning(
            f"The loadout {loadout.name!r} {problem}: its chain ends there.",
            hint="Give it another parent, or none.",
            id="toolbelt.W003",
        )


def _agents(stored_loadouts: _Loadouts, alias: str) -> Iterator[checks.CheckMessage]:
    rows = models.Agent.objects.using(alias).values_list("key", "loadout", "session_loadouts")
    for agent, agent_loadout, of_sessions in rows.iterator():
        for name in dict.fromkeys((agent_loadout, *of_sessions)):
            if name and not loadouts.exists(stored_loadouts, str(name)):
                yield checks.Warning(
                    f"The agent {agent!r} names the loadout {name!r}, which does not exist and adds no tools.",
                    hint="Create a loadout with this name, or change the agent's loadout or session_loadouts.",
                    id="toolbelt.W004",
                )


def _settings(stored_loadouts: _Loadouts) -> Iterator[checks.CheckMessage]:
    if any(name == "TOOLBELT_KIND_LOADOUTS" for name, _ in conf.invalid_settings()):
        return  # reported as an error of its own (toolbelt.E001)
    for kind, name in conf.KIND_LOADOUTS.items():
        if not loadouts.exists(stored_loadouts, name):
            yield checks.Warning(
                f"TOOLBELT_KIND_LOADOUTS gives the kind {kind} the loadout {name!r}, which does not exist.",
                hint="Create a loadout with this name, or change the setting.",
                id="toolbelt.W005",
            )


def _unresolved(stored_loadouts: _Loadouts, alias: str) -> Iterator[checks.CheckMessage]:
    plugins = _names(models.Plugin, "name", alias)
    names = list(plugins.union(_names(models.Tool, "key", alias), all=True))
    stored = catalog.compile_(
        plugins=[catalog.Plugin(name=name) for table, name in names if table == "Plugin"],
        tools=[catalog.Tool(key=key) for table, key in names if table == "Tool"],
    )
    for loadout in stored_loadouts.values():
        for entry in loadouts.unresolved(stored, loadout):
            yield checks.Warning(
                f"The loadout {entry.loadout!r} names {entry.name!r} in {entry.field}: {entry.message}",
                hint="Correct or remove the name, unless you will add the plugin or tool later.",
                id="toolbelt.W006",
            )


def _names(model: type[orm.Model], field: str, alias: str) -> orm.QuerySet[Any, Any]:
    """Return the names in a table, each behind the table's."""
    rows = model._default_manager.using(alias).order_by().annotate(table=orm.Value(model.__name__))
    names: orm.QuerySet[Any, Any] = rows.values_list("table", field)
    return names


def _loadout(name: str, parent: str, *fields: Iterable[Any]) -> catalog.Loadout:
    plugins, discoverable, disabled = (tuple(map(str, names)) for names in fields)
    return catalog.Loadout(
        name=name, parent=parent, plugins=plugins, discoverable=discoverable, disabled=disabled
    )
