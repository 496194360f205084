"""Calls that wait for approval: their state for agents, and deciding about them for operators."""

from __future__ import annotations

import dataclasses
import datetime as dt
import re
from typing import Annotated, Any

import ninja
import pydantic
from django.http import HttpRequest
from ninja import params

from toolbelt.api import auth, names, problems, schemas
from toolbelt.control.agents import call_approvals
from toolbelt.core import call_approvals as values
from toolbelt.core import errors, gate_rules
from toolbelt.runtime.calls import approval_waits

router = ninja.Router(tags=["agents: calls that wait for approval"])

# As long as most clients and proxies wait.
MAX_WAIT = 45
# The days of people's figures.
DAYS = 30
_PREFER_WAIT = re.compile(r"(?:^|[,;])\s*wait\s*=\s*\"?(\d{1,6})\"?\s*(?=[,;]|$)", re.IGNORECASE)
_PATH = "/agents/{agent}/approvals/{approval}"
State = values.State


class WaitQuery(schemas.Query):
    """How long to wait."""

    wait: Annotated[
        int,
        pydantic.Field(
            ge=0,
            le=MAX_WAIT,
            description=f"How long to wait for a decision, in seconds: 0 to {MAX_WAIT}.",
        ),
    ] = 0


class ListQuery(schemas.Query):
    """Which approvals to list."""

    state: Annotated[State | None, pydantic.Field(description="Only those in this state.")] = "pending"
    agent: Annotated[names.Text, pydantic.Field(description="Only those of this agent.")] = ""
    tool: Annotated[names.Text, pydantic.Field(description="Only those of this tool.")] = ""
    always: Annotated[
        bool, pydantic.Field(description="Instead of a state: only those that hold for further calls.")
    ] = False
    limit: Annotated[
        int, pydantic.Field(ge=1, le=call_approvals.MAX_LISTED, description="The maximum number.")
    ] = 100


class ApprovalRef(ninja.Schema):
    """The approval that a call waits for."""

    id: str
    expires: Annotated[str, pydantic.Field(description="Until when people can decide.")]
    retry_after: Annotated[
        int, pydantic.Field(description="After how many seconds to call again, with the same arguments.")
    ]


class CallApproval(ninja.Schema):
    """What became of a request to approve a call."""

    id: str
    agent: str
    tool: str
    state: Annotated[
        State,
        pydantic.Field(
            description="`approved` runs once, when the call is made again; `spent` may have run; `done` has ended,"
            " with this `outcome`."
        ),
    ]
    asked: dt.datetime
    expires: Annotated[
        dt.datetime, pydantic.Field(description="Until when it can be decided, or the decision holds.")
    ]
    note: Annotated[str, pydantic.Field(description="What the model reads if it was rejected.")]
    outcome: Annotated[str, pydantic.Field(description="How the call ended; empty if it has not.")]


class Wanted(ninja.Schema):
    """Approvals that a call needs."""

    groups: Annotated[
        list[str],
        pydantic.Field(description="Of members of any of these groups. Empty: of all who may decide."),
    ]
    approvals: Annotated[int, pydantic.Field(description="Of how many people.")]


class Approval(CallApproval):
    """A request to approve a call, for those who decide."""

    session: str
    subagent: str
    asked_by: Annotated[
        str,
        pydantic.Field(description="The user whose token or client made the call. Empty: an agent's token."),
    ]
    rules: Annotated[list[str], pydantic.Field(description="The gate rules that ask.")]
    needed: Annotated[int, pydantic.Field(description="How many people have to approve it.")]
    wanted: Annotated[
        list[Wanted], pydantic.Field(description="The approvals that it needs, by the rules that ask.")
    ]
    approved_by: list[str]
    rejected_by: str
    edited_by: str
    always: Annotated[
        dt.datetime | None,
        pydantic.Field(description="Until when the same call, in any session, is approved automatically."),
    ]
    always_of: Annotated[
        str, pydantic.Field(description="The approval for a while by which this one was approved.")
    ]
    shown: Annotated[
        str, pydantic.Field(description="The digest of what is shown, to approve or edit exactly this.")
    ]
    arguments: Annotated[
        dict[str, Any],
        pydantic.Field(description="The arguments that the tool would get, without secrets."),
    ]


