"""What does an upstream server offer, what of it is there to look at, and is it approved or kept off?"""

from __future__ import annotations

import functools
from typing import Annotated, Any, Literal

import ninja
import pydantic
from django.http import HttpRequest

from toolbelt.api import auth, names, problems, schemas
from toolbelt.control import providers, reviews, rights, upstreams
from toolbelt.core import errors, schema
from toolbelt.plugins.upstream import limits
from toolbelt.runtime import upstreams as servers

router = ninja.Router(tags=["plugins: upstream servers"])

_DECIDED = {**problems.answers(409)}
# What is carried over to a new name changes whatever named the old one.
_CARRIED = tuple(rights.to("change", kind) for kind in ("agent", "toolkit", "loadout", "sub_app"))


class Refreshed(ninja.Schema):
    """What became of what the server answered: keys of tools. ``error`` says why it could not be asked; else empty."""

    created: list[str]
    changed: list[str]
    held: Annotated[list[str], pydantic.Field(description="Changed, and unavailable until approved.")]
    unseen: Annotated[list[str], pydantic.Field(description="New, and off until somebody has seen them.")]
    retired: list[str]
    problems: list[schemas.Wrong]
    error: str


class ToolDifference(ninja.Schema):
    """One field that differs, as the lines of a unified difference."""

    field: str
    lines: list[str]


class ReviewedTool(ninja.Schema):
    """One tool to look at; ``shown`` is the hash to decide it with.

    ``differences`` are against the version that was approved, or against the tool that was called ``previous``.
    ``flags`` name what deserves a second look, ``users`` the agents that have it now.
    """

    tool: str
    kind: Literal["new", "changed", "renamed", "gone"]
    previous: str
    shown: str
    title: str
    description: str
    input_schema: dict[str, Any]
    differences: list[ToolDifference]
    flags: list[str]
    users: list[str]


class Review(ninja.Schema):
    """All that there is to look at in one server; ``same`` counts the tools that are as they were approved."""

    plugin: str
    changes: list[ReviewedTool]
    same: int


class Deciding(schemas.Body):
    """Which versions are decided: by tool, the hash that its change was shown with."""

    tools: Annotated[
        dict[names.Name, Annotated[str, pydantic.Field(pattern=r"^sha256:[0-9a-f]{64}$")]],
        pydantic.Field(
            min_length=1,
            max_length=limits.Limits().tools,
            # Or a key that is no name would be sound by the document: it says patterns of keys as JSON Schema does.
            json_schema_extra={"additionalProperties": False},
        ),
    ]
    reason: names.Reason = ""


class Approving(Deciding):
    """Which versions are approved, and whether a renamed tool gets what its previous name had."""

    carry_over: names.Boolean = False
    confirm: names.Confirm = False


class Approved(ninja.Schema):
    """What was approved: the tools; what was carried over, as ``[old name, new name]``; what of that could not be."""

    tools: list[str]
    carried: list[tuple[str, str]]
    problems: list[schemas.Wrong]


class KeptOff(ninja.Schema):
    """Which tools are blocked for everyone now."""

    tools: list[str]


@router.post(
    "/plugins/{name}/refresh",
    auth=auth.writing(rights.to("change", "plugin")),
    response={200: Refreshed, **problems.answers(409)},
)
def refresh_plugin(request: HttpRequest, name: names.Name) -> Any:
    """Ask an upstream server for its tools now, and wait for its answer, within the time limit of its connection.

    409 `refused`: it was being ended meanwhile; ask again.
    """
    found = servers.refresh([name], functools.partial(upstreams.record, auth.actor(request)))
    if name not in found:
        raise errors.Refused(f"{name} was not asked: this process is ending. Ask again.")
    done = found[name]
    return {
        "created": done.created,
        "changed": done.changed,
        "held": done.held,
        "unseen": done.unseen,
        "retired": done.retired,
        "problems": _wrong(done.problems),
        "error": done.error,
    }


@router.get("/plugins/{name}/review", auth=auth.looking("plugin"), response=Review)
def review_plugin(request: HttpRequest, name: names.Name) -> Any:
    """Show what there is to look at in an upstream server: new, changed, renamed and gone, with the differences."""
    found = reviews.review(name)
    return {
        "plugin": found.plugin.name,
        "same": found.same,
        "changes": [
            {
                "tool": change.key,
                "kind": change.kind,
                "previous": change.previous,
                "shown": change.shown,
                "title": change.tool.title,
                "description": change.tool.description,
                "input_schema": schema.mapping(change.tool.input_schema, schema.EMPTY),
                "differences": [{"field": one.field, "lines": one.lines} for one in change.differences],
                "flags": change.flags,
                "users": change.users,
            }
            for change in found.changes
        ],
    }


@router.post(
    "/plugins/{name}/approve",
    auth=auth.writing(rights.to("change", "tool")),
    response={200: Approved, **_DECIDED},
)
def approve_tools(request: HttpRequest, name: names.Name, body: Approving) -> Any:
    """Approve versions as they were shown; they count from the next question on.

    409 `stale`: one of them is another by now, and nothing was approved. 409 `confirmation-required`: the text of one
    deserves a second look, such as one that gives orders to models.
    """
    if body.carry_over:
        auth.demand(request, *_CARRIED)
    if not body.confirm and (doubts := providers.doubts(name, body.tools)):
        said = [f"{tool}: {flag}" for tool, flag in doubts]
        raise errors.ConfirmationRequired(said, {"flags": said})
    done = providers.approve(
        auth.actor(request), name, body.tools, carry_over=body.carry_over, reason=body.reason
    )
    return {"tools": done.keys, "carried": done.carried, "problems": _wrong(done.problems)}


@router.post(
    "/plugins/{name}/refuse",
    auth=auth.writing(rights.to("change", "tool")),
    response={200: KeptOff, **_DECIDED},
)
def refuse_tools(request: HttpRequest, name: names.Name, body: Deciding) -> Any:
    """Keep versions as they were shown off for good: they are blocked for everyone. 409 `stale` as for approving."""
    return {"tools": providers.keep_off(auth.actor(request), name, body.tools, reason=body.reason)}


def _wrong(found: tuple[errors.Problem, ...]) -> list[dict[str, str]]:
    return [{"path": problem.path, "message": problem.message} for problem in found]
