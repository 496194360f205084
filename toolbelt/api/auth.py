"""Authorization of the API's operations: which tokens each operation accepts.

Every operation declares one of these:

====================  ================  ========================================================================
authorization         an agent's token  an operator's token
====================  ================  ========================================================================
`agent`               its own agent     any
`agent_writing`       its own agent     with write scope, if the operator may flip the agent's switches
`session_writing(…)`  its own agent     with write scope, if the operator may change or delete its sessions
`declaring(…)`        if named          as for `viewing` plugins, or with "change" as for `writing` them
`reading(…)`          no                any, if the operator has the permissions
`viewing(…)`          no                any, if the operator may view these kinds of objects
`writing(…)`          no                with write scope, if the operator has the permissions
`switch_writing`      no                with write scope, if the operator may flip the agent's switches
`deciding`            no                any, if the operator may decide about the agent's calls
`deciding_writing`    no                with write scope, if the operator may decide about the agent's calls
====================  ================  ========================================================================

An operator's token has the permissions that its user has at the time of the request. For an agent's token, every other
agent is not found, whether it exists or not. Login cookies are not accepted, so a foreign page cannot make a browser
send requests (CSRF).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, TypeVar

import structlog
from django.contrib import auth as logins
from django.contrib.auth.models import AbstractUser
from django.http import HttpRequest
from ninja import security

from toolbelt.api import limits, problems
from toolbelt.control import writing as writes
from toolbelt.control.people import rights
from toolbelt.control.servers import approvals
from toolbelt.core import errors
from toolbelt.runtime import calls, credentials

T = TypeVar("T")

_CHALLENGE = 'Bearer realm="toolbelt"'


class _Authorization(security.http.HttpAuthBase):
    """Authenticates and authorizes a request. The class's name is the name of the scheme in the OpenAPI document."""

    openapi_scheme = "bearer"
    openapi_description = ""

    def __init__(self, *permissions: str) -> None:
        super().__init__()
        self.permissions = permissions

    def __call__(self, request: HttpRequest) -> credentials.Bearer:
        """Return the sender of the request, or raise HttpProblem if the sender is not allowed to send it."""
        bearer = authenticate(request)
        structlog.contextvars.bind_contextvars(bearer=bearer.name)
        limits.admit(request, bearer)
        if bearer.kind == "agent":
            self.admit_agent(request, bearer)
        else:
            self.admit_operator(request, bearer)
        return bearer

    def admit_agent(self, request: HttpRequest, bearer: credentials.Bearer) -> None:
        """Raise NotFound unless the request is about the agent itself."""
        agent_key = _agent(request)
        if agent_key != bearer.agent:
            raise errors.NotYourAgent(agent_key)

    def admit_operator(self, request: HttpRequest, bearer: credentials.Bearer) -> None:
        """Raise HttpProblem unless the operator has the permissions."""
        _check_permissions(bearer, self.permissions)


class AgentToken(_Authorization):
    openapi_description = "Requires the agent's own token or an operator's token."


class AgentWriteToken(_Authorization):
    openapi_description = "Requires the agent's own token or an operator's token with write scope."

    def admit_operator(self, request: HttpRequest, bearer: credentials.Bearer) -> None:
        """Raise HttpProblem unless the token has write scope and the operator may flip the agent's switches."""
        _check_scope(bearer)
        _check_flipping(request, bearer)


class ReadToken(_Authorization):
    openapi_description = "Requires an operator's token."

    def __init__(self, *permissions: str, kinds: tuple[str, ...] = ()) -> None:
        super().__init__(*permissions)
        self.kinds = kinds

    def admit_operator(self, request: HttpRequest, bearer: credentials.Bearer) -> None:
        """Raise HttpProblem unless the operator has the permissions and may view the kinds of objects."""
        super().admit_operator(request, bearer)
        user = _user(bearer) if self.kinds else None
        hidden = [kind for kind in self.kinds if user is None or not rights.may_read(user, kind)]
        if hidden:
            raise _permission_error(bearer, [rights.permission("view", kind) for kind in hidden])

    def admit_agent(self, request: HttpRequest, bearer: credentials.Bearer) -> None:
        """Raise HttpProblem: agents may not use this operation."""
        raise problems.HttpProblem(
            "forbidden",
            f"This token belongs to the agent {bearer.agent}. It can retrieve the agent's surfaces, call tools and"
            " manage the agent's own sessions. Use an operator's token for everything else.",
        )


class WriteToken(ReadToken):
    openapi_description = "Requires an operator's token with write scope."

    def admit_operator(self, request: HttpRequest, bearer: credentials.Bearer) -> None:
        """Raise HttpProblem unless the token has write scope and the operator has the permissions."""
        _check_scope(bearer)
        super().admit_operator(request, bearer)


