"""Links with which people choose a password: invitations of new users, and for those who have forgotten theirs.

A link counts once and for a while, and a new one replaces it, as does a password that is set otherwise. It counts only
while the one who made it might make it. Only a digest of its secret is stored.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib import auth

from toolbelt import conf, models
from toolbelt.control import writing
from toolbelt.control.people import logins, provider, roles, users
from toolbelt.core import errors
from toolbelt.store import clock

INVITATION = dt.timedelta(days=7)
RESET = dt.timedelta(days=1)
GONE = (
    "This link is no longer valid: it was used, replaced or withdrawn, or has expired. Ask an administrator for another"
    " one."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link that can be used. ``text`` is its secret, which only the response to its maker has."""

    person: str
    email: str
    is_invitation: bool
    expires: dt.datetime
    text: str = ""


def invite(write: writing.Write, name: str, new_roles: Iterable[str], email: str = "") -> Link:
    """Create a user with these roles, who chooses a password with the link.

    Raise Invalid with what is wrong with the name or the address.
    """
    with writing.begin():
        user = users.create_without_password(write, name, email)
        roles.put(write, user.get_username(), new_roles)
        return _made(write, user)


def make(write: writing.Write, name: str) -> Link:
    """Make a link with which a user chooses a new password. The old one stays valid until then.

    Raise errors.NotFound, or Refused for a user who could not log in with a password, or may do more than the writer.
    """
    with writing.begin():
        user = users.row_of(name)
        users.refuse_beyond(write, user)
        if why := _refusal(user):
            raise errors.Refused(why)
        return _made(write, user)


def waiting() -> Mapping[str, Link]:
    """Return the links that can be used, by the names of their users, in one query."""
    rows = models.PasswordLink.objects.filter(expires__gt=clock.now()).select_related("user")
    return {row.user.get_username(): _value(row) for row in rows}


def withdraw(write: writing.Write, name: str) -> bool:
    """Make the link of a user invalid; return whether there was one. Raise errors.NotFound."""
    with writing.begin():
        user = users.row_of(name)
        is_gone = bool(models.PasswordLink.objects.filter(user=user, expires__gt=clock.now()).delete()[0])
        if is_gone:
            writing.record(write, "user", name, action="user.unlink", before=None, after=None)
    return is_gone


def find(text: str) -> Link | None:
    """Return the link with this secret; None if it cannot be used."""
    row = _usable(text)
    return _value(row) if row is not None else None


def use(text: str, password: str) -> str:
    """Set the password of a link's user, log them out everywhere, and return their name.

    Raise Refused if the link cannot be used, or Invalid with what is wrong with the password.
    """
    row = _usable(text)
    if row is None:
        raise errors.Refused(GONE)
    user: Any = row.user
    users.give_password(user, password)
    name: str = user.get_username()
    write = writing.by(name, via="screen", reason=f"With a link that {row.made_by} made")
    with writing.begin():
        # Of two who use it at the same time, one has deleted it; and it must not have been replaced meanwhile, nor may
        # its user or its maker have changed.
        if _usable(text) is None or not models.PasswordLink.objects.filter(digest=row.digest).delete()[0]:
            raise errors.Refused(GONE)
        user.save(update_fields=["password"])
        writing.record(write, "user", name, action="user.password", before=None, after=None)
        logins.end_all(write, user)
    return name


def _made(write: writing.Write, user: Any) -> Link:
    text, now = secrets.token_urlsafe(32), clock.now()
    is_invitation = not user.has_usable_password()
    row, _ = models.PasswordLink.objects.update_or_create(
        user=user,
        defaults={
            "digest": _digest(text),
            "is_invitation": is_invitation,
            "made_by": write.actor.name,
            "made": now,
            "expires": now + (INVITATION if is_invitation else RESET),
        },
    )
    action = "user.invite" if is_invitation else "user.password_link"
    writing.record(write, "user", user.get_username(), action=action, before=None, after=None)
    return Link(
        person=user.get_username(),
        email=user.email,
        is_invitation=is_invitation,
        expires=row.expires,
        text=text,
    )


def _usable(text: str) -> Any:
    row = (
        models.PasswordLink.objects.filter(digest=_digest(text), expires__gt=clock.now())
        .select_related("user")
        .first()
    )
    return row if row is not None and not _refusal(row.user) and _may_still_make(row) else None


def _may_still_make(row: models.PasswordLink) -> bool:
    """Return whether the maker of a link might make it now."""
    model = auth.get_user_model()
    maker: Any = model._default_manager.filter(**{model.USERNAME_FIELD: row.made_by}, is_active=True).first()
    return maker is not None and maker.has_perm("auth.change_user") and roles.may_act_for(maker, row.user)


def _refusal(user: Any) -> str:
    """Return why a password would be of no use to a user; empty if it would be."""
    name = user.get_username()
    if not user.is_active:
        return f"{name} is deactivated: activate them first."
    if conf.LOCAL_LOGIN == "superusers" and not user.is_superuser:
        return "Only superusers log in with a password here (TOOLBELT_LOCAL_LOGIN)."
    if conf.SIGN_IN_ISSUER and provider.identities().filter(user=user).exists():
        return f"{name} logs in with {conf.SIGN_IN_NAME}, so a password would bypass it."
    return ""


def _value(row: models.PasswordLink) -> Link:
    user: Any = row.user
    return Link(
        person=user.get_username(), email=user.email, is_invitation=row.is_invitation, expires=row.expires
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()
