"""What does an agent get for a call of Toolbelt's own tools? Loads and unloads are kept in its session."""

from __future__ import annotations

import dataclasses
from typing import Any

from django.utils import timezone

from toolbelt.core import budgets, calls, meta_tools, sessions
from toolbelt.runtime import snapshots
from toolbelt.store import sessions as kept


def call(
    agent: str,
    tool: str,
    arguments: Any,
    session: str | None = None,
    request_id: str | None = None,
    subagent: str | None = None,
) -> calls.MetaAnswer | calls.Refusal:
    """Call ``list_toolkits``, ``load_tools``, ``unload_tools`` or ``search_tools``.

    A load or unload is judged and kept under the lock of the session's row, so that concurrent ones lose nothing.
    """
    snapshot, found = snapshots.take(agent, session, request_id, subagent)
    at = timezone.now().isoformat(timespec="seconds")
    if session is None or tool not in (meta_tools.LOAD, meta_tools.UNLOAD):
        return calls.meta(budgets.resolve(snapshot), snapshot, tool, arguments, at)

    def judge(
        held: sessions.Session,
    ) -> tuple[calls.MetaAnswer | calls.Refusal, sessions.Session | None]:
        locked = dataclasses.replace(snapshot, session=held)
        answer = calls.meta(budgets.resolve(locked), locked, tool, arguments, at)
        return answer, answer.session if isinstance(answer, calls.MetaAnswer) else None

    return kept.change(found.agent_id, session, judge)
