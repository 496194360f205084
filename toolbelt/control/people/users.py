"""Users: listing, creating, deactivating and activating them."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import auth
from django.contrib.auth import password_validation
from django.core.exceptions import ValidationError

from toolbelt import conf, models
from toolbelt.control import writing
from toolbelt.control.people import logins, names, provider, roles
from toolbelt.core import errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A user, with their roles and the agents that they operate one by one.

    ``is_given``: the provider gives their roles, at each login.
    """

    name: str
    full_name: str
    email: str
    roles: Sequence[str]
    is_given: bool
    agents: Sequence[str]
    is_active: bool
    is_superuser: bool
    last_login: dt.datetime | None


def listed() -> list[Person]:
    """Return all users by name, the inactive ones last, in a fixed number of queries."""
    model = auth.get_user_model()
    operated = defaultdict(list)
    for user, agent in models.AgentOperator.objects.values_list("user_id", "agent__key").order_by(
        "agent__key"
    ):
        operated[user].append(agent)
    rows = model._default_manager.order_by("-is_active", model.USERNAME_FIELD).prefetch_related("groups")
    given = provider.given_to()
    return [_person(row, operated[row.pk], row.pk in given) for row in rows]


def find(name: str) -> Person:
    """Return one user; raise errors.NotFound."""
    row = row_of(name)
    return _person(row, roles.agents_of(row.pk), row.pk in provider.given_to())


def create(write: writing.Write, name: str, password: str, new_roles: Iterable[str], email: str = "") -> None:
    """Create a user with these roles; raise Invalid with what is wrong with the name, the password or the address.

    Without a password, they log in with the provider.
    """
    user = _new(name, email)
    if password or not (conf.SIGN_IN_ISSUER and email):
        give_password(user, password)
    else:
        user.set_unusable_password()
    with writing.begin():
        _save(write, user)
        roles.put(write, user.get_username(), new_roles)


def create_without_password(write: writing.Write, name: str, email: str, full_name: str = "") -> Any:
    """Create a user who logs in with the provider, or chooses a password later, and return it.

    Raise Invalid for a name or an address that cannot be used.
    """
    user = _new(name, email)
    user.first_name, _, user.last_name = full_name[:150].partition(" ")
    user.set_unusable_password()
    with writing.begin():
        _save(write, user)
    return user


def _save(write: writing.Write, user: Any) -> None:
    """Store a new user; raise Invalid if the audit log could take the name for another one."""
    name = user.get_username()
    names.check_is_new(name)
    user.save()
    writing.record(write, "user", name, action="user.create", before=None, after=None)


def set_password(write: writing.Write, name: str, password: str) -> None:
    """Set a new password of a user, which ends all logins of the user. Tokens remain valid.

    Raise errors.NotFound, or Invalid with what is wrong with the password.
    """
    user = row_of(name)
    give_password(user, password)
    with writing.begin():
        user.save(update_fields=["password"])
        writing.record(write, "user", name, action="user.password", before=None, after=None)
        logins.end_all(write, user)
        _forget_link(user)


def remove_password(write: writing.Write, user: Any) -> None:
    """Let a user no longer log in with a password, which ends all their logins, if they have one."""
    with writing.begin():
        if user.has_usable_password():
            user.set_unusable_password()
            user.save(update_fields=["password"])
            name = user.get_username()
            writing.record(write, "user", name, action="user.password_remove", before=None, after=None)
            logins.end_all(write, user)


def own_password_changed(write: writing.Write, user: Any, session: str | None) -> None:
    """Record that a user has changed their own password, and log them out on all browsers but that of a session."""
    with writing.begin():
        writing.record(write, "user", user.get_username(), action="user.password", before=None, after=None)
        logins.end_others(write, user, session)
        _forget_link(user)


def set_active(write: writing.Write, name: str, active: bool) -> bool:
    """Let a user log in again, or no longer; return whether that changes anything.

    Their tokens are rejected for as long. Raise errors.NotFound, or Refused for oneself, the last administrator and
    people who may do more than the writer.
    """
    if not active and name == write.actor.name and write.actor.via == "screen":
        raise errors.Refused("You cannot deactivate your own account: ask another administrator.")
    with writing.begin():
        row = row_of(name)
        refuse_beyond(write, row)
        if row.is_active is active:
            return False
        row.is_active = active
        row.save(update_fields=["is_active"])
        roles.refuse_without_administrator()
        action = "user.activate" if active else "user.deactivate"
        writing.record(write, "user", name, action=action, before=not active, after=active)
        if not active:
            # Otherwise they would be logged in again with the activation.
            logins.end_all(write, row)
            _forget_link(row)
    return True


def log_out(write: writing.Write, name: str) -> int:
    """Log a user out everywhere; return on how many browsers they were.

    Raise errors.NotFound, or Refused for people who may do more than the writer.
    """
    with writing.begin():
        row = row_of(name)
        refuse_beyond(write, row)
        return logins.end_all(write, row)


def refuse_beyond(write: writing.Write, user: Any) -> None:
    """Raise Refused if a person on the dashboard acts for a user who may do more than they. Called within the write.

    A command acts for everyone.
    """
    if write.actor.via == "screen" and not roles.may_act_for(row_of(write.actor.name), user):
        raise errors.Refused(
            f"{user.get_username()} may do more than you, or approves in a group that you are not in: ask a superuser."
        )


def _new(name: str, email: str) -> Any:
    """Return a user who is not stored yet. Raise Invalid."""
    model: Any = auth.get_user_model()
    user = model(**{model.USERNAME_FIELD: names.normal(name)}, email=email)
    try:
        user.full_clean(exclude=["password"])
    except ValidationError as error:
        raise errors.Invalid(
            [
                errors.Problem(path="email" if field == "email" else "name", message=message)
                for field, texts in error.message_dict.items()
                for message in texts
            ]
        ) from error
    return user


def give_password(user: Any, password: str) -> None:
    """Set the password of a user object, without storing it, and before a transaction, because hashing takes long.

    Raise Invalid with what is wrong with it.
    """
    try:
        password_validation.validate_password(password, user)
    except ValidationError as error:
        raise _invalid("password", error.messages) from error
    user.set_password(password)


def _forget_link(user: Any) -> None:
    """Make a user's password link invalid: they no longer need it."""
    models.PasswordLink.objects.filter(user=user).delete()


def row_of(name: str) -> Any:
    """Return the stored user with this name; raise errors.NotFound."""
    model = auth.get_user_model()
    row = model._default_manager.filter(**{model.USERNAME_FIELD: name}).first()
    if row is None:
        raise errors.NotFound(
            "user", name, model._default_manager.values_list(model.USERNAME_FIELD, flat=True)
        )
    return row


def _person(row: Any, agents: Sequence[str], is_given: bool) -> Person:
    names = {group.name for group in row.groups.all()}
    return Person(
        name=row.get_username(),
        full_name=row.get_full_name(),
        email=row.email,
        roles=[role for role in roles.ROLES if role in names],
        is_given=is_given,
        agents=agents,
        is_active=row.is_active,
        is_superuser=row.is_superuser,
        last_login=row.last_login,
    )


def _invalid(path: str, messages: Iterable[str]) -> errors.Invalid:
    return errors.Invalid([errors.Problem(path=path, message=message) for message in messages])