class Argument(ninja.Schema):
    """An argument of the call."""

    name: str
    value: Any
    called: Annotated[Any, pydantic.Field(description="Its value in the call, before it was edited.")]
    before: Annotated[Any, pydantic.Field(description="Its value in the last call that was decided about.")]
    is_new: Annotated[bool, pydantic.Field(description="Whether the last one did not have it.")]
    is_changed: bool
    is_edited: bool
    is_hidden: Annotated[
        bool, pydantic.Field(description="Whether a part of it is not shown. It cannot be edited then.")
    ]


class Asking(ninja.Schema):
    """A gate rule that asks, as it is now."""

    key: str
    does: Annotated[str, pydantic.Field(description="What it does: `asks when amount > 500`.")]
    reason: str


class ApprovalDetails(ninja.Schema):
    """A request to approve a call, with what changed since the last one."""

    approval: Approval
    arguments: list[Argument]
    removed: Annotated[
        list[str],
        pydantic.Field(
            description="Arguments that the last call had, of the same agent and tool, and this has not."
        ),
    ]
    rules: list[Asking]


class Approvals(ninja.Schema):
    """Approvals, the newest first."""

    items: list[Approval]


class Decider(ninja.Schema):
    """How a person decided about calls in the last 30 days."""

    name: str
    decided: Annotated[int, pydantic.Field(description="About how many calls.")]
    approved: Annotated[int, pydantic.Field(description="How many of these they approved.")]
    days: Annotated[int, pydantic.Field(description="On how many days they decided.")]
    median_seconds: Annotated[
        float, pydantic.Field(description="How long half of the calls had waited at most, in seconds.")
    ]


class Deciders(ninja.Schema):
    """The people who decided, the one who decided most first."""

    items: list[Decider]


class Approve(schemas.Body):
    """A yes to a call as it was shown."""

    shown: Annotated[
        names.Name, pydantic.Field(description="The `shown` that you saw. If it differs, 409 `stale`.")
    ]
    reason: names.Reason = ""


class ApproveAlways(Approve):
    """A yes to a call as it was shown, once or for a while."""

    always_days: Annotated[
        int,
        pydantic.Field(
            ge=0,
            le=values.MAX_ALWAYS.days,
            description="For how many days the same call, in any session, is approved automatically. 0: it runs once.",
        ),
    ] = 0


class Revoke(schemas.Body):
    """The end of an approval for a while."""

    reason: names.Reason = ""


class Reject(schemas.Body):
    """A no, with a reason for the model."""

    note: Annotated[str, pydantic.Field(max_length=values.MAX_NOTE, description="What the model reads.")] = ""
    reason: names.Reason = ""


class Edit(Approve):
    """Arguments that replace those of the call."""

    arguments: Annotated[
        dict[str, Any],
        pydantic.Field(
            description="Each replaces the argument of its name; the others stay. None: those of the call again."
        ),
    ]


@router.get("/approvals", auth=auth.reading(), response=Approvals)
def list_approvals(request: HttpRequest, query: params.Query[ListQuery]) -> Any:
    """List calls that wait for approval, or that did: of the agents about whose calls you may decide."""
    agents = auth.decidable_agents(request)
    if query.agent:
        agents = frozenset({query.agent}) if agents is None or query.agent in agents else frozenset()
    if query.always:
        kept = [each for each in call_approvals.kept(agents) if query.tool in ("", each.tool)]
        return {"items": list(map(_document, kept[: query.limit]))}
    found = call_approvals.listed(
        state=query.state or "", agents=agents, tool=query.tool, maximum=query.limit
    )
    return {"items": list(map(_document, found))}


@router.get("/approvals/deciders", auth=auth.reading(), response=Deciders)
def list_deciders(request: HttpRequest) -> Any:
    """List who decided about calls in the last 30 days, how often and how fast: of the agents about whose calls you may
    decide.
    """
    found = call_approvals.deciders(DAYS, auth.decidable_agents(request))
    return {
        "items": [
            {
                "name": each.name,
                "decided": each.decided,
                "approved": each.approved,
                "days": each.days,
                "median_seconds": each.median_wait.total_seconds(),
            }
            for each in found
        ]
    }


