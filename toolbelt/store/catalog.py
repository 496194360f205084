"""What exists, as values? From rows, whole or one by one, in a fixed number of queries.

Schemas are read as text and not parsed: ten thousand tools are kept for the sake of the thirty that are active.
Whatever stands in the rows, reading it never raises.
"""

from __future__ import annotations

import dataclasses
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from django.db import models as orm
from django.db.models import functions

from toolbelt import models
from toolbelt.core import belts, catalog, code, errors

# For reading entries that name nothing: what they are made of is joined from rows, which are known to be there.
NOTHING = catalog.compile_()
_QUERY_SIZE = 2000


def load(number: int = 0, stamp: str = "", voices: code.Voices | None = None) -> catalog.Catalog:
    """Compile the whole catalog, as the state with this number and stamp; ``voices`` speak for toolkits in code."""
    return catalog.compile_(
        number=number,
        stamp=stamp,
        categories=categories(),
        plugins=plugins(),
        tools=tools(),
        toolkits=toolkits(),
        loadouts=loadouts(),
        sub_apps=sub_apps(),
        code=voices,
    )


def categories(**narrowed: Any) -> tuple[str, ...]:
    """Name the categories beyond the thirteen, in order."""
    return tuple(models.Category.objects.filter(**narrowed).values_list("name", flat=True))


def plugins(**narrowed: Any) -> list[catalog.Plugin]:
    """Give the plugins, in order."""
    fields = {field.name for field in dataclasses.fields(catalog.Plugin)} - {"upstream"}
    rows = models.Plugin.objects.filter(**narrowed).annotate(connection=as_text("upstream"))
    return [
        catalog.Plugin(upstream=row.pop("connection") or "", **row)
        for row in rows.values(*sorted(fields), "connection")
    ]


def tools(**narrowed: Any) -> list[catalog.Tool]:
    """Give the tools, by key."""
    rows = models.Tool.objects.filter(**narrowed).values_list(
        "key",
        "plugin__name",
        "title",
        "description",
        "category",
        "default_on",
        as_text("input_schema"),
        as_text("output_schema"),
        as_text("annotations"),
        "policy",
        "blocked",
        "retired",
        "seen",
        "approved",
        as_text("approved_version"),
        "upstream_name",
        "tokens",
    )
    # Keys and short texts that many tools share are kept once.
    return [
        catalog.Tool(
            key=sys.intern(key),
            plugin=sys.intern(plugin or ""),
            title=title,
            description=description,
            category=sys.intern(category),
            default_on=default_on,
            input_schema=sys.intern(input_schema),
            output_schema=output_schema or "",
            annotations=sys.intern(annotations if annotations != "{}" else ""),
            policy=policy,
            blocked=blocked,
            retired=retired,
            seen=seen,
            approved=approved,
            approved_version=approved_version or "",
            upstream_name=upstream_name,
            tokens=tokens,
        )
        for (
            key,
            plugin,
            title,
            description,
            category,
            default_on,
            input_schema,
            output_schema,
            annotations,
            policy,
            blocked,
            retired,
            seen,
            approved,
            approved_version,
            upstream_name,
            tokens,
        ) in rows.iterator(chunk_size=_QUERY_SIZE)
    ]


def toolkits(**narrowed: Any) -> list[catalog.Toolkit]:
    """Give the toolkits in order, with their members in theirs."""
    rows = list(models.Toolkit.objects.filter(**narrowed).values())
    members: dict[int, list[catalog.Member]] = defaultdict(list)
    for toolkit, tool, options in (
        models.Member.objects.filter(**_under("toolkit", narrowed))
        .order_by("position", "id")
        .values_list("toolkit_id", "tool__key", "options")
    ):
        members[toolkit].append(catalog.Member(tool=sys.intern(tool), options=options))
    return [
        dataclasses.replace(value, members=tuple(members[row["id"]]))
        for row in rows
        if (value := read("toolkit", row)) is not None
    ]


def loadouts(**narrowed: Any) -> list[catalog.Loadout]:
    """Give the stored loadouts, in order."""
    rows = models.Loadout.objects.filter(**narrowed).values()
    return [value for row in rows if (value := read("loadout", row)) is not None]


def sub_apps(**narrowed: Any) -> list[catalog.SubApp]:
    """Give the sub-apps in order, with their tools and agents in theirs."""
    rows = list(models.SubApp.objects.filter(**narrowed).values("id", "key", "title", "description"))
    under = _under("sub_app", narrowed)
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


def read(kind: belts.KindName, row: Mapping[str, Any]) -> Any:
    """Read the columns of a row that an entry of this kind has, too; None for a row that has no name to go by.

    Documents in columns are read as those of a belt are: what cannot be understood is passed over.
    """
    fields = belts.KINDS[kind].fields
    try:
        return belts.value(kind, {name: row[name] for name in fields if name in row}, NOTHING)
    except errors.Invalid:
        return None


def as_text(field: str) -> functions.Cast:
    """Ask for a document as its text: the database hands it over, and nobody parses it."""
    return functions.Cast(field, orm.TextField())


def _under(parent: str, narrowed: dict[str, Any]) -> dict[str, Any]:
    return {f"{parent}__{field}": wanted for field, wanted in narrowed.items()}


def _named(rows: orm.QuerySet[Any], name: str) -> dict[int, list[str]]:
    found: dict[int, list[str]] = defaultdict(list)
    ordered: Iterable[tuple[int, str]] = rows.order_by("position", "id").values_list("sub_app_id", name)
    for sub_app, key in ordered:
        found[sub_app].append(key)
    return found
