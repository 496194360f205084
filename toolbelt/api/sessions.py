"""What has an agent's conversation loaded, and may it begin anew? (Loading itself is a call: load_tools.)"""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any

import ninja
import pydantic
from django.http import HttpRequest
from django.urls import converters, register_converter
from ninja import params

from toolbelt.api import auth, paging, problems, schemas, surfaces
from toolbelt.control import sessions
from toolbelt.runtime import access

router = ninja.Router(tags=["agents: sessions"])


class AnyText(converters.StringConverter):
    """Takes an id with slashes, too; and with a line break, for the answer to say that there cannot be one."""

    regex = r"[\s\S]+"


register_converter(AnyText, "anytext")
_ONE = "/agents/{agent}/sessions/{anytext:session}"


class Change(ninja.Schema):
    """The last load or unload of one name; in the request that made it, it does not count yet."""

    kind: str
    name: str
    loaded: bool
    request_id: str | None
    at: str


class Session(ninja.Schema):
    """One conversation: the loadout that stands in for the agent's (empty: none does), and what was loaded."""

    agent: str
    session: str
    loadout: str
    changes: list[Change]
    created: Annotated[dt.datetime | None, pydantic.Field(description="Null: nothing is kept of it.")]
    changed: dt.datetime | None


class Equipping(schemas.Body):
    """Which loadout is to stand in for the agent's; empty: its own counts again."""

    loadout: Annotated[str, pydantic.Field(max_length=64)]
    was: Annotated[
        str | None,
        pydantic.Field(description="The one that you saw; if it is another by now: 409 stale."),
    ] = None
    reason: Annotated[str, pydantic.Field(max_length=1000)] = ""


@router.get("/agents/{agent}/sessions", auth=auth.agent, response=paging.Page[Session])
def list_agent_sessions(request: HttpRequest, agent: str, asked: params.Query[paging.Asked]) -> Any:
    """List the sessions of an agent that have loaded something, the last changed first."""
    found = sessions.listed(agent, offset=asked.offset, limit=asked.limit)
    return paging.page(request, asked, [document(one) for one in found.sessions], found.total)


@router.get(_ONE, auth=auth.agent, response=Session)
def get_session(request: HttpRequest, agent: str, session: surfaces.Id) -> Any:
    """Say what a session has loaded, and when."""
    return document(sessions.read(agent, session))


@router.put(
    _ONE,
    auth=auth.of_sessions("change"),
    response={200: Session, **problems.answers(409)},
)
def equip_session(request: HttpRequest, agent: str, session: surfaces.Id, body: Equipping) -> Any:
    """Let another loadout stand in for the agent's in one session.

    An agent's own token may put on, and take off, those of the agent's session_loadouts.
    """
    among = access.session_loadouts(auth.bearer(request), agent)
    done = sessions.equip(
        auth.actor(request), agent, session, body.loadout, was=body.was, among=among, reason=body.reason
    )
    kept = sessions.find(agent, session)
    return document(kept) if kept is not None else empty(agent, session, done.after)


@router.delete(
    _ONE,
    auth=auth.of_sessions("delete"),
    response={204: None, **problems.answers(409)},
)
def evict_session(request: HttpRequest, agent: str, session: surfaces.Id) -> Any:
    """Let a session begin anew: what it has loaded is forgotten, and so is its loadout.

    An agent's own token may not, where the loadout is none of the agent's session_loadouts.
    """
    among = access.session_loadouts(auth.bearer(request), agent)
    sessions.evict(auth.actor(request), agent, session, among=among)
    return ninja.Status(204, None)


def document(kept: sessions.Kept) -> dict[str, Any]:
    """Give a session as it stands on the wire."""
    held = kept.session
    return {
        "agent": kept.agent,
        "session": held.key,
        "loadout": held.loadout,
        "changes": [
            {
                "kind": change.kind,
                "name": change.name,
                "loaded": change.on,
                "request_id": change.request_id,
                "at": change.at,
            }
            for change in held.changes
        ],
        "created": kept.created,
        "changed": kept.changed,
    }


def empty(agent: str, session: surfaces.Id, loadout: str) -> dict[str, Any]:
    """Give a session of which nothing is kept: no loadout was put on, or it was evicted meanwhile."""
    return {
        "agent": agent,
        "session": session,
        "loadout": loadout,
        "changes": [],
        "created": None,
        "changed": None,
    }