@router.get(_PATH, auth=auth.agent, response=CallApproval)
def get_approval(
    request: HttpRequest, agent: str, approval: names.Name, query: params.Query[WaitQuery]
) -> Any:
    """Retrieve the state of a call's approval. With `wait`, the answer comes once it is decided, or after this time.

    When it is approved, make the call again, with the same arguments.
    """
    found = _find(agent, approval)
    if query.wait and call_approvals.state_of(found) == "pending":
        approval_waits.until_decided_blocking(found.key, query.wait)
        found = _find(agent, approval)
    return _document(found)


@router.get(_PATH + "/details", auth=auth.deciding, response=ApprovalDetails)
def read_approval(request: HttpRequest, agent: str, approval: names.Name) -> Any:
    """Retrieve what you decide about: the arguments without secrets, and what changed since the last such call."""
    detail = call_approvals.detail(_find(agent, approval).key)
    return {
        "approval": _document(detail.approval),
        "arguments": [dataclasses.asdict(argument) for argument in detail.arguments],
        "removed": detail.removed,
        "rules": [
            {"key": rule.key, "does": gate_rules.in_words(rule), "reason": rule.reason}
            for rule in detail.rules
        ],
    }


@router.post(
    _PATH + "/approve", auth=auth.deciding_writing, response={200: Approval, **problems.documented(409)}
)
def approve_call(request: HttpRequest, agent: str, approval: names.Name, body: ApproveAlways) -> Any:
    """Approve a call, as you saw it. It runs once, when it is made again.

    With `always_days`, the same call is approved automatically for as long: of this agent, in any session, until its
    tool, its options or a rule that asks changes. You may not approve what was called with a token or a client of
    yours.
    """
    key = _find(agent, approval).key
    always = dt.timedelta(days=body.always_days) if body.always_days else None
    write = auth.write(request, reason=body.reason)
    return _document(call_approvals.approve(write, key, body.shown, always))


@router.post(
    _PATH + "/revoke", auth=auth.deciding_writing, response={200: Approval, **problems.documented(409)}
)
def revoke_approval(request: HttpRequest, agent: str, approval: names.Name, body: Revoke) -> Any:
    """Revoke an approval that holds for a while: the same call is asked about again. What runs already is not ended."""
    key = _find(agent, approval).key
    return _document(call_approvals.revoke(auth.write(request, reason=body.reason), key))


@router.post(
    _PATH + "/reject", auth=auth.deciding_writing, response={200: Approval, **problems.documented(409)}
)
def reject_call(request: HttpRequest, agent: str, approval: names.Name, body: Reject) -> Any:
    """Reject a call. Until the rejection has passed, the same call gets the same answer."""
    key = _find(agent, approval).key
    return _document(call_approvals.reject(auth.write(request, reason=body.reason), key, body.note))


@router.post(
    _PATH + "/edit", auth=auth.deciding_writing, response={200: Approval, **problems.documented(409)}
)
def edit_call(request: HttpRequest, agent: str, approval: names.Name, body: Edit) -> Any:
    """Replace arguments of a call that you saw. It is approved afterwards, by as many people as it needs."""
    key = _find(agent, approval).key
    write = auth.write(request, reason=body.reason)
    return _document(call_approvals.edit(write, key, body.arguments, body.shown))


def preferred_wait(request: HttpRequest) -> float:
    """Return how long a request prefers to wait (RFC 7240, ``Prefer: wait=20``), in seconds; 0 if it does not."""
    match = _PREFER_WAIT.search(request.headers.get("Prefer", ""))
    return float(min(int(match[1]), MAX_WAIT)) if match else 0.0


def _find(agent: str, key: str) -> call_approvals.Approval:
    found = call_approvals.find(key)
    if found.agent != agent:
        raise errors.NotFound("approval", key)
    return found


def _document(approval: call_approvals.Approval) -> dict[str, Any]:
    fields = {field.name: getattr(approval, field.name) for field in dataclasses.fields(approval)}
    return {
        **fields,
        "id": approval.key,
        "state": call_approvals.state_of(approval),
        "shown": approval.shown,
        "arguments": approval.arguments,
    }
