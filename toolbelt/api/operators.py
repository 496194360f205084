"""Who operates one agent, though they may not flip every agent's switches?"""

from __future__ import annotations

from typing import Annotated, Any

import ninja
import pydantic
from django.http import HttpRequest

from toolbelt.api import auth, changed, names, problems, schemas
from toolbelt.control import rights, roles, writing

router = ninja.Router(tags=["access"])

_PATH = "/agents/{agent}/operators"
_MOST = 1000
_Users = Annotated[list[names.Name], pydantic.Field(max_length=_MOST)]


class Operators(ninja.Schema):
    """The users who operate it, in order."""

    users: list[str]


class OperatorsWanted(schemas.Body):
    """The users who shall operate it, and no others."""

    users: _Users
    was: Annotated[
        _Users | None,
        pydantic.Field(description="Whom you saw; if it is not so now, nothing is changed (`stale`)."),
    ] = None
    reason: names.Reason = ""


@router.get(_PATH, auth=auth.reading(), response=Operators)
def read_operators(request: HttpRequest, agent: names.Name) -> Any:
    """Name the users who may flip this agent's switches, beside those who may flip every agent's."""
    return {"users": list(roles.operators_of(agent))}


@router.put(
    _PATH,
    auth=auth.writing(*rights.NAME_OPERATORS),
    response={200: changed.Changed, **problems.answers(409)},
)
def name_operators(request: HttpRequest, agent: names.Name, body: OperatorsWanted) -> Any:
    """Let these users, and no others, operate this agent though they may not flip every agent's switches."""
    was = writing.ANY if body.was is None else body.was
    done = roles.name_operators(auth.actor(request), agent, body.users, was=was, reason=body.reason)
    return changed.told(done)
