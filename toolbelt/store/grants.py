"""Setting and clearing one switch or override."""

from __future__ import annotations

from typing import Any, Literal

from django.db import models as orm

from toolbelt import models
from toolbelt.core import agents, errors

_ROWS: dict[str, tuple[type[orm.Model], type[orm.Model], str]] = {
    "switch": (models.ToolkitSwitch, models.Toolkit, "toolkit"),
    "override": (models.ToolOverride, models.Tool, "tool"),
}


def write(
    family: Literal["switch", "override"],
    agent_id: int,
    key: str,
    on: bool | None,
    end: agents.End | None = None,
) -> None:
    """Set the agent's switch of a toolkit, or its override of a tool, with an optional expiry; None clears it and
    deletes the row.
    """
    grant, target_model, word = _ROWS[family]
    target = target_model._default_manager.filter(key=key).values_list("pk", flat=True).first()
    if target is None:
        raise errors.NotFound(word, key, target_model._default_manager.values_list("key", flat=True))
    row: dict[str, Any] = {"agent_id": agent_id, f"{word}_id": target}
    if on is None:
        grant._default_manager.filter(**row).delete()
    else:
        grant._default_manager.update_or_create(**row, defaults={"on": on, **columns(end)})


def columns(end: agents.End | None) -> dict[str, Any]:
    """Return the columns of an expiry, or of none."""
    if end is None:
        return {"ends": None, "then": None, "by": ""}
    return {"ends": end.at, "then": end.then, "by": end.by}
