"""Refresh, review, approval and rejection of upstream servers' tools."""

from __future__ import annotations

import dataclasses
import functools
from datetime import datetime
from typing import Annotated, Any, Literal

import ninja
import pydantic
from django.http import HttpRequest

from toolbelt.api import auth, change_results, names, problems, schemas
from toolbelt.control import writing
from toolbelt.control.people import rights
from toolbelt.control.servers import approvals, decisions, inbox, sign_ins, upstream_servers
from toolbelt.core import errors, schema
from toolbelt.plugins.upstream import limits
from toolbelt.runtime.upstream import server_lists
from toolbelt.runtime.upstream import status as upstream_status

router = ninja.Router(tags=["plugins: upstream servers"])

_CONFLICTS = {**problems.documented(409)}
# Carrying settings over to a new name changes every entry that refers to the previous name.
_CARRY_OVER_PERMISSIONS = tuple(
    rights.permission("change", kind) for kind in ("agent", "toolkit", "loadout", "sub_app")
)


class ServerStatus(ninja.Schema):
    """The status of an upstream server. `connection`, `open_connections` and `retry_in` describe the server process
    that answers; each process has its own.
    """

    plugin: str
    state: Annotated[
        Literal["ready", "sign-in-needed", "not-responding", "not-asked", "failed", "off", "blocked"],
        pydantic.Field(description="By the server's last response to any process."),
    ]
    reason: Annotated[
        str, pydantic.Field(description="Why it did not respond or has failed; otherwise empty.")
    ]
    connection: Annotated[
        Literal["idle", "connecting", "open", "waiting", "closed"],
        pydantic.Field(
            description="waiting: the server could not be reached, and is tried again after `retry_in` seconds."
        ),
    ]
    retry_in: float
    open_connections: int
    max_connections: int
    sharing: Annotated[
        Literal["", "shared", "agent", "session"],
        pydantic.Field(
            description="Who shares a connection. Empty if this is only known after the first connection."
        ),
    ]
    idle: Annotated[int, pydantic.Field(description="How long an unused connection is kept, in seconds.")]
    protocol: str
    server: str
    tools: Annotated[int, pydantic.Field(description="The number of tools in its last list.")]
    asked: Annotated[datetime | None, pydantic.Field(description="When its tools were last requested.")]
    answered: Annotated[datetime | None, pydantic.Field(description="When it last responded.")]
    problems: list[schemas.ErrorDetail]


class SignIn(ninja.Schema):
    """The sign-in at an upstream server, without its tokens. A person signs in on its page in the dashboard."""

    signed_in_by: str
    issuer: Annotated[str, pydantic.Field(description="The authorization server.")]
    scopes: Annotated[str, pydantic.Field(description="The scopes that it granted, separated by spaces.")]
    demanded: Annotated[
        str,
        pydantic.Field(
            description="Scopes that calls demanded and that it lacks: signing in again asks for them."
        ),
    ]
    created: Annotated[datetime, pydantic.Field(description="When the person signed in.")]
    needed: Annotated[
        str, pydantic.Field(description="Why someone has to sign in again; empty while it is used.")
    ]


class RefreshResult(ninja.Schema):
    """The result of a refresh: the keys of the tools that were created, changed or retired."""

    created: list[str]
    changed: list[str]
    held: Annotated[
        list[str], pydantic.Field(description="Changed tools that are unavailable until you approve them.")
    ]
    unseen: Annotated[list[str], pydantic.Field(description="New tools that are off until you review them.")]
    retired: Annotated[list[str], pydantic.Field(description="Tools that the server no longer offers.")]
    problems: Annotated[
        list[schemas.ErrorDetail], pydantic.Field(description="Tools that could not be imported, and why.")
    ]
    error: Annotated[
        str, pydantic.Field(description="Why the server could not be reached; empty if it responded.")
    ]


class ToolDifference(ninja.Schema):
    """A field that differs."""

    field: str
    lines: Annotated[list[str], pydantic.Field(description="The lines of a unified diff.")]


