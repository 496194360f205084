"""Calls of the meta-tools. Loads and unloads are stored in the session."""

from __future__ import annotations

import dataclasses
from typing import Any

from toolbelt.core import admitting, meta_tools, request_key, sessions
from toolbelt.core.rules import budgets, resolution
from toolbelt.runtime.records import recordings
from toolbelt.runtime.surfaces import snapshots
from toolbelt.store import agent_sessions as stored_sessions
from toolbelt.store import clock
from toolbelt.store import snapshots as stored_snapshots


def call(
    key: request_key.RequestKey, tool: str, arguments: Any, recording: recordings.Recording | None = None
) -> admitting.MetaAnswer | admitting.Refusal:
    """Call ``list_toolkits``, ``load_tools``, ``unload_tools`` or ``search_tools``.

    The ``recording`` of the call, if it has one, notes the state that decided on it. A load or unload is checked and
    stored under the lock of the session's row, so no concurrent change is lost.
    """
    snapshot, source = snapshots.take(key)
    if recording is not None:
        recording.note_state(snapshot, source.number)
    now = clock.now().isoformat(timespec="seconds")
    is_load = tool in (meta_tools.LOAD, meta_tools.UNLOAD)
    if key.session is None or not is_load:
        answer = admitting.meta(budgets.resolve(snapshot), snapshot, tool, arguments, now)
    else:
        answer = _change(key.session, snapshot, source, tool, arguments, now, recording)
    if recording is not None and is_load and isinstance(answer, admitting.MetaAnswer):
        recording.detail = f"{arguments['toolkit']} {answer.content['status']}"
    return answer


def _change(
    session: str,
    snapshot: resolution.Snapshot,
    source: stored_snapshots.StoredState,
    tool: str,
    arguments: Any,
    now: str,
    recording: recordings.Recording | None,
) -> admitting.MetaAnswer | admitting.Refusal:
    """Load or unload in a session, and return the answer."""

    def apply(
        session_state: sessions.Session,
    ) -> tuple[admitting.MetaAnswer | admitting.Refusal, sessions.Session | None]:
        locked = dataclasses.replace(snapshot, session=session_state)
        if recording is not None:
            recording.note_state(locked, source.number)
        answer = admitting.meta(budgets.resolve(locked), locked, tool, arguments, now)
        return answer, answer.session if isinstance(answer, admitting.MetaAnswer) else None

    return stored_sessions.change(source.agent_id, session, apply)
