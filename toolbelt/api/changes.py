"""What was changed, by whom, through which shell, and how is it taken back?"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence
from typing import Annotated, Any

import ninja
import pydantic
from django.http import HttpRequest

from toolbelt.api import auth, changed, names, paging, problems, schemas
from toolbelt.control import queries, telling, undo
from toolbelt.core import errors

router = ninja.Router(tags=["changes"])

Number = Annotated[int, pydantic.Field(ge=1, le=paging.LARGEST)]


class Asked(paging.AskedOfLog):
    """Which changes. All of what is asked for holds."""

    actor: Annotated[names.Text, pydantic.Field(description="Who did it: a user name.")] = ""
    agent: Annotated[names.Text, pydantic.Field(description="Of this agent, and of its access.")] = ""
    kind: Annotated[names.Text, pydantic.Field(description="Of things of this kind, such as toolkit.")] = ""
    name: Annotated[names.Text, pydantic.Field(description="Of the things of this name.")] = ""
    key: Annotated[names.Text, pydantic.Field(description="The toolkit or tool of a switch or override.")] = (
        ""
    )
    action: Annotated[names.Text, pydantic.Field(description="Such as switch.set.")] = ""
    via: Annotated[names.Text, pydantic.Field(description="The shell it came through, such as screen.")] = ""
    batch: Annotated[uuid.UUID | None, pydantic.Field(description="Done in this one act.")] = None
    since: Annotated[names.Moment | None, pydantic.Field(description="Not before this.")] = None
    until: Annotated[names.Moment | None, pydantic.Field(description="Before this.")] = None


class Undone(ninja.Schema):
    """The change that took another one back."""

    id: int
    actor: str
    at: dt.datetime


class RecordedChange(ninja.Schema):
    """One change, as the audit keeps it; see the reference of audit actions."""

    id: int
    at: dt.datetime
    actor: str
    via: str
    action: str
    kind: str
    name: str
    key: str
    before: Any
    after: Any
    reason: str
    batch: uuid.UUID | None
    undoes: int | None
    undone: Undone | None


class Undo(schemas.Body):
    """How far to go back."""

    whole: Annotated[
        names.Boolean, pydantic.Field(description="Take back all that was done in the same act (its batch).")
    ] = False
    reason: names.Reason = ""


@router.get("/changes", auth=auth.looking("audit_entry"), response=paging.Page[RecordedChange])
def list_changes(request: HttpRequest, asked: ninja.Query[Asked]) -> Any:
    """List what was changed, the newest first."""
    found = queries.changes(
        **asked.model_dump(exclude={"limit", "older_than"}), older_than=asked.older_than, size=asked.limit
    )
    last = found.entries[-1].id if found.has_older else None
    return paging.older(request, asked, _told(request, found.entries), found.total, last)


@router.get("/changes/{change}", auth=auth.looking("audit_entry"), response=RecordedChange)
def read_change(request: HttpRequest, change: Number) -> Any:
    """Give one change."""
    return _told(request, [_found(change)])[0]


@router.post(
    "/changes/{change}/undo",
    auth=auth.writing(),
    response={200: changed.Changed, **problems.answers(409)},
)
def undo_change(request: HttpRequest, change: Number, body: Undo) -> Any:
    """Take a change back by one of its own, which can be undone in turn.

    It takes the permission to do the reverse. 409 `stale`: somebody has changed the same thing since.
    """
    done = [_found(change)] if not body.whole else undo.act_of(change)
    auth.demand_undoing(request, done)
    write = undo.undo_act if body.whole else undo.undo
    return changed.told(write(auth.actor(request), change, reason=body.reason))


def _found(number: int) -> queries.Entry:
    found = queries.change(number)
    if found is None:
        raise errors.NotFound("change", str(number))
    return found


def _told(request: HttpRequest, entries: Sequence[queries.Entry]) -> list[dict[str, Any]]:
    """Tell of changes, but not what was in things that whoever asks may not look at: connections of servers, say."""
    readable = auth.readable(request, {entry.subject_kind for entry in entries})
    return [telling.document(entry, is_open=entry.subject_kind in readable) for entry in entries]
