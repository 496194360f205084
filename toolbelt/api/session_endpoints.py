"""Agents' sessions: what a conversation has loaded, and its loadout. (Loading itself is a tool call: load_tools.)"""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any

import ninja
import pydantic
from django.http import HttpRequest
from django.urls import converters, register_converter
from ninja import params

from toolbelt.api import auth, paging, problems, schemas, surfaces
from toolbelt.control.agents import session_changes
from toolbelt.runtime.surfaces import request_contexts

router = ninja.Router(tags=["agents: sessions"])


class AnyText(converters.StringConverter):
    """Matches any text: an id may contain slashes, and an id with a line break is answered with a clear error."""

    regex = r"[\s\S]+"


register_converter(AnyText, "anytext")
_SESSION_PATH = "/agents/{agent}/sessions/{anytext:session}"


class LoadChange(ninja.Schema):
    """The last load or unload of a toolkit or tool. It applies from the request after `request_id`."""

    kind: str
    name: str
    loaded: Annotated[bool, pydantic.Field(description="True if it was loaded, false if it was unloaded.")]
    request_id: Annotated[str | None, pydantic.Field(description="The request that made the change.")]
    at: str


class Label(ninja.Schema):
    """What a session has touched: the label, the tool whose call brought it first, and when."""

    name: str
    tool: str
    at: str


class Session(ninja.Schema):
    """A conversation: its loadout, what it has loaded, and the labels that gate rules read."""

    agent: str
    session: str
    loadout: Annotated[
        str,
        pydantic.Field(description="The loadout used instead of the agent's. Empty: the agent's own."),
    ]
    changes: list[LoadChange]
    labels: list[Label]
    created: Annotated[
        dt.datetime | None, pydantic.Field(description="Null if nothing is stored for this session.")
    ]
    changed: dt.datetime | None


class LabelToClear(schemas.Body):
    """A label of a session."""

    session: Annotated[str, pydantic.Field(max_length=200, description="The id of the session.")]
    label: Annotated[str, pydantic.Field(max_length=64, description="The label to clear.")]
    reason: Annotated[str, pydantic.Field(max_length=1000, description="A reason, for the audit log.")] = ""


class SessionUpdate(schemas.Body):
    """The loadout of a session."""

    loadout: Annotated[
        str,
        pydantic.Field(
            max_length=64, description="The loadout to use instead of the agent's. Empty: the agent's own."
        ),
    ]
    was: Annotated[
        str | None,
        pydantic.Field(
            description="The current loadout that you expect. If it differs, nothing is changed (409 `stale`)."
        ),
    ] = None
    reason: Annotated[str, pydantic.Field(max_length=1000, description="A reason, for the audit log.")] = ""


@router.get("/agents/{agent}/sessions", auth=auth.agent, response=paging.list_of(Session))
def list_agent_sessions(request: HttpRequest, agent: str, query: params.Query[paging.PageQuery]) -> Any:
    """List the sessions of an agent that have loaded tools or have a loadout of their own, last changed first."""
    page = session_changes.page(agent, offset=query.offset, limit=query.limit)
    return paging.page(request, query, [document(session) for session in page.sessions], page.total)


@router.get(_SESSION_PATH, auth=auth.agent, response=Session)
def get_session(request: HttpRequest, agent: str, session: surfaces.Id) -> Any:
    """Retrieve a session: its loadout, what it has loaded, and when."""
    return document(session_changes.read(agent, session))


@router.put(
    _SESSION_PATH,
    auth=auth.session_writing("change"),
    response={200: Session, **problems.documented(409)},
)
def equip_session(request: HttpRequest, agent: str, session: surfaces.Id, body: SessionUpdate) -> Any:
    """Replace the agent's loadout in one session.

    With an agent's own token, only the loadouts in the agent's `session_loadouts` may be set or replaced.
    """
    allowed_loadouts = request_contexts.session_loadouts(auth.bearer(request), agent)
    change = session_changes.equip(
        auth.write(request, reason=body.reason),
        agent,
        session,
        body.loadout,
        was=body.was,
        among=allowed_loadouts,
    )
    stored_session = session_changes.find(agent, session)
    return document(stored_session) if stored_session is not None else empty(agent, session, change.after)


@router.delete(
    _SESSION_PATH,
    auth=auth.session_writing("delete"),
    response={204: None, **problems.documented(409)},
)
def evict_session(request: HttpRequest, agent: str, session: surfaces.Id) -> Any:
    """Delete a session: unload everything, reset its loadout and its labels, and close its connections to upstream
    servers.

    With an agent's own token, the labels stay, and it is refused if the session's loadout is not in the agent's
    `session_loadouts`.
    """
    allowed_loadouts = request_contexts.session_loadouts(auth.bearer(request), agent)
    session_changes.evict(auth.write(request), agent, session, among=allowed_loadouts)
    return ninja.Status(204, None)


@router.post(
    "/agents/{agent}/labels/clear",
    auth=auth.session_clearing(),
    response={200: Session, **problems.documented(404)},
)
def clear_label(request: HttpRequest, agent: str, body: LabelToClear) -> Any:
    """Clear a label of a session: gate rules check its next calls as if nothing had brought it."""
    session_changes.clear_label(auth.write(request, reason=body.reason), agent, body.session, body.label)
    return document(session_changes.read(agent, body.session))


def document(stored_session: session_changes.StoredSession) -> dict[str, Any]:
    """Return a session as a JSON object."""
    session = stored_session.session
    return {
        "agent": stored_session.agent,
        "session": session.key,
        "loadout": session.loadout,
        "changes": [
            {
                "kind": change.kind,
                "name": change.name,
                "loaded": change.on,
                "request_id": change.request_id,
                "at": change.at,
            }
            for change in session.changes
        ],
        "labels": [{"name": label.name, "tool": label.tool, "at": label.at} for label in session.labels],
        "created": stored_session.created,
        "changed": stored_session.changed,
    }


def empty(agent: str, session: surfaces.Id, loadout: str) -> dict[str, Any]:
    """Return a session for which nothing is stored: it has no loadout, or was deleted in the meantime."""
    return {
        "agent": agent,
        "session": session,
        "loadout": loadout,
        "changes": [],
        "labels": [],
        "created": None,
        "changed": None,
    }
