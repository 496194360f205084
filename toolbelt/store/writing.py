"""How does an entry become rows? Rows that hold it already are left alone; what is new goes last.

Entries come as reading and writing them again leaves them (:func:`toolbelt.core.belts.entry`): sound in form, without
what has its default. What an entry names and nobody has is passed over: whether it is sound was asked before.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from django.db import models as orm

from toolbelt import models
from toolbelt.core import agents, belts, grants, schema
from toolbelt.store import grants as grant_rows

Entry = Mapping[str, Any]
_Row = TypeVar("_Row", bound=orm.Model)

ROWS: Mapping[str, type[orm.Model]] = {
    "category": models.Category,
    "plugin": models.Plugin,
    "tool": models.Tool,
    "toolkit": models.Toolkit,
    "loadout": models.Loadout,
    "agent": models.Agent,
    "sub_app": models.SubApp,
}


def put(kind: belts.KindName, name: str, entry: Entry) -> None:
    """Make the rows of this name be as the entry says."""
    wanted = columns(kind, entry)
    if kind in _FURTHER_COLUMNS:
        wanted |= _FURTHER_COLUMNS[kind](entry)
    row = _put(ROWS[kind], {named_by(kind): name}, wanted)
    if kind in _FOLLOWERS:
        _FOLLOWERS[kind](row, entry)


def named_by(kind: belts.KindName) -> str:
    """Name the column that names a row of this kind."""
    return belts.KINDS[kind].named_by or "name"


def order(kind: belts.KindName, names: Iterable[str]) -> None:
    """Give the rows their places: as they are named here, from 0 on."""
    model, column = ROWS[kind], named_by(kind)
    places = {name: place for place, name in enumerate(names)}
    rows = list(model._default_manager.filter(**{f"{column}__in": places}))
    moved = [row for row in rows if set_columns(row, {"position": places[getattr(row, column)]})]
    model._default_manager.bulk_update(moved, ["position"])


def columns(kind: belts.KindName, entry: Entry) -> dict[str, Any]:
    """Give the columns that are called as the entry's fields are; what it leaves out has the column's default."""
    fields = set(belts.KINDS[kind].fields) - {named_by(kind)}
    return {
        field.name: entry.get(field.name, field.get_default())
        for field in ROWS[kind]._meta.concrete_fields
        if field.name in fields and not field.is_relation
    }


def _of_plugin(entry: Entry) -> dict[str, Any]:
    # A plugin that is ready has no error to tell of.
    return {} if entry.get("status") == "failed" else {"error": ""}


def _of_tool(entry: Entry) -> dict[str, Any]:
    plugin = entry.get("plugin")
    return {"plugin_id": _ids(models.Plugin, "name", [plugin]).get(plugin) if plugin else None}


def _of_agent(entry: Entry) -> dict[str, Any]:
    budget = entry.get("budget", {})
    return {
        "max_tools": budget.get("max_tools"),
        "max_tokens": budget.get("max_tokens"),
        "on_exceed": budget.get("on_exceed", models.Agent.OnExceed.WARN),
    }


def _under_toolkit(row: models.Toolkit, entry: Entry) -> None:
    _follow(row.members.all(), "tool_id", _uses(entry.get("members", ())), models.Member(toolkit=row))


def _under_agent(row: models.Agent, entry: Entry) -> None:
    allowed, initial = entry.get("allowed_toolkits", ()), set(entry.get("initial_toolkits", ()))
    config, ending = entry.get("tools_config", {}), entry.get("ends", {})

    def ends(key: str) -> dict[str, Any]:
        end = ending.get(key)
        at = grants.moment(end["at"]) if end else None
        given = agents.End(at=at, then=end.get("then"), by=end.get("by", "")) if at else None
        return grant_rows.columns(given)

    toolkits = _ids(models.Toolkit, "key", [*allowed, *config])
    tools = _ids(models.Tool, "key", config.keys() - toolkits.keys())
    _follow(row.tools.all(), "tool_id", _uses(entry.get("tools", ())), models.AgentTool(agent=row))
    _follow(
        row.allowed_toolkits.all(),
        "toolkit_id",
        {toolkits[key]: {"initial": key in initial} for key in allowed if key in toolkits},
        models.AgentToolkit(agent=row),
    )
    _follow(
        row.switches.all(),
        "toolkit_id",
        {toolkits[key]: {"on": on, **ends(key)} for key, on in config.items() if key in toolkits},
        models.ToolkitSwitch(agent=row),
    )
    _follow(
        row.overrides.all(),
        "tool_id",
        {tools[key]: {"on": on, **ends(key)} for key, on in config.items() if key in tools},
        models.ToolOverride(agent=row),
    )


def _under_sub_app(row: models.SubApp, entry: Entry) -> None:
    _follow(
        row.bound_tools.all(),
        "tool_id",
        _uses(entry.get("tool_names", ()), with_options=False),
        models.SubAppTool(sub_app=row),
    )
    agents = _ids(models.Agent, "key", entry.get("agents", ()))
    _follow(
        row.embedded_agents.all(),
        "agent_id",
        {agents[key]: {} for key in entry.get("agents", ()) if key in agents},
        models.SubAppAgent(sub_app=row),
    )


_FURTHER_COLUMNS: Mapping[str, Callable[[Entry], dict[str, Any]]] = {
    "plugin": _of_plugin,
    "tool": _of_tool,
    "agent": _of_agent,
}
_FOLLOWERS: Mapping[str, Callable[[Any, Entry], object]] = {
    "toolkit": _under_toolkit,
    "agent": _under_agent,
    "sub_app": _under_sub_app,
}


def _put(model: type[_Row], named: Mapping[str, str], columns: Mapping[str, Any]) -> _Row:
    """Give the row of this name, with these columns; it is written only where it differs."""
    rows = model._default_manager
    row = rows.filter(**named).first()
    if row is None:
        row = model(**named, **columns)
        if is_ordered(model):
            last = rows.aggregate(last=orm.Max("position"))["last"]
            set_columns(row, {"position": 0 if last is None else last + 1})
        row.save(force_insert=True)
    elif set_columns(row, columns):
        row.save()
    return row


def _follow(
    rows: orm.QuerySet[_Row], target: str, wanted: Mapping[int, Mapping[str, Any]], like: _Row
) -> None:
    """Make the rows under something be the wanted ones, in their order.

    ``wanted`` gives the columns of each by what it points at, which is its column ``target``; new ones are ``like``
    this one.
    """
    there = {getattr(row, target): row for row in rows}
    gone = [row.pk for points_at, row in there.items() if points_at not in wanted]
    if gone:
        rows.filter(pk__in=gone).delete()
    # As long as the order is what it was, gaps between the positions do no harm.
    is_to_be_ordered = is_ordered(rows.model) and list(wanted) != list(there)
    new = []
    for position, (points_at, columns) in enumerate(wanted.items()):
        columns = {**columns, "position": position} if is_to_be_ordered else columns
        row = there.get(points_at)
        if row is None:
            row = copy.copy(like)
            set_columns(row, {target: points_at, **columns})
            new.append(row)
        elif set_columns(row, columns):
            row.save()
    rows.model._default_manager.bulk_create(new)


def set_columns(row: orm.Model, columns: Mapping[str, Any]) -> tuple[str, ...]:
    """Set the columns of the row; name those that were different."""
    differing = {name: value for name, value in columns.items() if _text(getattr(row, name)) != _text(value)}
    for name, value in differing.items():
        setattr(row, name, value)
    return tuple(differing)


def _text(value: Any) -> str:
    """Write a column's value as a text: 1 and 1.0 and true are three things in a document."""
    return value.isoformat() if isinstance(value, datetime) else schema.canonical(value)


def is_ordered(model: type[orm.Model]) -> bool:
    """Say whether rows of this model have a place of their own."""
    return any(field.name == "position" for field in model._meta.concrete_fields)


def _uses(uses: Iterable[Any], with_options: bool = True) -> dict[int, dict[str, Any]]:
    """Give the uses of tools by the tool's number; each is a key, or a mapping of tool and options."""
    pairs = [(use, None) if isinstance(use, str) else (use["tool"], use.get("options")) for use in uses]
    tools = _ids(models.Tool, "key", (key for key, _ in pairs))
    return {
        tools[key]: {"options": options} if with_options else {} for key, options in pairs if key in tools
    }


def _ids(model: type[orm.Model], column: str, names: Iterable[str]) -> dict[str, int]:
    """Give the numbers of the rows that have these names."""
    wanted = set(names)
    if not wanted:
        return {}
    return dict(model._default_manager.filter(**{f"{column}__in": wanted}).values_list(column, "pk"))
