"""Writing of entries to rows: unchanged rows are not written, and new ones come last.

Entries are in canonical form (:func:`toolbelt.core.belts.entry`): valid in shape, without default values. Names that do
not exist are skipped: the entry was checked before.
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
    "gate_rule": models.GateRule,
}


def put(kind: belts.KindName, name: str, entry: Entry) -> None:
    """Update the rows of this name to match the entry."""
    values = columns(kind, entry)
    if kind in _FURTHER_COLUMNS:
        values |= _FURTHER_COLUMNS[kind](entry)
    row = _put(ROWS[kind], {named_by(kind): name}, values)
    if kind in _FOLLOWERS:
        _FOLLOWERS[kind](row, entry)


def named_by(kind: belts.KindName) -> str:
    """Return the column that names a row of this kind."""
    return belts.KINDS[kind].named_by or "name"


def order(kind: belts.KindName, names: Iterable[str]) -> None:
    """Set the rows' positions to this order, from 0."""
    model, column = ROWS[kind], named_by(kind)
    positions = {name: position for position, name in enumerate(names)}
    rows = list(model._default_manager.filter(**{f"{column}__in": positions}))
    moved = [row for row in rows if set_columns(row, {"position": positions[getattr(row, column)]})]
    model._default_manager.bulk_update(moved, ["position"])


def columns(kind: belts.KindName, entry: Entry) -> dict[str, Any]:
    """Return the columns with the same names as the entry's fields; missing fields have the column's default."""
    fields = set(belts.KINDS[kind].fields) - {named_by(kind)}
    return {
        field.name: _column(field, entry.get(field.name, field.get_default()))
        for field in ROWS[kind]._meta.concrete_fields
        if field.name in fields and not field.is_relation
    }


def _column(field: orm.Field[Any, Any], value: Any) -> Any:
    """Return the value of a column: that of the entry, or the time that it states."""
    return grants.parse_time(value) if isinstance(field, orm.DateTimeField) else value


def _of_plugin(entry: Entry) -> dict[str, Any]:
    # A plugin that is ready has no error.
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
        at = grants.parse_time(end["at"]) if end else None
        expiry = agents.End(at=at, then=end.get("then"), by=end.get("by", "")) if at else None
        return grant_rows.columns(expiry)

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


def _put(model: type[_Row], identity: Mapping[str, str], columns: Mapping[str, Any]) -> _Row:
    """Return the row of this name, with these columns; it is written only if it differs."""
    rows = model._default_manager
    row = rows.filter(**identity).first()
    if row is None:
        row = model(**identity, **columns)
        if is_ordered(model):
            last = rows.aggregate(last=orm.Max("position"))["last"]
            set_columns(row, {"position": 0 if last is None else last + 1})
        row.save(force_insert=True)
    elif set_columns(row, columns):
        row.save()
    return row


def _follow(
    rows: orm.QuerySet[_Row], target: str, targets: Mapping[int, Mapping[str, Any]], like: _Row
) -> None:
    """Update the rows of an owner to point at ``targets``, in order.

    ``targets`` maps the row's ``target`` column to its other columns; new rows are copies of ``like``.
    """
    existing = {getattr(row, target): row for row in rows}
    gone = [row.pk for points_at, row in existing.items() if points_at not in targets]
    if gone:
        rows.filter(pk__in=gone).delete()
    # If the order is unchanged, gaps between the positions do no harm.
    is_to_be_ordered = is_ordered(rows.model) and list(targets) != list(existing)
    new = []
    for position, (points_at, columns) in enumerate(targets.items()):
        columns = {**columns, "position": position} if is_to_be_ordered else columns
        row = existing.get(points_at)
        if row is None:
            row = copy.copy(like)
            set_columns(row, {target: points_at, **columns})
            new.append(row)
        elif set_columns(row, columns):
            row.save()
    rows.model._default_manager.bulk_create(new)


def set_columns(row: orm.Model, columns: Mapping[str, Any]) -> tuple[str, ...]:
    """Set the columns of the row; return the names of those that changed."""
    differing = {name: value for name, value in columns.items() if _text(getattr(row, name)) != _text(value)}
    for name, value in differing.items():
        setattr(row, name, value)
    return tuple(differing)


def _text(value: Any) -> str:
    """Return a column's value as text: in JSON, 1, 1.0 and true are different."""
    return value.isoformat() if isinstance(value, datetime) else schema.canonical(value)


def is_ordered(model: type[orm.Model]) -> bool:
    """Return whether rows of this model have a position."""
    return any(field.name == "position" for field in model._meta.concrete_fields)


def _uses(uses: Iterable[Any], with_options: bool = True) -> dict[int, dict[str, Any]]:
    """Return the uses of tools by the tool's primary key; each is a key, or a mapping of tool and options."""
    pairs = [(use, None) if isinstance(use, str) else (use["tool"], use.get("options")) for use in uses]
    tools = _ids(models.Tool, "key", (key for key, _ in pairs))
    return {
        tools[key]: {"options": options} if with_options else {} for key, options in pairs if key in tools
    }


def _ids(model: type[orm.Model], column: str, names: Iterable[str]) -> dict[str, int]:
    """Return the primary keys of the rows with these names."""
    names_ = set(names)
    if not names_:
        return {}
    return dict(model._default_manager.filter(**{f"{column}__in": names_}).values_list(column, "pk"))
