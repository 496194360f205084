"""The audit log of changes, and undo."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence
from typing import Annotated, Any

import ninja
import pydantic
from django.http import HttpRequest

from toolbelt.api import auth, change_results, names, paging, problems
from toolbelt.control import undo
from toolbelt.control.reports import audit_serializer, queries
from toolbelt.core import errors, facts

router = ninja.Router(tags=["changes"])

ChangeId = Annotated[int, pydantic.Field(ge=1, le=paging.MAX_INTEGER)]


class ChangeQuery(paging.LogPageQuery):
    """The filters of the audit log. A change must match all of them."""

    actor: Annotated[names.Text, pydantic.Field(description="Only changes by this user.")] = ""
    actor_kind: Annotated[
        names.Text,
        pydantic.Field(
            description="Only changes by actors of this kind: " + ", ".join(facts.ACTOR_KINDS) + "."
        ),
    ] = ""
    agent: Annotated[names.Text, pydantic.Field(description="Only changes to this agent and its access.")] = (
        ""
    )
    kind: Annotated[
        names.Text, pydantic.Field(description="Only changes to objects of this kind, such as toolkit.")
    ] = ""
    name: Annotated[names.Text, pydantic.Field(description="Only changes to objects with this name.")] = ""
    key: Annotated[
        names.Text,
        pydantic.Field(description="Only changes to the switch or override of this toolkit or tool."),
    ] = ""
    action: Annotated[
        names.Text, pydantic.Field(description="Only changes with this action, such as switch.set.")
    ] = ""
    via: Annotated[
        names.Text, pydantic.Field(description="Only changes made through this interface, such as screen.")
    ] = ""
    batch: Annotated[uuid.UUID | None, pydantic.Field(description="Only changes in this batch.")] = None
    since: Annotated[
        names.Timestamp | None, pydantic.Field(description="Only changes at or after this time.")
    ] = None
    until: Annotated[names.Timestamp | None, pydantic.Field(description="Only changes before this time.")] = (
        None
    )


class UndoneBy(ninja.Schema):
    """The change that undid another change."""

    id: int
    actor: str
    at: dt.datetime


class Unlogged(ninja.Schema):
    """What was written without the audit log."""

    since: Annotated[int, pydantic.Field(description="The revision after which it was written.")]
    catalog: Annotated[bool, pydantic.Field(description="Whether anything but agents was written.")]
    agents: Annotated[
        list[str],
        pydantic.Field(description="The agents that were written. Empty without `catalog`: one was deleted."),
    ]


class RecordedChange(ninja.Schema):
    """A change in the audit log."""

    id: int
    at: dt.datetime
    actor: Annotated[
        str,
        pydantic.Field(description="Who made the change; for an observation, the plugin that was observed."),
    ]
    actor_kind: Annotated[
        str,
        pydantic.Field(
            description="What the actor is: person, token or agent, or for an observation, which cannot be undone,"
            " server, program or clock."
        ),
    ]
    asked_by: Annotated[str, pydantic.Field(description="Who asked for an observation; empty if no one did.")]
    via: Annotated[str, pydantic.Field(description="The interface that the change was made through.")]
    action: str
    kind: Annotated[str, pydantic.Field(description="The kind of the object that was changed.")]
    name: Annotated[str, pydantic.Field(description="The name of the object that was changed.")]
    key: Annotated[str, pydantic.Field(description="For a switch or an override, its toolkit or tool.")]
    before: Any
    after: Any
    reason: str
    batch: Annotated[
        uuid.UUID | None, pydantic.Field(description="The id that changes made in the same step share.")
    ]
    undoes: Annotated[int | None, pydantic.Field(description="The id of the change that this change undid.")]
    undone: Annotated[UndoneBy | None, pydantic.Field(description="The change that undid this change.")]
    revision: Annotated[
        int | None,
        pydantic.Field(
            description="The revision of the configuration with this change; null if it was not recorded yet."
        ),
    ]
    unlogged: Annotated[
        Unlogged | None,
        pydantic.Field(
            description="What was written without the audit log before this change, by SQL for example."
        ),
    ]


class UndoRequest(names.TryBody):
    """What to undo."""

    whole: Annotated[
        names.Boolean, pydantic.Field(description="Also undo all other changes in the same batch.")
    ] = False
    reason: names.Reason = ""


@router.get("/changes", auth=auth.viewing("audit_entry"), response=paging.list_of(RecordedChange))
def list_changes(request: HttpRequest, query: ninja.Query[ChangeQuery]) -> Any:
    """List changes, newest first."""
    log = queries.changes(
        **query.model_dump(exclude={"limit", "older_than"}), older_than=query.older_than, size=query.limit
    )
    last = log.entries[-1].id if log.has_older else None
    return paging.log_page(request, query, _serialize(request, log.entries), log.total, last)


@router.get("/changes/{change}", auth=auth.viewing("audit_entry"), response=RecordedChange)
def read_change(request: HttpRequest, change: ChangeId) -> Any:
    """Retrieve a change."""
    return _serialize(request, [_get_change(change)])[0]


@router.post(
    "/changes/{change}/undo",
    auth=auth.writing(),
    response={200: change_results.ChangeResult, **problems.documented(409)},
)
def undo_change(request: HttpRequest, change: ChangeId, body: UndoRequest) -> Any:
    """Undo a change. This is itself a change, and can be undone too.

    Requires the permission to make the reverse change. Returns 409 `stale` if the same value has changed since. What
    was observed cannot be undone: a batch is undone without it, and `left_out` names it.
    """
    undone = [_get_change(change)] if not body.whole else undo.batch_of(change)
    auth.require_undo_permissions(request, undone)
    undo_function = undo.undo_batch if body.whole else undo.undo
    return change_results.make(
        request,
        auth.write(request, reason=body.reason),
        lambda write: undo_function(write, change),
        body,
    )[1]


def _get_change(number: int) -> queries.Entry:
    entry = queries.change(number)
    if entry is None:
        raise errors.NotFound("change", str(number))
    return entry


def _serialize(request: HttpRequest, entries: Sequence[queries.Entry]) -> list[dict[str, Any]]:
    """Return changes as JSON objects, without the values of objects that the sender may not view."""
    readable = auth.readable_kinds(request, {entry.subject_kind for entry in entries})
    return [audit_serializer.serialize(entry, is_open=entry.subject_kind in readable) for entry in entries]
