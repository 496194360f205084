"""The history of one agent: the audit log, without naming the agent on each line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolbelt.control.reports import queries
from toolbelt.web.agents import view_model as agents
from toolbelt.web.changes import view_model as changes
from toolbelt.web.kit import pieces


def page(
    agent: str, filters: Mapping[str, Any], *, path: str, may_undo: Callable[[queries.Entry], bool]
) -> pieces.View:
    """Return a page of the history, narrowed by ``filters``. Raise errors.NotFound for an unknown agent."""
    header = agents.present(queries.summary(agent))
    shown = changes.log(filters, path=path, may_undo=may_undo, agent=agent)
    for day in shown.days:
        for entry in day.entries:
            entry.agent = ""
    keys = {key: key for key in queries.logged_values("key", agent) if key}
    shown.agent = header
    shown.keys = pieces.choices(keys, filters["key"], "Any toolkit or tool")
    return shown
