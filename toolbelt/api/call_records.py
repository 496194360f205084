"""The log of agents' tool calls."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, get_type_hints

import ninja
import pydantic
from django.http import HttpRequest

from toolbelt.api import auth, names, paging
from toolbelt.control.reports import queries

router = ninja.Router(tags=["calls"])


class CallQuery(paging.LogPageQuery):
    """The filters of the call log. A call must match all of them."""

    agent: Annotated[names.Text, pydantic.Field(description="Only calls by this agent.")] = ""
    session: Annotated[names.Text, pydantic.Field(description="Only calls in this session.")] = ""
    tool: Annotated[names.Text, pydantic.Field(description="Only calls of this tool.")] = ""
    plugin: Annotated[names.Text, pydantic.Field(description="Only calls of this plugin's tools.")] = ""
    outcome: Annotated[
        names.Text, pydantic.Field(description="Only calls with this outcome: ok, or an error code.")
    ] = ""
    since: Annotated[
        names.Timestamp | None, pydantic.Field(description="Only calls at or after this time.")
    ] = None
    until: Annotated[names.Timestamp | None, pydantic.Field(description="Only calls before this time.")] = (
        None
    )


# What the names of the fields do not say.
_DESCRIPTIONS = {
    "outcome": "ok, or an error code; `admitted` while the agent's own program runs the call, and `unreported` if it"
    " did not report the outcome in time.",
    "reason": "The reason code of the tool's state, whatever the agent reads; empty if nothing was decided, and in"
    " older records also if the tool was active.",
    "revision": "The revision of the configuration that decided on the call.",
    "arguments": "Null unless the installation records arguments. Secrets are removed.",
    "subagent": "The kind of subagent that called; empty if none did. Null in older records.",
    "person": "The person for whom a client called that signed in; empty for a token. Null in older records.",
    "dispatched": "Whether the call came through `call_tool`. Null in older records.",
    "rule": "The gate rule that decided about the call (it denied it, asked about it, or waived that); empty if none"
    " did. Null in older records.",
    "would": "The observed gate rules that would have decided, separated by spaces. Null in older records.",
    "trial": "The number of the roll-out, if the session was one of those that have its draft.",
    "detail": "Of `load_tools` and `unload_tools`: what it named, and the status that answered.",
    "chosen_fields": "The arguments in the tool's `recorded_fields`, by their paths.",
}
CallRecord: Any = pydantic.create_model(  # type: ignore[call-overload]
    "CallRecord",
    __base__=ninja.Schema,
    __doc__="A recorded call.",
    **{
        name: (kind, pydantic.Field(description=_DESCRIPTIONS.get(name)))
        for name, kind in get_type_hints(queries.Call).items()
    },
)


@router.get("/calls", auth=auth.viewing("call_record"), response=paging.list_of(CallRecord))
def list_calls(request: HttpRequest, query: ninja.Query[CallQuery]) -> Any:
    """List recorded calls, newest first."""
    log = queries.call_records(
        **query.model_dump(exclude={"limit", "older_than"}), older_than=query.older_than, size=query.limit
    )
    last = log.calls[-1].id if log.has_older else None
    items = [dataclasses.asdict(call) for call in log.calls]
    return paging.log_page(request, query, items, log.total, last)
