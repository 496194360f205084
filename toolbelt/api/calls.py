"""Which calls did agents make, and how did each end?"""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import Annotated, Any

import ninja
import pydantic
from django.http import HttpRequest

from toolbelt.api import auth, names, paging
from toolbelt.control import queries

router = ninja.Router(tags=["calls"])


class Asked(paging.AskedOfLog):
    """Which calls. All of what is asked for holds."""

    agent: names.Text = ""
    session: names.Text = ""
    tool: names.Text = ""
    plugin: names.Text = ""
    outcome: Annotated[names.Text, pydantic.Field(description="ok, or the code of a refusal.")] = ""
    since: Annotated[names.Moment | None, pydantic.Field(description="Not before this.")] = None
    until: Annotated[names.Moment | None, pydantic.Field(description="Before this.")] = None


class CallRecord(ninja.Schema):
    """One call; ``arguments`` is null unless the installation keeps them, and never holds a secret."""

    id: int
    at: dt.datetime
    agent: str
    session: str
    request_id: str
    tool: str
    plugin: str
    outcome: str
    error: str
    duration_ms: int
    arguments_bytes: int
    result_bytes: int
    arguments: Any


@router.get("/calls", auth=auth.looking("call_record"), response=paging.Page[CallRecord])
def list_calls(request: HttpRequest, asked: ninja.Query[Asked]) -> Any:
    """List the calls that are kept, the newest first."""
    found = queries.call_records(
        **asked.model_dump(exclude={"limit", "older_than"}), older_than=asked.older_than, size=asked.limit
    )
    last = found.calls[-1].id if found.has_older else None
    items = [dataclasses.asdict(call) for call in found.calls]
    return paging.older(request, asked, items, found.total, last)
