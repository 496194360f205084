"""Who may do this? Every operation names one of seven doors, and each of them asks for a token.

==============  =====================================================  ==========================================
door            an agent's token                                       an operator's token
==============  =====================================================  ==========================================
`agent`         its own agent                                          any
`acting`        its own agent                                          that may write, and flip its switches
`of_sessions`   its own agent                                          that may write, and do that to its sessions
`reading(…)`    never                                                  any, with the permissions
`looking(…)`    never                                                  any, who may look at these kinds of things
`writing(…)`    never                                                  that may write, with the permissions
`flipping`      never                                                  that may write, and flip this agent's switches
==============  =====================================================  ==========================================

An operator's token acts as its user, with that user's permissions as they are now. Another agent is not found for an
agent's token, whether it exists or not. A login's cookie opens nothing here, so nobody's browser can be made to ask.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import structlog
from django.contrib import auth as logins
from django.contrib.auth.models import AbstractUser
from django.http import HttpRequest
from ninja import security

from toolbelt.api import limits, problems
from toolbelt.control import actors, rights
from toolbelt.core import errors
from toolbelt.runtime import access

_CHALLENGE = 'Bearer realm="toolbelt"'


class _Door(security.http.HttpAuthBase):
    """Lets in who sent a token that opens it; the class's name is the scheme's name in the OpenAPI document."""

    openapi_scheme = "bearer"
    openapi_description = ""

    def __init__(self, *permissions: str) -> None:
        super().__init__()
        self.permissions = permissions

    def __call__(self, request: HttpRequest) -> access.Bearer:
        """Give who asks, or raise the problem that keeps them out."""
        bearer = recognized(request)
        structlog.contextvars.bind_contextvars(bearer=bearer.name)
        limits.admit(request, bearer)
        if bearer.kind == "agent":
            self.admit_agent(request, bearer)
        else:
            self.admit_operator(request, bearer)
        return bearer

    def admit_agent(self, request: HttpRequest, bearer: access.Bearer) -> None:
        """Let an agent in that asks for itself."""
        wanted = _agent(request)
        if wanted != bearer.agent:
            raise errors.NotFound("agent", wanted)

    def admit_operator(self, request: HttpRequest, bearer: access.Bearer) -> None:
        """Let an operator in who has the permissions."""
        _check_permissions(bearer, self.permissions)


class AgentToken(_Door):
    openapi_description = "A token of this very agent, or one of an operator."


class ActingToken(_Door):
    openapi_description = "A token of this very agent, or one of an operator that may write."

    def admit_operator(self, request: HttpRequest, bearer: access.Bearer) -> None:
        """Let an operator in whose token may write, and who may flip the agent's switches."""
        _check_scope(bearer)
        _check_flipping(request, bearer)


class ReadToken(_Door):
    openapi_description = "A token of an operator."

    def __init__(self, *permissions: str, kinds: tuple[str, ...] = ()) -> None:
        super().__init__(*permissions)
        self.kinds = kinds

    def admit_operator(self, request: HttpRequest, bearer: access.Bearer) -> None:
        """Let an operator in who has the permissions, and may look at the kinds."""
        super().admit_operator(request, bearer)
        user = _user(bearer) if self.kinds else None
        hidden = [kind for kind in self.kinds if user is None or not rights.may_read(user, kind)]
        if hidden:
            raise _lacking(bearer, [rights.to("view", kind) for kind in hidden])

    def admit_agent(self, request: HttpRequest, bearer: access.Bearer) -> None:
        """Refuse."""
        raise problems.HttpProblem(
            "forbidden",
            f"This is a token of the agent {bearer.agent}: it may ask, call, and look after its own sessions."
            " What operators do takes a token of an operator.",
        )


class WriteToken(ReadToken):
    openapi_description = "A token of an operator that may write."

    def admit_operator(self, request: HttpRequest, bearer: access.Bearer) -> None:
        """Let an operator in whose token may write."""
        _check_scope(bearer)
        super().admit_operator(request, bearer)


class FlipToken(WriteToken):
    def admit_operator(self, request: HttpRequest, bearer: access.Bearer) -> None:
        """Let an operator in who may flip every agent's switches, or this one's."""
        super().admit_operator(request, bearer)
        _check_flipping(request, bearer)


