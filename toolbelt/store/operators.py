"""Operators of single agents, and about whose calls people may decide."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Protocol

from django.contrib import auth
from django.contrib.auth import backends
from django.db.models import QuerySet

from toolbelt import models
from toolbelt.core import errors

# To decide about calls of every agent that wait for approval, and to see them.
DECIDE = "toolbelt.decide_approval"


class User(Protocol):
    """A user, who has a name and permissions."""

    @property
    def pk(self) -> Any: ...

    def has_perm(self, perm: str) -> bool: ...

    def get_username(self) -> str: ...


def of_user(user: int | None) -> frozenset[str]:
    """Return the agents of one user (by primary key)."""
    if user is None:
        return frozenset()
    return frozenset(models.AgentOperator.objects.filter(user=user).values_list("agent__key", flat=True))


def of_agent(agent: str) -> tuple[str, ...]:
    """Return the users of one agent, in order."""
    name = f"user__{auth.get_user_model().USERNAME_FIELD}"
    names = models.AgentOperator.objects.filter(agent__key=agent).values_list(name, flat=True)
    return tuple(sorted(names))


def decidable(user: User) -> frozenset[str] | None:
    """Return the agents about whose calls a user may decide; None: all."""
    return None if user.has_perm(DECIDE) else of_user(user.pk)


def of_users() -> dict[int, frozenset[str]]:
    """Return the agents of every user who has some, by primary key. One query."""
    found: dict[int, set[str]] = {}
    for user, agent in models.AgentOperator.objects.values_list("user_id", "agent__key"):
        found.setdefault(user, set()).add(agent)
    return {user: frozenset(agents) for user, agents in found.items()}


def having(permission: str) -> QuerySet[Any]:
    """Return the active users who have a permission, of their own, by a group, or as superusers."""
    return backends.ModelBackend().with_perm(permission)


def decidable_by(users: Iterable[str]) -> dict[str, frozenset[str] | None]:
    """Return the agents about whose calls each of these users may decide now, as :func:`decidable`; who has no active
    account is left out. Three queries.
    """
    model = auth.get_user_model()
    named = {f"{model.USERNAME_FIELD}__in": list(users)}
    of_all = {*having(DECIDE).filter(**named).values_list("pk", flat=True)}
    of_single = of_users()
    active = model._default_manager.filter(**named, is_active=True).values_list("pk", model.USERNAME_FIELD)
    return {name: None if pk in of_all else of_single.get(pk, frozenset()) for pk, name in active}


def no_longer_deciding(users: Collection[str], agent: str) -> frozenset[str]:
    """Return those of these users who have an account that may not decide about the agent's calls now."""
    if not users:
        return frozenset()
    among, model = decidable_by(users), auth.get_user_model()
    name = model.USERNAME_FIELD
    accounts = model._default_manager.filter(**{f"{name}__in": list(users)}).values_list(name, flat=True)
    may = {user for user, agents in among.items() if agents is None or agent in agents}
    return frozenset(accounts) - may


def groups_of(users: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return the groups of active users, by their names; a user without any is left out."""
    model = auth.get_user_model()
    name = model.USERNAME_FIELD
    found: dict[str, set[str]] = {}
    active = model._default_manager.filter(
        **{f"{name}__in": list(users)}, is_active=True, groups__isnull=False
    )
    for user, group in active.values_list(name, "groups__name"):
        found.setdefault(user, set()).add(group)
    return {user: frozenset(groups) for user, groups in found.items()}


def empty_groups(groups: Collection[str]) -> list[str]:
    """Return those of the groups that have no active user, or do not exist, in order."""
    users = auth.get_user_model()._default_manager.filter(is_active=True, groups__name__in=groups)
    return sorted({*groups} - {*users.values_list("groups__name", flat=True)})


def put(agent: str, users: Iterable[str]) -> None:
    """Make these users, and no others, the operators of the agent; raise errors.NotFound for an unknown name."""
    row = models.Agent.objects.filter(key=agent).first()
    if row is None:
        raise errors.NotFound("agent", agent, models.Agent.objects.values_list("key", flat=True))
    operators = of_agent(agent)
    requested = {name: _user(name, is_named=name in operators) for name in users}
    current = models.AgentOperator.objects.filter(agent=row)
    current.exclude(user__in=requested.values()).delete()
    existing = set(current.values_list("user", flat=True))
    models.AgentOperator.objects.bulk_create(
        models.AgentOperator(agent=row, user_id=user) for user in requested.values() if user not in existing
    )


def _user(name: str, *, is_named: bool) -> int:
    users = auth.get_user_model()._default_manager
    field = auth.get_user_model().USERNAME_FIELD
    # A user who is already an operator may stay so while their login is inactive.
    active_only = {} if is_named else {"is_active": True}
    user_id: int | None = users.filter(**{field: name, **active_only}).values_list("pk", flat=True).first()
    if user_id is None:
        raise errors.NotFound("user", name, users.values_list(field, flat=True))
    return user_id
