"""Logging in with the provider: whose account it is, and which roles it gives.

An account is found by the identity at the provider, never by a name. An identity that is new joins the account with its
e-mail address if the provider has verified the address, or gets an account of its own if its groups give a role. What
the provider says is an observation: a role that a group gives goes when the group does, also the last administrator's.
An account that the provider logs in has no other way in: with a password, its person could stay away from the provider.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib import auth

from toolbelt import conf
from toolbelt.control import writing
from toolbelt.control.people import password_links, provider, roles, second_factors, users
from toolbelt.core import errors

# By which name the identities of the one provider are stored: each has its issuer in its ``uid``.
PROVIDER = "provider"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A person at the provider, as it has just said. ``uid`` identifies them for good; all else may change."""

    uid: str
    name: str
    full_name: str = ""
    email: str = ""
    is_verified: bool = False
    roles: tuple[roles.Role, ...] = ()


def roles_of(claims: Mapping[str, Any], claim: str, mapping: Mapping[str, str]) -> tuple[roles.Role, ...]:
    """Return the roles that the groups in a claim give. Groups are compared exactly; a text is one group."""
    stated = claims.get(claim)
    listed = stated if isinstance(stated, list) else [stated]
    given = {mapping[group] for group in listed if isinstance(group, str) and group in mapping}
    return tuple(role for role in roles.ROLES if role in given)


def admit(identity: Identity) -> Any:
    """Return the user who logs in, after an account and roles are as the provider says.

    Raise errors.Refused for a person without an account or a role here, or whose account is deactivated.
    """
    write = writing.by("toolbelt", via="system", reason=f"{identity.name} logged in with {conf.SIGN_IN_NAME}")
    with writing.begin():
        user = _user_of(write, identity)
        if not user.is_active:
            raise errors.Refused(
                f"The account {user.get_username()} is deactivated here: ask an administrator of Toolbelt."
            )
        if user.is_superuser:
            # They may have become one after the provider's identity was joined.
            raise errors.Refused(f"{user.get_username()} is a superuser, who logs in with a password.")
        _close_other_ways(write, user)
        if provider.gives_roles():
            roles.renew(write, user.get_username(), identity.roles)
    if provider.gives_roles() and not identity.roles:
        raise _no_role(identity)
    return user


def _user_of(write: writing.Write, identity: Identity) -> Any:
    """Return the user with this identity, who may have got it now."""
    linked = provider.identities().filter(uid=identity.uid).select_related("user").first()
    if linked is not None:
        return linked.user
    user = _with_address(identity)
    if user is None:
        if not identity.roles:
            raise _no_role(identity)
        user = _created(write, identity)
    provider.identities().create(user=user, provider=PROVIDER, uid=identity.uid)
    writing.record(write, "user", user.get_username(), action="user.link", before=None, after=None)
    return user


def _close_other_ways(write: writing.Write, user: Any) -> None:
    """Remove the password of a user, the link to choose one, and the second factors, and end what they logged in."""
    name = user.get_username()
    password_links.withdraw(write, name)
    second_factors.reset(write, name)
    users.remove_password(write, user)


def _created(write: writing.Write, identity: Identity) -> Any:
    try:
        return users.create_without_password(write, identity.name, identity.email, identity.full_name)
    except errors.Invalid as error:
        raise errors.Refused(
            f"There can be no account {identity.name} for you: {' '.join(p.message for p in error.problems)} If that"
            " account is yours, ask an administrator of Toolbelt to give it your e-mail address."
        ) from error


def _with_address(identity: Identity) -> Any:
    """Return the user with the e-mail address of a new identity, or None. Raise errors.Refused if it must not join."""
    if not identity.email:
        return None
    found = list(auth.get_user_model()._default_manager.filter(email__iexact=identity.email))
    if not found:
        return None
    if not identity.is_verified:
        why = f"{conf.SIGN_IN_NAME} has not verified it"
    elif len(found) > 1 or not identity.email.isascii():
        why = "it is not clear whose it is"
    elif found[0].is_superuser:
        why = "superusers log in with their password"
    elif provider.identities().filter(user=found[0]).exists():
        why = "another identity logs in with it already"
    else:
        return found[0]
    raise errors.Refused(
        f"Your e-mail address {identity.email} is that of another account here, and {why}. Ask an administrator of"
        " Toolbelt to change the address of that account."
    )


def _no_role(identity: Identity) -> errors.Refused:
    if provider.gives_roles():
        return errors.Refused(
            f"No group of {identity.name} at {conf.SIGN_IN_NAME} has a role in Toolbelt: ask for a group that has one."
        )
    return errors.Refused(
        f"{identity.name} has no account in Toolbelt: ask an administrator for one with your e-mail address."
    )