class SessionToken(ActingToken):
    def __init__(self, act: Literal["change", "delete"]) -> None:
        super().__init__()
        self.act = act

    def admit_operator(self, request: HttpRequest, bearer: access.Bearer) -> None:
        """Let an operator in whose token may write, and who may do this to the agent's sessions."""
        _check_scope(bearer)
        user = _user(bearer)
        if user is None or not rights.may_change_sessions(user, self.act, _agent(request)):
            raise _lacking(bearer, [rights.to(self.act, "session")])


agent = AgentToken()
acting = ActingToken()
flipping = FlipToken()


def of_sessions(act: Literal["change", "delete"]) -> SessionToken:
    """Let in the agent itself, and operators who may write and do this to its sessions."""
    return SessionToken(act)


def reading(*permissions: str) -> ReadToken:
    """Let in operators who have these permissions."""
    return ReadToken(*permissions)


def looking(*kinds: str) -> ReadToken:
    """Let in operators who may look at things of these kinds."""
    return ReadToken(kinds=kinds)


def writing(*permissions: str) -> WriteToken:
    """Let in operators whose token may write, and who have these permissions."""
    return WriteToken(*permissions)


def check_acting(request: HttpRequest) -> None:
    """Raise the problem if the sender of this request may no longer act: a token may be revoked while a call waits."""
    found = recognized(request)
    if found.kind == "agent":
        acting.admit_agent(request, found)
    else:
        acting.admit_operator(request, found)


def bearer(request: HttpRequest) -> access.Bearer:
    """Give who was let in."""
    found: access.Bearer = request.auth  # type: ignore[attr-defined]
    return found


def actor(request: HttpRequest) -> actors.Actor:
    """Say who does this, for the audit."""
    return actors.Actor(name=bearer(request).name, via="api")


def demand(request: HttpRequest, *permissions: str) -> None:
    """Ask for permissions that only what was sent makes necessary. Raises the problem for whoever lacks one."""
    _check_permissions(bearer(request), permissions)


def demand_undoing(request: HttpRequest, entries: Iterable[rights.Told]) -> None:
    """Ask for what taking these changes back takes. Raises the problem for whoever may not."""
    user = _user(bearer(request))
    lacking = [one for one in entries if user is None or not rights.may_undo(user, one)]
    if lacking:
        names = dict.fromkeys(right for one in lacking for right in rights.to_undo(one))
        raise _lacking(bearer(request), [*names])


def readable(request: HttpRequest, kinds: Iterable[str]) -> frozenset[str]:
    """Give those of these kinds of things that the operator who was let in may look at."""
    user = _user(bearer(request))
    return frozenset(kind for kind in kinds if user is not None and rights.may_read(user, kind))


def recognized(request: HttpRequest) -> access.Bearer:
    """Give who sent the token of this request. Raises the problem for one that opens nothing."""
    scheme, _, text = request.headers.get("Authorization", "").partition(" ")
    found = access.recognize(text.strip()) if scheme.lower() == "bearer" else None
    if found is None:
        # The same words for a token that is malformed, unknown, revoked or over: they tell nobody which.
        challenge = f'{_CHALLENGE}, error="invalid_token"' if scheme else _CHALLENGE
        raise problems.HttpProblem(
            "unauthenticated",
            "Send a token that is valid, as Authorization: Bearer tb_…. An operator issues one:"
            " manage.py token issue.",
            headers={"WWW-Authenticate": challenge},
        )
    return found


def _agent(request: HttpRequest) -> str:
    resolved = request.resolver_match
    return str(resolved.kwargs.get("agent", "")) if resolved is not None else ""


def _check_scope(bearer: access.Bearer) -> None:
    if bearer.scope != "write":
        raise problems.HttpProblem(
            "forbidden", f"This token of {bearer.name} may only read: use one that was issued to write."
        )


def _check_flipping(request: HttpRequest, bearer: access.Bearer) -> None:
    user = _user(bearer)
    if user is None or not rights.may_flip(user, _agent(request)):
        raise _lacking(bearer, [rights.FLIP])


def _check_permissions(bearer: access.Bearer, permissions: tuple[str, ...]) -> None:
    if not permissions:
        return
    user = _user(bearer)
    lacking = [one for one in permissions if user is None or not user.has_perm(one)]
    if lacking:
        raise _lacking(bearer, lacking)


def _user(bearer: access.Bearer) -> AbstractUser | None:
    users = logins.get_user_model()._default_manager
    return users.filter(pk=bearer.user or 0, is_active=True).first()


def _lacking(bearer: access.Bearer, permissions: Sequence[str]) -> problems.HttpProblem:
    return problems.HttpProblem(
        "forbidden", f"{bearer.name} may not do this: it takes the permission {', '.join(permissions)}."
    )
