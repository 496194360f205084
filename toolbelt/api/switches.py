"""Switches and overrides: flipping a toolkit's switch and overriding a tool for one agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

import ninja
import pydantic
from django.http import HttpRequest

from toolbelt.api import auth, change_results, names, problems
from toolbelt.control import writing
from toolbelt.control.access import switches
from toolbelt.core import grants

router = ninja.Router(tags=["access"])

_SWITCH = "/agents/{agent}/switches/{toolkit}"
_OVERRIDE = "/agents/{agent}/overrides/{tool}"
_AUTH = auth.switch_writing
_CHANGED = {200: change_results.ChangeResult, **problems.documented(409)}

_Was = Annotated[
    names.Boolean | None,
    pydantic.Field(
        description="The current value that you expect (null: default). If it differs, nothing is changed"
        " (409 `stale`)."
    ),
]


def _check_time(text: str | None) -> str | None:
    if text is not None and grants.parse_time(text) is None:
        raise ValueError("not a time with its time zone, such as 2026-11-22T14:05:00Z")
    return text


_Ends = Annotated[
    str | None,
    pydantic.AfterValidator(_check_time),
    pydantic.Field(
        description="When it ends, with a time zone. It then returns to its previous value."
        " Without it, the change is permanent.",
        json_schema_extra={"format": "date-time"},
    ),
]

# A query cannot contain null.
_EXPECTED = {"true": True, "false": False, "unset": None, None: writing.ANY}


class SwitchUpdate(names.TryBody):
    """The new value of a switch or an override."""

    on: Annotated[names.Boolean, pydantic.Field(description="True for on, false for off.")]
    ends: _Ends = None
    was: _Was = None
    reason: names.Reason = ""
    confirm: names.Confirm = False


class ClearQuery(names.DryRunQuery):
    """The parameters of resetting a switch or an override."""

    was: Annotated[
        Literal["true", "false", "unset"] | None,
        pydantic.Field(
            description="The current value that you expect. If it differs, nothing is changed (409 `stale`)."
        ),
    ] = None


@router.put(_SWITCH, auth=_AUTH, response=_CHANGED)
def flip_switch(request: HttpRequest, agent: names.Name, toolkit: names.Name, body: SwitchUpdate) -> Any:
    """Switch a toolkit on or off, permanently or until a given time.

    While a toolkit is off, its tools are denied, even if another rule grants them.
    """
    return _flip(request, switches.flip, agent, toolkit, body)


@router.delete(_SWITCH, auth=_AUTH, response=_CHANGED)
def clear_switch(
    request: HttpRequest, agent: names.Name, toolkit: names.Name, query: ninja.Query[ClearQuery]
) -> Any:
    """Reset a toolkit's switch to the default."""
    return _clear(request, switches.flip, agent, toolkit, query)


@router.put(_OVERRIDE, auth=_AUTH, response=_CHANGED)
def override_tool(request: HttpRequest, agent: names.Name, tool: names.Name, body: SwitchUpdate) -> Any:
    """Switch one tool on or off, permanently or until a given time. On has no effect if a rule denies the tool."""
    return _flip(request, switches.override, agent, tool, body)


@router.delete(_OVERRIDE, auth=_AUTH, response=_CHANGED)
def clear_override(
    request: HttpRequest, agent: names.Name, tool: names.Name, query: ninja.Query[ClearQuery]
) -> Any:
    """Reset a tool's override: the tool follows its toolkits and the defaults again."""
    return _clear(request, switches.override, agent, tool, query)


def _flip(
    request: HttpRequest, flip: Callable[..., writing.Change], agent: str, key: str, body: SwitchUpdate
) -> dict[str, Any]:
    # If `was` is null, the client expects the default; if it is missing, the client expects nothing.
    was = body.was if "was" in body.model_fields_set else writing.ANY
    write = auth.write(request, reason=body.reason, confirm=body.confirm)

    def act(write: writing.Write) -> writing.Change:
        return flip(write, agent, key, body.on, ends=grants.parse_time(body.ends), was=was)

    return change_results.make(request, write, act, body, agent=agent)[1]


def _clear(
    request: HttpRequest, flip: Callable[..., writing.Change], agent: str, key: str, query: ClearQuery
) -> dict[str, Any]:
    was = _EXPECTED[query.was]
    write = auth.write(request, reason=query.reason, confirm=query.confirm)

    def act(write: writing.Write) -> writing.Change:
        return flip(write, agent, key, None, was=was)

    return change_results.make(request, write, act, query, agent=agent)[1]
