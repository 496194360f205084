"""Connections of MCP clients: a person lets a client act as an agent, and ends that again.

A connection ends with its person's account, its agent or a revocation, at the client's next request. Its tokens are
rows of the authorization server (django-oauth-toolkit). Each access token also has a row among Toolbelt's own tokens,
which is found by the same query as every other one, and is deleted with it.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from django.contrib import auth
from django.db.models import Exists, OuterRef
from django.utils import timezone
from oauth2_provider import models as oauth

from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.people import rights
from toolbelt.core import agent_addresses, api_tokens, errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A connection: ``client`` is what the client calls itself, ``redirect_host`` is where its person was sent back.
    ``is_signed_in``: it has a token, or can have a new one without its person.
    """

    id: int
    agent: str
    person: str
    client: str
    redirect_host: str
    created: dt.datetime
    last_used: dt.datetime | None
    revoked: dt.datetime | None
    is_person_active: bool
    is_agent_archived: bool
    is_signed_in: bool


def allow(
    write: writing.Write, *, application: int, user: Any, agent: str, client: str, redirect_host: str
) -> None:
    """Let a registered client (by primary key) act as an agent for a user. Raise NotFound, Archived or Refused."""
    with writing.begin():
        row = usable_agent(agent)
        if not rights.may_use(user, agent):
            raise errors.Refused(f"You may not use {agent}. Required permission: {rights.USE}.")
        connection, _ = models.ClientConnection.objects.update_or_create(
            agent=row,
            user=user,
            application_id=application,
            revoked=None,
            defaults={"client": client, "redirect_host": redirect_host},
        )
        writing.record(
            write,
            "connection",
            str(connection.pk),
            action="connection.allow",
            before=None,
            after=_described(connection),
        )


def usable_agent(agent: str) -> models.Agent:
    """Return the row of an agent that answers requests. Raise NotFound or Archived."""
    row = models.Agent.objects.filter(key=agent).first()
    if row is None:
        raise errors.NotFound("agent", agent, models.Agent.objects.values_list("key", flat=True))
    if row.archived:
        raise errors.Archived(agent)
    return row


def check(application: int, user: Any, agent: str) -> models.ClientConnection:
    """Return the connection for which a client asks for a token. Raise Refused if it may have none.

    Locks the connection, within a transaction, so that no token outlives a revocation.
    """
    connection = (
        models.ClientConnection.objects.select_for_update(of=("self",))
        .filter(application=application, user=user, agent__key=agent, agent__archived=False, revoked=None)
        .select_related("agent")
        .first()
    )
    if connection is None:
        raise errors.Refused("The connection was revoked, or its agent is archived: sign in again.")
    if not user.is_active or not rights.may_use(user, agent):
        raise errors.Refused(f"The person who signed in may not use {agent}.")
    return connection


def add_token(connection: models.ClientConnection, text: str) -> None:
    """Store the access token that the authorization server has just stored, among Toolbelt's tokens."""
    digest = api_tokens.digest(text)
    access_token = oauth.AccessToken.objects.get(token_checksum=digest)
    models.ApiToken.objects.create(
        prefix=api_tokens.prefix(text),
        digest=digest,
        name=connection.client[:100],
        agent=connection.agent,
        user=connection.user,
        connection=connection,
        access_token=access_token,
        expires=access_token.expires,
        issued_by=connection.user.get_username(),
    )


def revoke(write: writing.Write, connection: int, *, of_user: int | None = None) -> None:
    """End a connection, of this user if one is given (by primary key), permanently. Raise NotFound.

    One that was revoked before stays as it is. Its tokens are rejected from the next request on.
    """
    with writing.begin():
        owned = {} if of_user is None else {"user": of_user}
        row = (
            models.ClientConnection.objects.filter(pk=connection, **owned)
            .select_related("agent", "user")
            .first()
        )
        if row is None:
            raise errors.NotFound("connection", str(connection))
        if row.revoked is None:
            _end(row)
            writing.record(
                write,
                "connection",
                str(row.pk),
                action="connection.revoke",
                before=_described(row),
                after=None,
            )


def revoke_of_token(write: writing.Write, prefix: str) -> None:
    """End the connection whose token has this prefix."""
    revoke(write, models.ApiToken.objects.values_list("connection", flat=True).get(prefix=prefix))


def _end(row: models.ClientConnection) -> None:
    row.revoked = timezone.now()
    row.save(update_fields=["revoked"])
    of_client: dict[str, Any] = {"application": row.application_id, "user": row.user_id}
    for kind in (oauth.Grant, oauth.RefreshToken):
        for issued in kind.objects.filter(**of_client):
            if row.agent.key in map(agent_addresses.agent_of_any_host, issued.resource):
                issued.delete()
    # With them, their rows among Toolbelt's tokens.
    oauth.AccessToken.objects.filter(api_token__connection=row).delete()


def listed(agent: str = "", user: int | None = None) -> list[Connection]:
    """Return all connections, or those of one agent or one user (by primary key), the newest first."""
    rows = _rows()
    if agent:
        rows = rows.filter(agent__key=agent)
    if user is not None:
        rows = rows.filter(user=user)
    return [_value(row) for row in rows]


def find(connection: int) -> Connection:
    """Return one connection. Raise NotFound."""
    row = _rows().filter(pk=connection).first()
    if row is None:
        raise errors.NotFound("connection", str(connection))
    return _value(row)


def _rows() -> Any:
    return models.ClientConnection.objects.select_related("agent", "user").annotate(
        is_signed_in=Exists(models.ApiToken.objects.filter(connection=OuterRef("pk")))
    )


def _described(row: models.ClientConnection) -> dict[str, Any]:
    return {
        "agent": row.agent.key,
        "person": row.user.get_username(),
        "client": row.client,
        "redirect_host": row.redirect_host,
    }


def _value(row: Any) -> Connection:
    return Connection(
        id=row.pk,
        agent=row.agent.key,
        person=str(getattr(row.user, auth.get_user_model().USERNAME_FIELD)),
        client=row.client,
        redirect_host=row.redirect_host,
        created=row.created,
        last_used=row.last_used,
        revoked=row.revoked,
        is_person_active=row.user.is_active,
        is_agent_archived=row.agent.archived,
        is_signed_in=row.is_signed_in,
    )