class FlipToken(WriteToken):
    def admit_operator(self, request: HttpRequest, bearer: credentials.Bearer) -> None:
        """Raise HttpProblem unless the operator may flip every agent's switches, or this agent's."""
        super().admit_operator(request, bearer)
        _check_flipping(request, bearer)


class DecideToken(ReadToken):
    def admit_operator(self, request: HttpRequest, bearer: credentials.Bearer) -> None:
        """Raise HttpProblem unless the operator may see and decide about this agent's calls."""
        super().admit_operator(request, bearer)
        _check_deciding(request, bearer)


class DecideWriteToken(WriteToken):
    def admit_operator(self, request: HttpRequest, bearer: credentials.Bearer) -> None:
        """Raise HttpProblem unless the token has write scope, and the operator may decide about this agent's calls."""
        super().admit_operator(request, bearer)
        _check_deciding(request, bearer)


class DeclareToken(_Authorization):
    openapi_description = (
        "Requires the token of an agent in the plugin's `declared_by`, or an operator's token."
    )

    def admit_agent(self, request: HttpRequest, bearer: credentials.Bearer) -> None:
        """Raise NotFound unless the agent may declare the plugin's tools."""
        resolved = request.resolver_match
        name = str(resolved.kwargs["plugin"]) if resolved is not None else ""
        approvals.find(name, "client", agent=bearer.agent)

    def admit_operator(self, request: HttpRequest, bearer: credentials.Bearer) -> None:
        """Raise HttpProblem unless the operator may view plugins."""
        viewing("plugin").admit_operator(request, bearer)


class DeclareWriteToken(DeclareToken):
    openapi_description = (
        "Requires the token of an agent in the plugin's `declared_by`,"
        " or an operator's token with write scope."
    )

    def admit_operator(self, request: HttpRequest, bearer: credentials.Bearer) -> None:
        """Raise HttpProblem unless the token has write scope and the operator may change plugins."""
        writing(rights.permission("change", "plugin")).admit_operator(request, bearer)


class SessionToken(AgentWriteToken):
    def __init__(self, act: Literal["change", "delete"]) -> None:
        super().__init__()
        self.act = act

    def admit_operator(self, request: HttpRequest, bearer: credentials.Bearer) -> None:
        """Raise HttpProblem unless the token has write scope and the operator may do this to the agent's sessions."""
        _check_scope(bearer)
        user = _user(bearer)
        if user is None or not rights.may_change_sessions(user, self.act, _agent(request)):
            raise _permission_error(bearer, [rights.permission(self.act, "session")])


class ClearToken(WriteToken):
    def admit_operator(self, request: HttpRequest, bearer: credentials.Bearer) -> None:
        """Raise HttpProblem unless the operator may change the agent's sessions: an agent keeps what it touched."""
        session_writing("change").admit_operator(request, bearer)


agent = AgentToken()
agent_writing = AgentWriteToken()
switch_writing = FlipToken()
deciding = DecideToken()
deciding_writing = DecideWriteToken()


def declaring(act: Literal["view", "change"] = "view") -> DeclareToken:
    """Allow agents that may declare the plugin's tools, and operators who may view or change plugins."""
    return DeclareToken() if act == "view" else DeclareWriteToken()


def session_writing(act: Literal["change", "delete"]) -> SessionToken:
    """Allow the agent itself, and operators with write scope who may change or delete its sessions."""
    return SessionToken(act)


def session_clearing() -> ClearToken:
    """Allow operators with write scope who may change the agent's sessions."""
    return ClearToken()


def reading(*permissions: str) -> ReadToken:
    """Allow operators who have these permissions."""
    return ReadToken(*permissions)


def viewing(*kinds: str) -> ReadToken:
    """Allow operators who may view objects of these kinds."""
    return ReadToken(kinds=kinds)


def writing(*permissions: str) -> WriteToken:
    """Allow operators with write scope who have these permissions."""
    return WriteToken(*permissions)


def check_still_allowed(request: HttpRequest) -> None:
    """Raise HttpProblem if the sender is no longer allowed to call: a token may be revoked while a call waits."""
    sender = authenticate(request)
    if sender.kind == "agent":
        agent_writing.admit_agent(request, sender)
    else:
        agent_writing.admit_operator(request, sender)


def bearer(request: HttpRequest) -> credentials.Bearer:
    """Return the authenticated sender of the request."""
    authenticated: credentials.Bearer = request.auth  # type: ignore[attr-defined]
    return authenticated


def actor(request: HttpRequest) -> writes.Actor:
    """Return the sender as the actor of a change, for the audit log."""
    sender = bearer(request)
    return writes.Actor(name=sender.name, via="api", kind="agent" if sender.kind == "agent" else "token")


