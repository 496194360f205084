"""Signing in at upstream servers with OAuth: an operator is sent to the server's authorization server, comes back, and
Toolbelt keeps the tokens, encrypted.

The way to and back may be in two processes. What is kept of it belongs to the person and their login, and is used once.
"""

from __future__ import annotations

import datetime as dt
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from asgiref.sync import async_to_sync

from toolbelt import conf
from toolbelt.control import writing
from toolbelt.control.catalog import entries
from toolbelt.control.people import rights
from toolbelt.control.servers import approvals
from toolbelt.core import belts, connections, errors
from toolbelt.core.imported import cleaning
from toolbelt.plugins.upstream import opening
from toolbelt.store import clock, databases, encryption, server_sign_ins, snapshots

CHANGE = rights.permission("change", "plugin")
_MAX_WORDS = 300
_NOT_OWN = "No one signs in at {} for themselves: an operator decides that."


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Who signs in: a user, in the session of one login."""

    user: Any
    session: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """Where a person is sent: ``url`` at the ``issuer``, who is asked for ``scopes``. The ``token_endpoint`` gets what
    they come back with. ``confirms``: the client of the connection is for this authorization server, if they do.
    """

    url: str
    issuer: str
    token_endpoint: str
    scopes: str
    confirms: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """A server where each person signs in, and the sign-in of one; None if they are not signed in."""

    plugin: str
    title: str
    sign_in: SignIn | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """At which server a person signed in, and whether for themselves alone."""

    plugin: str
    is_own: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CameBack:
    """With what a person came back: a code, or an error; ``iss`` is the authorization server that states itself."""

    state: str
    code: str = ""
    error: str = ""
    error_description: str = ""
    iss: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """The sign-in at a server, without what it keeps secret. ``needed`` is why someone has to sign in again; empty
    while it is used. ``demanded`` are scopes that the server demanded for some calls, and that it lacks.
    """

    signed_in_by: str
    issuer: str
    scopes: str
    demanded: str
    created: dt.datetime
    needed: str


def begin(
    name: str, person: Person, *, redirect_uri: str, environ: Mapping[str, str], is_own: bool = False
) -> Begun:
    """Find out how to sign in at a server, register there if necessary, and return where to send the person.

    ``is_own``: for the calls of this person's clients alone. Raise errors.NotFound, or Refused: without an encryption
    key, too.
    """
    from toolbelt.plugins.upstream import authorization

    encryption.check_is_possible()
    settings = _connection(name)
    if is_own and settings.sign_in != "person":
        raise errors.Refused(_NOT_OWN.format(name))
    if is_own and settings.client_id and not settings.issuer:
        raise errors.Refused(
            f"The client id of {name} is not confirmed for an authorization server yet: an operator signs in on the"
            " server's page first, or gives the connection its authorization server."
        )
    state = secrets.token_urlsafe(32)
    filled = opening.filled(settings, environ)
    found = server_sign_ins.find(name, person.user.pk if is_own else None)
    # What was allowed before stays allowed.
    is_of_it = found is not None and found.url == settings.url
    more = (
        f"{found.scopes} {found.demanded}".strip()
        if found is not None and is_of_it and found.demanded
        else ""
    )
    databases.release()
    begun = async_to_sync(authorization.begin)(
        filled,
        redirect_uri=redirect_uri,
        state=state,
        may_be_private=conf.ALLOW_PRIVATE_HTTP,
        more_scopes=more,
    )
    server_sign_ins.begin(
        state, person.session, person.user, name, settings.url, begun.model_dump_json(), is_own=is_own
    )
    return Begun(
        url=begun.url,
        issuer=begun.client.issuer,
        token_endpoint=str(begun.client.metadata.token_endpoint),
        scopes=begun.client.scopes,
        confirms=bool(settings.client_id and not settings.issuer),
    )


def finish(write: writing.Write, person: Person, back: CameBack) -> Finished:
    """Store the sign-in with which a person came back, and return at which server, and whether it is for them alone.

    Its connection is changed to be signed in to, if it was not. Raise Refused if nothing is stored.
    """
    from toolbelt.plugins.upstream import authorization

    found = server_sign_ins.take(back.state, person.session, person.user)
    if found is None:
        raise errors.Refused(
            "This sign-in was not begun here, in this login, in the last ten minutes; or it was finished before. Begin"
            " it again on the server's page."
        )
    begun = authorization.Begun.model_validate_json(found.text)
    authorization.check_issuer(begun.client, back.iss)
    if back.error or not back.code:
        said = f"{back.error}: {back.error_description}" if back.error_description else back.error
        words = cleaning.line(said, _MAX_WORDS) or "it gave no code"
        raise errors.Refused(f"The authorization server of {found.plugin} did not sign you in ({words}).")
    databases.release()
    grant = async_to_sync(authorization.finish)(
        begun, back.code, back.iss, may_be_private=conf.ALLOW_PRIVATE_HTTP
    )
    with writing.begin():
        _check_unchanged(found, begun.client)
        if not found.is_own and not person.user.has_perm(CHANGE):
            raise errors.Refused(f"You may no longer sign in at {found.plugin} for others.")
        before = _store(write, found, grant, person.user.pk if found.is_own else None)
    if before is not None:
        databases.release()
        # With the same client, some servers would end everything that the person has allowed it, the new sign-in too.
        _revoke(before, unless_of=grant.client)
    return Finished(plugin=found.plugin, is_own=found.is_own)


def end(write: writing.Write, name: str, person: int | None = None) -> bool:
    """Forget the sign-in at a server, of a person (by primary key) if one is given, and tell its authorization server.
    Return whether there was one.

    The connection stays one that is signed in to. Raise errors.NotFound.
    """
    approvals.find(name, "upstream")
    with writing.begin():
        found = server_sign_ins.remove(name, person)
        if found is None:
            return False
        before = _described(found, is_own=person is not None)
        writing.record(write, "sign_in", name, action="sign_in.end", before=before, after=None)
    databases.release()
    _revoke(found)
    return True


def find(name: str) -> SignIn | None:
    """Return the sign-in at a server."""
    found = server_sign_ins.find(name)
    if found is None:
        return None
    return _shown(found, connections.read(approvals.find(name).upstream))


def own(person: int) -> list[Own]:
    """Return the servers where each person signs in, and the sign-ins of this one (by primary key)."""
    stored, signed_in = snapshots.catalog(), server_sign_ins.of_person(person)
    return [
        Own(
            plugin=name,
            title=plugin.title or name,
            sign_in=_shown(signed_in[name], settings) if name in signed_in else None,
        )
        for name, plugin in stored.plugins.items()
        if plugin.upstream
        and (settings := connections.read(plugin.upstream)) is not None
        and settings.sign_in == "person"
    ]


def _shown(found: server_sign_ins.SignIn, settings: connections.Connection | None) -> SignIn:
    needed = found.error if found.ended else ""
    if settings is None or settings.url != found.url:
        needed = "The server's address has changed since."
    return SignIn(
        signed_in_by=found.signed_in_by,
        issuer=found.issuer,
        scopes=found.scopes,
        demanded=found.demanded,
        created=found.created,
        needed=needed,
    )


def encrypt_again() -> tuple[int, int]:
    """Encrypt all tokens with the first key. Return how many sign-ins were, and how many no key decrypts."""
    encryption.check_is_possible()
    return server_sign_ins.encrypt_again()


new_key = encryption.new_key


def _connection(name: str) -> connections.Connection:
    """Return the connection of a server at an address. Raise Refused if no one can sign in there."""
    settings = connections.read(approvals.find(name, "upstream").upstream)
    if settings is None or not settings.url:
        raise errors.Refused(f"{name} is run by a command: it gets its credentials as variables.")
    if settings.has_authorization:
        raise errors.Refused(f"The connection of {name} has a header Authorization: remove it, then sign in.")
    return settings


def _check_unchanged(found: server_sign_ins.Begun, client: Any) -> None:
    """Raise Refused if the server is another one by now, which must not get the tokens of the one before, or an
    operator wants another authorization server or another client.
    """
    from toolbelt.plugins.upstream import authorization

    settings = _connection(found.plugin)
    if settings.url != found.url:
        raise errors.Refused(f"The address of {found.plugin} was changed meanwhile: begin the sign-in again.")
    if settings.issuer and not authorization.is_same_issuer(settings.issuer, client.issuer):
        raise errors.Refused(
            f"The authorization server of {found.plugin} was changed meanwhile: begin again."
        )
    if settings.client_id and settings.client_id != client.information.client_id:
        raise errors.Refused(f"The client id of {found.plugin} was changed meanwhile: begin again.")
    if found.is_own and settings.sign_in != "person":
        raise errors.Refused(_NOT_OWN.format(found.plugin))


def _store(
    write: writing.Write, found: server_sign_ins.Begun, grant: Any, person: int | None
) -> server_sign_ins.SignIn | None:
    """Store the sign-in, and return the one that it replaces."""
    from toolbelt.plugins.upstream import authorization

    write = write.in_batch()
    stored = belts.entry("plugin", approvals.find(found.plugin))["upstream"]
    changes = {} if stored.get("sign_in") else {"sign_in": "shared"}
    if person is None and stored.get("client_id") and not stored.get("issuer"):
        # Who signed in saw where they were sent. From now on, no other gets what the operator registered.
        changes["issuer"] = grant.client.issuer
    if changes:
        entries.change(write, "plugin", found.plugin, {"upstream": {**stored, **changes}})
    before = server_sign_ins.find(found.plugin, person)
    after = server_sign_ins.put(
        found.plugin,
        person,
        signed_in_by=write.actor.name,
        url=found.url,
        issuer=grant.client.issuer,
        scopes=grant.token.scope or "",
        grant=grant.model_dump_json(),
        expires=authorization.expiry(grant.token, clock.now()),
    )
    writing.record(
        write,
        "sign_in",
        found.plugin,
        action="sign_in.begin",
        before=_described(before, is_own=person is not None) if before is not None else None,
        after=_described(after, is_own=person is not None),
    )
    return before


def _revoke(found: server_sign_ins.SignIn, *, unless_of: Any = None) -> None:
    """Tell the authorization server that a sign-in has ended, unless it belongs to the client ``unless_of``, whose new
    sign-in there would end with it.
    """
    from toolbelt.plugins.upstream import authorization

    try:
        grant = authorization.Grant.model_validate_json(found.grant())
    except errors.Refused:
        # No key decrypts it: its authorization server cannot be told.
        return
    is_same = (
        unless_of is not None
        and grant.client.information.client_id == unless_of.information.client_id
        and authorization.is_same_issuer(grant.client.issuer, unless_of.issuer)
    )
    if not is_same:
        async_to_sync(authorization.revoke)(grant, may_be_private=conf.ALLOW_PRIVATE_HTTP)


def _described(found: server_sign_ins.SignIn, *, is_own: bool) -> dict[str, Any]:
    described = {"signed_in_by": found.signed_in_by, "issuer": found.issuer, "scopes": found.scopes}
    return {**described, "for": "themselves"} if is_own else described