class ReviewedTool(ninja.Schema):
    """A tool to review."""

    tool: Annotated[str, pydantic.Field(description="The tool's key.")]
    kind: Annotated[
        Literal["new", "changed", "renamed", "differs", "details", "hints", "gone"],
        pydantic.Field(
            description="What changed. For details, only the output schema, icons or `_meta` await review:"
            " the tool keeps working. For hints, the server states another risk than you approved, and the tool"
            " keeps working. If it differs, the server's processes list different descriptions, and agents keep the"
            " approved one."
        ),
    ]
    previous: Annotated[str, pydantic.Field(description="The previous name of a renamed tool.")]
    shown: Annotated[str, pydantic.Field(description="The hash of this version, to approve or reject it by.")]
    title: str
    description: str
    input_schema: dict[str, Any]
    details: Annotated[
        dict[str, Any],
        pydantic.Field(description="The complete outputSchema, icons and _meta, as the server lists them."),
    ]
    differences: Annotated[
        list[ToolDifference],
        pydantic.Field(
            description="The differences from the approved version, or from the tool named in `previous`."
        ),
    ]
    flags: Annotated[
        list[str],
        pydantic.Field(
            description="Findings to check, such as a description that gives instructions to models, or a limit of"
            " an argument that was removed."
        ),
    ]
    repairs: Annotated[
        list[str],
        pydantic.Field(
            description="What was repaired of its listed schemas without a change of meaning, such as a null that"
            " stood for an absent keyword. Other repairs are among `flags`."
        ),
    ]
    providers: Annotated[
        list[str],
        pydantic.Field(
            description="What providers of models would refuse of the tool, in their formats, and which patterns they"
            " are not sent."
        ),
    ]
    users: Annotated[list[str], pydantic.Field(description="The agents that have the tool now.")]


class Review(ninja.Schema):
    """The tools of an upstream server that await review."""

    plugin: str
    changes: list[ReviewedTool]
    same: Annotated[int, pydantic.Field(description="The number of tools that match their approved version.")]


class ToolDecision(names.TryBody):
    """The versions to decide on."""

    tools: Annotated[
        dict[names.Name, Annotated[str, pydantic.Field(pattern=r"^([0-9]+:)?sha256:[0-9a-f]{64}$")]],
        pydantic.Field(
            min_length=1,
            max_length=limits.Limits().tools,
            description="For each tool, the hash of the version that you reviewed (its `shown`).",
            # Otherwise the document would accept keys that do not match the pattern of names.
            json_schema_extra={"additionalProperties": False},
        ),
    ]
    reason: names.Reason = ""


class ToolApproval(ToolDecision):
    """The versions to approve."""

    carry_over: Annotated[
        names.Boolean,
        pydantic.Field(description="Carry settings over from a renamed tool's previous name."),
    ] = False
    confirm: names.Confirm = False


class ApprovalResult(change_results.Tried):
    """The result of an approval."""

    tools: Annotated[list[str], pydantic.Field(description="The tools that were approved.")]
    carried: Annotated[
        list[tuple[str, str]],
        pydantic.Field(
            description="The renamed tools whose settings were carried over, as `[previous, new]`."
        ),
    ]
    problems: Annotated[
        list[schemas.ErrorDetail], pydantic.Field(description="Settings that could not be carried over.")
    ]


class RejectionResult(change_results.Tried):
    """The result of a rejection."""

    tools: Annotated[list[str], pydantic.Field(description="The tools that are now blocked for everyone.")]


@router.post(
    "/plugins/{name}/refresh",
    auth=auth.writing(rights.permission("change", "plugin")),
    response={200: RefreshResult, **problems.documented(409)},
)
def refresh_plugin(request: HttpRequest, name: names.Name) -> Any:
    """List an upstream server's tools again and record the differences, within the time limit of its connection.

    Returns 409 `refused` if this server process is shutting down: try again.
    """
    results = server_lists.refresh([name], functools.partial(upstream_servers.record, auth.write(request)))
    if name not in results:
        raise errors.Refused(f"{name} was not refreshed: this process is shutting down. Try again.")
    recorded = results[name]
    return {
        "created": recorded.created,
        "changed": recorded.changed,
        "held": recorded.held,
        "unseen": recorded.unseen,
        "retired": recorded.retired,
        "problems": _error_details(recorded.problems),
        "error": recorded.error,
    }