def write(request: HttpRequest, *, reason: str = "", confirm: bool = False) -> writes.Write:
    """Return a write by the caller."""
    return writes.Write(actor=actor(request), reason=reason, confirm=confirm)


def require_permissions(request: HttpRequest, *permissions: str) -> None:
    """Raise HttpProblem unless the sender has permissions that only the request's content makes necessary."""
    _check_permissions(bearer(request), permissions)


def require_viewing(request: HttpRequest, *kinds: str) -> None:
    """Raise HttpProblem unless the sender may view objects of these kinds, of which only some answers tell."""
    if hidden := set(kinds) - readable_kinds(request, kinds):
        raise _permission_error(bearer(request), [rights.permission("view", kind) for kind in sorted(hidden)])


def require_undo_permissions(request: HttpRequest, entries: Iterable[rights.UndoableEntry]) -> None:
    """Raise HttpProblem unless the sender may undo these changes."""
    user = _user(bearer(request))
    forbidden = [entry for entry in entries if user is None or not rights.may_undo(user, entry)]
    if forbidden:
        missing = dict.fromkeys(right for entry in forbidden for right in rights.permissions_to_undo(entry))
        raise _permission_error(bearer(request), [*missing])


def allows(request: HttpRequest, rule: Callable[[rights.User, T], bool], thing: T) -> bool:
    """Return whether a rule about users and things allows this to the authenticated operator."""
    user = _user(bearer(request))
    return user is not None and rule(user, thing)


def readable_kinds(request: HttpRequest, kinds: Iterable[str]) -> frozenset[str]:
    """Return those of these kinds of objects that the authenticated operator may view."""
    user = _user(bearer(request))
    return frozenset(kind for kind in kinds if user is not None and rights.may_read(user, kind))


def decidable_agents(request: HttpRequest) -> frozenset[str] | None:
    """Return the agents about whose calls the authenticated operator may decide; None: all."""
    user = _user(bearer(request))
    return frozenset() if user is None else rights.decidable_agents(user)


def caller(request: HttpRequest) -> calls.Caller:
    """Return the sender as the caller of a tool."""
    sender = bearer(request)
    return calls.Caller(
        may_call=functools.partial(check_still_allowed, request),
        operator=sender.name if sender.kind == "operator" else "",
    )


def authenticate(request: HttpRequest) -> credentials.Bearer:
    """Return the bearer of the request's token. Raise HttpProblem if there is no valid token."""
    scheme, _, text = request.headers.get("Authorization", "").partition(" ")
    token_bearer = credentials.recognize(text.strip()) if scheme.lower() == "bearer" else None
    if token_bearer is None or token_bearer.is_client:
        # The same message for a malformed, unknown, revoked and expired token, and for one of another resource, so that
        # it does not reveal which.
        challenge = f'{_CHALLENGE}, error="invalid_token"' if scheme else _CHALLENGE
        raise problems.HttpProblem(
            "unauthenticated",
            "Send a valid token, as Authorization: Bearer tb_…. An operator can issue one with"
            " manage.py token issue.",
            headers={"WWW-Authenticate": challenge},
        )
    return token_bearer


def _agent(request: HttpRequest) -> str:
    resolved = request.resolver_match
    return str(resolved.kwargs.get("agent", "")) if resolved is not None else ""


def _check_scope(bearer: credentials.Bearer) -> None:
    if bearer.scope != "write":
        raise problems.HttpProblem(
            "forbidden", f"This token of {bearer.name} is read-only. Use a token with write scope."
        )


def _check_flipping(request: HttpRequest, bearer: credentials.Bearer) -> None:
    user = _user(bearer)
    if user is None or not rights.may_flip(user, _agent(request)):
        raise _permission_error(bearer, [rights.FLIP])


def _check_deciding(request: HttpRequest, bearer: credentials.Bearer) -> None:
    user = _user(bearer)
    if user is None or not rights.may_decide(user, _agent(request)):
        raise _permission_error(bearer, [rights.DECIDE])


def _check_permissions(bearer: credentials.Bearer, permissions: tuple[str, ...]) -> None:
    if not permissions:
        return
    user = _user(bearer)
    missing = [permission for permission in permissions if user is None or not user.has_perm(permission)]
    if missing:
        raise _permission_error(bearer, missing)


def _user(bearer: credentials.Bearer) -> AbstractUser | None:
    users = logins.get_user_model()._default_manager
    return users.filter(pk=bearer.user or 0, is_active=True).first()


def _permission_error(bearer: credentials.Bearer, permissions: Sequence[str]) -> problems.HttpProblem:
    return problems.HttpProblem(
        "forbidden",
        f"{bearer.name} is not allowed to do this. Required permission: {', '.join(permissions)}.",
    )
