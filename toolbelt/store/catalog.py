"""The catalog as values, read from rows in a fixed number of queries.

Schemas are read as text and not parsed: ten thousand tools are held in memory, of which thirty may be active. Reading
never raises, whatever the rows contain.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from django.db import models as orm
from django.db.models import functions

from toolbelt import models
from toolbelt.core import belts, catalog, errors, grants, toolkit_hooks
from toolbelt.store import purges, token_counts

# For reading entries without the names that they refer to, which are joined from existing rows.
NOTHING = catalog.compile_()
_QUERY_SIZE = 2000
# Columns of tools: those with JSON, which is read as text; those that may be null; and those with keys and short texts
# that many tools share, of which one copy is kept.
_JSON_OF_TOOLS = (
    "input_schema",
    "output_schema",
    "annotations",
    "details",
    "approved_version",
    "repairs",
    "declared_versions",
)
_EMPTY_IF_NULL = (
    "plugin",
    "output_schema",
    "annotations",
    "details",
    "approved_version",
    "repairs",
    "declared_versions",
)
_SHARED = ("key", "plugin", "category", "input_schema", "annotations")


def load(
    number: int = 0, stamp: str = "", hooks: toolkit_hooks.HooksByToolkit | None = None
) -> catalog.Catalog:
    """Return the compiled catalog, as the state with this number and stamp; ``hooks`` are those of toolkits in code."""
    return catalog.compile_(
        number=number,
        stamp=stamp,
        categories=categories(),
        plugins=plugins(),
        tools=tools(),
        toolkits=toolkits(),
        loadouts=loadouts(),
        sub_apps=sub_apps(),
        gate_rules=gate_rules(),
        code=hooks,
        purges=purges.numbers(),
        count_tokens=token_counts.count_policy,
    )


def categories(**filters: Any) -> tuple[str, ...]:
    """Return the categories besides the built-in ones, in order."""
    return tuple(models.Category.objects.filter(**filters).values_list("name", flat=True))


def plugins(**filters: Any) -> list[catalog.Plugin]:
    """Return the plugins, in order."""
    fields = {field.name for field in dataclasses.fields(catalog.Plugin)} - {"upstream"}
    rows = models.Plugin.objects.filter(**filters).annotate(connection=as_text("upstream"))
    return [
        catalog.Plugin(
            upstream=row.pop("connection") or "",
            declared_by=_texts(row.pop("declared_by")),
            not_running=_texts(row.pop("not_running")),
            reject_tools=_texts(row.pop("reject_tools")),
            reject_all_but=_texts(row.pop("reject_all_but")),
            preapproved=row.pop("preapproved") or {},
            **row,
        )
        for row in rows.values(*sorted(fields), "connection")
    ]


def tools(**filters: Any) -> list[catalog.Tool]:
    """Return the tools, by key."""
    names = [field.name for field in dataclasses.fields(catalog.Tool)]
    columns = {"plugin": orm.F("plugin__name")} | {name: as_text(name) for name in _JSON_OF_TOOLS}
    rows = models.Tool.objects.filter(**filters).values_list(*(columns.get(name, name) for name in names))
    read = []
    for row in rows.iterator(chunk_size=_QUERY_SIZE):
        values = dict(zip(names, row, strict=True))
        for name in _EMPTY_IF_NULL:
            values[name] = values[name] or ""
        if values["annotations"] == "{}":
            values["annotations"] = ""
        for name in ("recorded_fields", "brings"):
            values[name] = tuple(filter(_is_text, values[name]))
        for name in _SHARED:
            values[name] = sys.intern(values[name])
        read.append(catalog.Tool(**values))
    return read


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def toolkits(**filters: Any) -> list[catalog.Toolkit]:
    """Return the toolkits in order, with their members in order."""
    rows = list(models.Toolkit.objects.filter(**filters).values())
    members: dict[int, list[catalog.Member]] = defaultdict(list)
    for toolkit, tool, options in (
        models.Member.objects.filter(**_under("toolkit", filters))
        .order_by("position", "id")
        .values_list("toolkit_id", "tool__key", "options")
    ):
        members[toolkit].append(catalog.Member(tool=sys.intern(tool), options=options))
    return [
        dataclasses.replace(value, members=tuple(members[row["id"]]))
        for row in rows
        if (value := read("toolkit", row)) is not None
    ]


def loadouts(**filters: Any) -> list[catalog.Loadout]:
    """Return the stored loadouts, in order."""
    rows = models.Loadout.objects.filter(**filters).values()
    return [value for row in rows if (value := read("loadout", row)) is not None]


def sub_apps(**filters: Any) -> list[catalog.SubApp]:
    """Return the sub-apps in order, with their tools and agents in order."""
    rows = list(models.SubApp.objects.filter(**filters).values("id", "key", "title", "description"))
    under = _under("sub_app", filters)
    bound = _named(models.SubAppTool.objects.filter(**under), "tool__key")
    embedded = _named(models.SubAppAgent.objects.filter(**under), "agent__key")
    return [
        catalog.SubApp(
            key=row["key"],
            title=row["title"],
            description=row["description"],
            tool_names=tuple(bound[row["id"]]),
            agents=tuple(embedded[row["id"]]),
        )
        for row in rows
    ]


def gate_rules(**filters: Any) -> list[catalog.GateRule]:
    """Return the gate rules, by key."""
    rows = models.GateRule.objects.filter(**filters).values()
    return [value for row in rows if (value := read("gate_rule", row)) is not None]


def read(kind: belts.KindName, row: Mapping[str, Any]) -> Any:
    """Return the value of a row whose columns an entry of this kind has as well; None for a row without a name.

    JSON columns are read like those of a belt: what cannot be understood is skipped.
    """
    fields = belts.KINDS[kind].fields
    given = {name: row[name] for name in fields if name in row}
    # Entries state times as text.
    given |= {name: grants.format_time(at) for name, at in given.items() if isinstance(at, dt.datetime)}
    try:
        return belts.value(kind, given, NOTHING)
    except errors.Invalid:
        return None


def as_text(field: str) -> functions.Cast:
    """Return an expression for a JSON column as text, which is not parsed."""
    return functions.Cast(field, orm.TextField())


def _texts(stored: Any) -> tuple[str, ...]:
    """Return the texts of a list that is stored as JSON, whatever else it contains."""
    return tuple(item for item in stored if isinstance(item, str)) if isinstance(stored, list) else ()


def _under(parent: str, filters: dict[str, Any]) -> dict[str, Any]:
    return {f"{parent}__{field}": value for field, value in filters.items()}


def _named(rows: orm.QuerySet[Any], name: str) -> dict[int, list[str]]:
    by_sub_app: dict[int, list[str]] = defaultdict(list)
    ordered: Iterable[tuple[int, str]] = rows.order_by("position", "id").values_list("sub_app_id", name)
    for sub_app, key in ordered:
        by_sub_app[sub_app].append(key)
    return by_sub_app
