"""Who may flip the switches of which agents, beside those who may flip every agent's?"""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib import auth

from toolbelt import models
from toolbelt.core import errors


def of_user(user: int | None) -> frozenset[str]:
    """Name the agents of one user (the number of their row)."""
    if user is None:
        return frozenset()
    return frozenset(models.AgentOperator.objects.filter(user=user).values_list("agent__key", flat=True))


def of_agent(agent: str) -> tuple[str, ...]:
    """Name the users of one agent, in order."""
    name = f"user__{auth.get_user_model().USERNAME_FIELD}"
    found = models.AgentOperator.objects.filter(agent__key=agent).values_list(name, flat=True)
    return tuple(sorted(found))


def put(agent: str, users: Iterable[str]) -> None:
    """Let it be these users, and no others. Raises errors.NotFound for an agent or a user that is not there."""
    row = models.Agent.objects.filter(key=agent).first()
    if row is None:
        raise errors.NotFound("agent", agent, models.Agent.objects.values_list("key", flat=True))
    named = of_agent(agent)
    wanted = {name: _user(name, is_named=name in named) for name in users}
    kept = models.AgentOperator.objects.filter(agent=row)
    kept.exclude(user__in=wanted.values()).delete()
    there = set(kept.values_list("user", flat=True))
    models.AgentOperator.objects.bulk_create(
        models.AgentOperator(agent=row, user_id=user) for user in wanted.values() if user not in there
    )


def _user(name: str, *, is_named: bool) -> int:
    users = auth.get_user_model()._default_manager
    field = auth.get_user_model().USERNAME_FIELD
    # Whoever is named already may stay so while their login is closed.
    open_ = {} if is_named else {"is_active": True}
    found: int | None = users.filter(**{field: name, **open_}).values_list("pk", flat=True).first()
    if found is None:
        raise errors.NotFound("user", name, users.values_list(field, flat=True))
    return found
