"""Agents as values, read in a fixed number of queries."""

from __future__ import annotations

import dataclasses
import functools
import operator
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from django.db import models as orm

from toolbelt import models
from toolbelt.core import agents, schema
from toolbelt.store import catalog, clock

# The columns of a switch or an override.
_GRANT = ("on", "ends", "then", "by")
_OF_ROLLOUT = ("rollout__trial_id", "rollout__percent", "rollout__changes", "rollout__trial__ends")
# The relations by which an agent refers to something, by its kind.
_NAMED_AT = {
    "toolkit": ("switches__toolkit__key", "allowed_toolkits__toolkit__key"),
    "tool": ("tools__tool__key", "overrides__tool__key"),
    "sub_app": ("sub_apps__sub_app__key",),
}


def load(agent_id: int) -> agents.Agent | None:
    """Return one agent as it is stored, including what has expired; None if it does not exist."""
    return next(iter(_read(id=agent_id)), None)


def load_several(agent_ids: Collection[int] | None) -> dict[int, agents.Agent]:
    """Return agents as they are stored, by id: these, or all of them."""
    narrowed = {} if agent_ids is None else {"id__in": agent_ids}
    return dict(_read_by_id(**narrowed))


def referring_to(kind: str, name: str) -> list[agents.Agent]:
    """Return the agents that name this toolkit or tool, or that this sub-app embeds, in order."""
    naming_it = functools.reduce(operator.or_, (orm.Q(**{path: name}) for path in _NAMED_AT[kind]))
    return load_all(id__in=set(models.Agent.objects.filter(naming_it).values_list("id", flat=True)))


def present(**filters: Any) -> list[agents.Agent]:
    """Return the agents that are not archived, as :func:`load_all` does."""
    return load_all(archived=False, **filters)


def load_all(**filters: Any) -> list[agents.Agent]:
    """Return the agents as they are now, in order."""
    now = clock.now()
    return [agent.as_of(now) for agent in _read(**filters)]


def load_as_written() -> list[agents.Agent]:
    """Return the agents as they are stored, in order: what has expired may be stored until the next write."""
    return _read()


def _read(**filters: Any) -> list[agents.Agent]:
    return [agent for _, agent in _read_by_id(**filters)]


def _read_by_id(**filters: Any) -> list[tuple[int, agents.Agent]]:
    rows = list(models.Agent.objects.filter(**filters).values(*_columns(), *_OF_ROLLOUT))
    under = {f"agent__{field}": value_ for field, value_ in filters.items()}
    always = _under_agents(models.AgentTool, under, "tool__key", "options")
    allowed = _under_agents(models.AgentToolkit, under, "toolkit__key", "initial")
    switches = _under_agents(models.ToolkitSwitch, under, "toolkit__key", *_GRANT)
    overrides = _under_agents(models.ToolOverride, under, "tool__key", *_GRANT)
    return [
        (
            row["id"],
            dataclasses.replace(
                value,
                tools=tuple(
                    agents.AlwaysOn(tool=key, options=options) for key, (options,) in always[row["id"]]
                ),
                switches={key: bool(on) for key, (on, *_) in switches[row["id"]]},
                overrides={key: bool(on) for key, (on, *_) in overrides[row["id"]]},
                ends={
                    key: agents.End(at=ends, then=then, by=by)
                    for key, (_, ends, then, by) in (*switches[row["id"]], *overrides[row["id"]])
                    if ends is not None
                },
                allowed_toolkits=tuple(key for key, _ in allowed[row["id"]]),
                initial_toolkits=tuple(key for key, (initial,) in allowed[row["id"]] if initial),
                rollout=_rollout(row),
            ),
        )
        for row in rows
        if (value := catalog.read("agent", {**row, "budget": _budget(row)})) is not None
    ]


def keys() -> list[str]:
    """Return the keys of the agents that are not archived, in order."""
    return list(models.Agent.objects.filter(archived=False).values_list("key", flat=True))


def titles() -> dict[str, str]:
    """Return the titles of all agents by key, archived ones as well; empty for an agent without a title."""
    return dict(models.Agent.objects.values_list("key", "title"))


def load_title(key: str) -> str:
    """Return an agent's title; empty if it has none, or does not exist."""
    return models.Agent.objects.filter(key=key).values_list("title", flat=True).first() or ""


def load_labels() -> list[agents.Agent]:
    """Return the agents in order, with only the columns that people identify them by."""
    fields = ("key", "title", "description", "role", "model", "kind", "loadout", "protected", "archived")
    return [agents.Agent(**row) for row in models.Agent.objects.values(*fields)]


@functools.cache
def _columns() -> tuple[str, ...]:
    return tuple(field.attname for field in models.Agent._meta.concrete_fields)


def _rollout(row: Mapping[str, Any]) -> agents.Rollout | None:
    """Return the roll-out that runs for an agent."""
    trial, percent, changes, ends = (row[column] for column in _OF_ROLLOUT)
    if trial is None:
        return None
    return agents.Rollout(trial=trial, percent=percent, changes=schema.canonical(changes), ends=ends)


def _budget(row: Mapping[str, Any]) -> dict[str, Any]:
    return {field: row[field] for field in ("max_tools", "max_tokens", "on_exceed")}


def _under_agents(
    model: type[orm.Model], under: dict[str, Any], key: str, *columns: str
) -> dict[int, list[tuple[str, tuple[Any, ...]]]]:
    """Return, by agent, the key and the columns of its rows of one kind, in order."""
    order = ("position", "id") if hasattr(model, "position") else (key,)
    by_agent: dict[int, list[tuple[str, tuple[Any, ...]]]] = defaultdict(list)
    rows: Iterable[tuple[Any, ...]] = (
        model._default_manager.filter(**under).order_by(*order).values_list("agent_id", key, *columns)
    )
    for agent, name, *values in rows:
        by_agent[agent].append((sys.intern(name), tuple(values)))
    return by_agent
