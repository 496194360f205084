"""The operators of one agent: the users who may flip its switches without the permission for all agents."""

from __future__ import annotations

from typing import Annotated, Any

import ninja
import pydantic
from django.http import HttpRequest

from toolbelt.api import auth, change_results, names, problems, schemas
from toolbelt.control import writing
from toolbelt.control.people import rights, roles

router = ninja.Router(tags=["access"])

_PATH = "/agents/{agent}/operators"
_MAX_COUNT = 1000
_Users = Annotated[list[names.Name], pydantic.Field(max_length=_MAX_COUNT)]


class Operators(ninja.Schema):
    """The users who may flip an agent's switches without the permission for all agents, in order."""

    users: list[str]


class OperatorsUpdate(schemas.Body):
    """The new operators of an agent."""

    users: _Users
    was: Annotated[
        _Users | None,
        pydantic.Field(
            description="The current users that you expect. If they differ, nothing is changed (409 `stale`)."
        ),
    ] = None
    reason: names.Reason = ""


@router.get(_PATH, auth=auth.reading(), response=Operators)
def read_operators(request: HttpRequest, agent: names.Name) -> Any:
    """Retrieve the operators of an agent: the users who may flip its switches without the permission for all agents."""
    return {"users": list(roles.operators_of(agent))}


@router.put(
    _PATH,
    auth=auth.writing(*rights.SET_OPERATORS),
    response={200: change_results.ChangeResult, **problems.documented(409)},
)
def set_operators(request: HttpRequest, agent: names.Name, body: OperatorsUpdate) -> Any:
    """Replace the operators of an agent."""
    expected = writing.ANY if body.was is None else body.was
    change = roles.set_operators(auth.write(request, reason=body.reason), agent, body.users, was=expected)
    return change_results.report(change)
