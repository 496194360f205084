"""How is one switch flipped, or one tool overridden?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

import ninja
import pydantic
from django.http import HttpRequest

from toolbelt.api import auth, changed, names, problems, schemas
from toolbelt.control import switches, writing
from toolbelt.core import grants

router = ninja.Router(tags=["access"])

_SWITCH = "/agents/{agent}/switches/{toolkit}"
_OVERRIDE = "/agents/{agent}/overrides/{tool}"
_MAY_FLIP = auth.flipping
_CHANGED = {200: changed.Changed, **problems.answers(409)}

_Was = Annotated[
    names.Boolean | None,
    pydantic.Field(
        description="What you saw (null: unset); if it is not so now, nothing is changed (`stale`)."
    ),
]


def _moment(text: str | None) -> str | None:
    if text is not None and grants.moment(text) is None:
        raise ValueError("not a moment with its zone, such as 2026-11-22T14:05:00Z")
    return text


_Ends = Annotated[
    str | None,
    pydantic.AfterValidator(_moment),
    pydantic.Field(
        description="When it ends, with its zone: then it is again what it was before. Not sent: it is for good.",
        json_schema_extra={"format": "date-time"},
    ),
]

# An address has no null.
_SEEN = {"true": True, "false": False, "unset": None, None: writing.ANY}


class Flip(schemas.Body):
    """What is wanted, and never "the other way"."""

    on: names.Boolean
    ends: _Ends = None
    was: _Was = None
    reason: names.Reason = ""
    confirm: names.Confirm = False


class Clear(names.FarReaching):
    """What goes with clearing."""

    was: Annotated[
        Literal["true", "false", "unset"] | None,
        pydantic.Field(description="What you saw; if it is not so now, nothing is changed (`stale`)."),
    ] = None


@router.put(_SWITCH, auth=_MAY_FLIP, response=_CHANGED)
def flip_switch(request: HttpRequest, agent: names.Name, toolkit: names.Name, body: Flip) -> Any:
    """Set a toolkit's switch on or off, for good or until it ends. Off denies its tools, whatever else grants them."""
    return _flip(request, switches.flip, agent, toolkit, body)


@router.delete(_SWITCH, auth=_MAY_FLIP, response=_CHANGED)
def clear_switch(
    request: HttpRequest, agent: names.Name, toolkit: names.Name, asked: ninja.Query[Clear]
) -> Any:
    """Clear a toolkit's switch: its tools follow the defaults again."""
    return _clear(request, switches.flip, agent, toolkit, asked)


@router.put(_OVERRIDE, auth=_MAY_FLIP, response=_CHANGED)
def override_tool(request: HttpRequest, agent: names.Name, tool: names.Name, body: Flip) -> Any:
    """Override one tool, for good or until it ends: on, unless something denies it, or off."""
    return _flip(request, switches.override, agent, tool, body)


@router.delete(_OVERRIDE, auth=_MAY_FLIP, response=_CHANGED)
def clear_override(
    request: HttpRequest, agent: names.Name, tool: names.Name, asked: ninja.Query[Clear]
) -> Any:
    """Clear the override of a tool: it follows its toolkits and the defaults again."""
    return _clear(request, switches.override, agent, tool, asked)


def _flip(
    request: HttpRequest, write: Callable[..., writing.Change], agent: str, key: str, body: Flip
) -> dict[str, Any]:
    # Sent as null, `was` says that it was unset; not sent, it says nothing.
    was = body.was if "was" in body.model_fields_set else writing.ANY
    done = write(
        auth.actor(request),
        agent,
        key,
        body.on,
        ends=grants.moment(body.ends),
        was=was,
        reason=body.reason,
        confirm=body.confirm,
    )
    return changed.told(done)


def _clear(
    request: HttpRequest, write: Callable[..., writing.Change], agent: str, key: str, asked: Clear
) -> dict[str, Any]:
    was = _SEEN[asked.was]
    done = write(auth.actor(request), agent, key, None, was=was, reason=asked.reason, confirm=asked.confirm)
    return changed.told(done)