@router.get("/plugins/{name}/status", auth=auth.viewing("plugin"), response=ServerStatus)
def read_plugin_status(request: HttpRequest, name: names.Name) -> Any:
    """Retrieve the status of an upstream server and of its connections, without contacting the server."""
    status = upstream_status.read(name)
    return {
        "plugin": name,
        "state": status.summary,
        "reason": status.error,
        "connection": status.state,
        "retry_in": status.pause,
        "open_connections": status.open_connections,
        "max_connections": status.max_connections,
        "sharing": status.sharing,
        "idle": status.idle,
        "protocol": status.protocol,
        "server": status.server,
        "tools": status.tools,
        "asked": status.asked,
        "answered": status.answered,
        "problems": _error_details(status.problems),
    }


@router.get("/plugins/{name}/sign-in", auth=auth.viewing("plugin"), response=SignIn)
def read_sign_in(request: HttpRequest, name: names.Name) -> Any:
    """Retrieve who is signed in at an upstream server. Returns 404 if no one is."""
    found = sign_ins.find(name)
    if found is None:
        raise errors.NotFound("sign-in at the server", name)
    return dataclasses.asdict(found)


@router.delete(
    "/plugins/{name}/sign-in",
    auth=auth.writing(rights.permission("change", "plugin")),
    response={204: None},
)
def end_sign_in(request: HttpRequest, name: names.Name) -> Any:
    """Forget the sign-in at an upstream server, and tell its authorization server. Returns 404 if there is none."""
    if not sign_ins.end(auth.write(request), name):
        raise errors.NotFound("sign-in at the server", name)
    return ninja.Status(204, None)


@router.get("/plugins/{name}/review", auth=auth.viewing("plugin"), response=Review)
def review_plugin(request: HttpRequest, name: names.Name) -> Any:
    """Retrieve the tools of an upstream server that await review, with their differences."""
    review = approvals.review(name)
    return {
        "plugin": review.plugin.name,
        "same": review.same,
        "changes": [
            {
                "tool": change.key,
                "kind": change.kind,
                "previous": change.previous,
                "shown": change.version_hash,
                "title": change.tool.title,
                "description": change.tool.description,
                "input_schema": schema.mapping(change.tool.input_schema, schema.EMPTY),
                "details": schema.mapping(change.tool.details, {}),
                "differences": [
                    {"field": difference.field, "lines": difference.lines}
                    for difference in change.differences
                ],
                "flags": change.flags,
                "repairs": change.repairs,
                "providers": change.providers,
                "users": change.users,
            }
            for change in review.changes
        ],
    }


@router.post(
    "/plugins/{name}/approve",
    auth=auth.writing(rights.permission("change", "tool")),
    response={200: ApprovalResult, **_CONFLICTS},
)
def approve_tools(request: HttpRequest, name: names.Name, body: ToolApproval) -> Any:
    """Approve tools in the versions that you reviewed. Applies from the next request.

    Returns 409 `stale`, and approves nothing, if a tool has changed since your review. Returns 409
    `confirmation-required` if a tool has flags, such as a description that gives instructions to models, or a limit
    of an argument that was removed.
    """
    if body.carry_over:
        auth.require_permissions(request, *_CARRY_OVER_PERMISSIONS)
    approvals.find(name)

    def act(write: writing.Write) -> decisions.Approved:
        if not write.confirm:
            inbox.check_findings(body.tools)
        return decisions.approve(write, body.tools, plugin=name, carry_over=body.carry_over)

    write = auth.write(request, reason=body.reason, confirm=body.confirm)
    approval, tried = change_results.try_or_make(request, write, act, body)
    return {
        **tried,
        "tools": approval.keys,
        "carried": approval.carried,
        "problems": _error_details(approval.problems),
    }


@router.post(
    "/plugins/{name}/reject",
    auth=auth.writing(rights.permission("change", "tool")),
    response={200: RejectionResult, **_CONFLICTS},
)
def reject_tools(request: HttpRequest, name: names.Name, body: ToolDecision) -> Any:
    """Reject tools in the versions that you reviewed: they are blocked for everyone.

    Returns 409 `stale`, and rejects nothing, if a tool has changed since your review.
    """
    rejected, tried = change_results.try_or_make(
        request,
        auth.write(request, reason=body.reason),
        lambda write: decisions.reject(write, body.tools, plugin=name),
        body,
    )
    return {**tried, "tools": rejected}


def _error_details(found_problems: tuple[errors.Problem, ...]) -> list[dict[str, str]]:
    return [{"path": problem.path, "message": problem.message} for problem in found_problems]
