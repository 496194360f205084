"""The instructions of upstream servers: reading them, marking them as seen, and using them as policy."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import ninja
import pydantic
from django.http import HttpRequest

from toolbelt.api import auth, change_results, names, problems
from toolbelt.control import writing
from toolbelt.control.people import rights
from toolbelt.control.servers import instructions

router = ninja.Router(tags=["plugins: upstream servers"])

_USE = rights.permission("change", "toolkit")


class Instructions(ninja.Schema):
    """What a server tells models about its tools. It reaches no model, unless an operator uses it as policy."""

    plugin: str
    state: Annotated[
        Literal["none", "new", "changed", "seen"],
        pydantic.Field(
            description="Whether an operator has seen them. changed: they differ from those last seen."
        ),
    ]
    text: Annotated[str, pydantic.Field(description="The text, without invisible characters.")]
    shown: Annotated[str, pydantic.Field(description="The hash of this text, to decide about it by.")]
    lines: Annotated[
        list[str], pydantic.Field(description="The lines of a unified diff from the text that was last seen.")
    ]
    flags: Annotated[
        list[str], pydantic.Field(description="Findings to check, such as orders that overrule instructions.")
    ]


class InstructionsDecision(names.TryBody):
    """What to do with the instructions that you read."""

    shown: Annotated[
        str,
        pydantic.Field(
            pattern=r"^(sha256:[0-9a-f]{64})?$", description="The hash of the text that you read."
        ),
    ]
    toolkit: Annotated[
        names.Name | None,
        pydantic.Field(description="Append the text to this toolkit's policy. Without it, it is only seen."),
    ] = None
    reason: names.Reason = ""
    confirm: names.Confirm = False


@router.get("/plugins/{name}/instructions", auth=auth.viewing("plugin"), response=Instructions)
def read_instructions(request: HttpRequest, name: names.Name) -> Any:
    """Retrieve the instructions that an upstream server states, as it listed them last."""
    found = instructions.find(name)
    return {
        "plugin": found.plugin.name,
        "state": found.state,
        "text": found.text,
        "shown": found.shown,
        "lines": found.lines,
        "flags": found.flags,
    }


@router.post(
    "/plugins/{name}/instructions",
    auth=auth.writing(rights.permission("change", "plugin")),
    response={200: change_results.ChangeResult, **problems.documented(409)},
)
def decide_instructions(request: HttpRequest, name: names.Name, body: InstructionsDecision) -> Any:
    """Mark the instructions of an upstream server as seen, and with `toolkit`, use them as policy.

    Returns 409 `stale` if the server states others now, and 409 `confirmation-required` if the text has flags and would
    become policy.
    """
    if body.toolkit is not None:
        auth.require_permissions(request, _USE)

    def act(write: writing.Write) -> writing.Change:
        if body.toolkit is None:
            return instructions.see(write, name, body.shown)
        return instructions.use(write, name, body.shown, body.toolkit)

    write = auth.write(request, reason=body.reason, confirm=body.confirm)
    return change_results.make(request, write, act, body)[1]
