"""What may each of an installation's people do? Three roles, and operators of single agents.

==============  =======================================================================================
role            may
==============  =======================================================================================
viewer          look at everything but tokens: states, reasons, the log of changes, calls
operator        that, and flip switches, edit agents and toolkits, stop, approve and refresh tools, evict
administrator   everything, the admin and the users among it
==============  =======================================================================================

A role is a group of Django's with permissions of Django's, made once when it is not there: what an installation
changes in it stays so. Whoever lacks the permission to flip every agent's switches may still be named as an operator of
single agents: their switches, overrides and sessions are theirs to change, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from django.apps import apps
from django.contrib import auth
from django.contrib.auth import models as logins
from django.db.models import Q, signals

from toolbelt.control import actors, rights, writing
from toolbelt.core import errors
from toolbelt.store import audit, entries, operators

Role = Literal["viewer", "operator", "administrator"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)
# Kept for plugins and for the front door: nobody looks at them, or only who may issue.
_UNSEEN = frozenset({"apitoken", "pluginstate", "revision", "agentrevision", "agentoperator"})
_OF_OPERATORS = (
    rights.FLIP,
    rights.to("change", "toolkit"),
    rights.to("change", "tool"),
    rights.to("change", "plugin"),
    rights.to("change", "session"),
    rights.to("delete", "session"),
)


def permissions(role: Role) -> frozenset[str]:
    """Name what a role may when it is made, as ``toolbelt.view_agent``."""
    own = {
        permission: f"{permission.content_type.app_label}.{permission.codename}"
        for permission in logins.Permission.objects.select_related("content_type")
    }
    toolbelts = {one: name for one, name in own.items() if name.startswith("toolbelt.")}
    if role == "administrator":
        users = {name for name in own.values() if name.startswith("auth.")}
        return frozenset(toolbelts.values()) | users
    looking = {
        name
        for one, name in toolbelts.items()
        if one.codename.startswith("view_") and one.content_type.model not in _UNSEEN
    }
    return frozenset(looking) | (frozenset(_OF_OPERATORS) if role == "operator" else frozenset())


def make() -> tuple[Role, ...]:
    """Make the groups that are not there; give which were made."""
    made = []
    for role in ROLES:
        group, is_new = logins.Group.objects.get_or_create(name=role)
        if is_new:
            wanted = permissions(role)
            group.permissions.set(
                one
                for one in logins.Permission.objects.select_related("content_type")
                if f"{one.content_type.app_label}.{one.codename}" in wanted
            )
            made.append(role)
    return tuple(made)


def connect() -> None:
    """Make them whenever the database was migrated: by then the permissions are there."""
    signals.post_migrate.connect(_migrated, dispatch_uid="toolbelt.roles")


def give(actor: actors.Actor, user: str, role: Role, *, reason: str = "") -> bool:
    """Give a user a role; say whether they did not have it. An administrator may come into the admin, too.

    Raises errors.NotFound.
    """
    return _put(actor, user, role, True, reason)


def take(actor: actors.Actor, user: str, role: Role, *, reason: str = "") -> bool:
    """Take a role from a user; say whether they had it. Raises errors.NotFound."""
    return _put(actor, user, role, False, reason)


def of_user(user: str) -> tuple[str, ...]:
    """Name the roles of a user. Raises errors.NotFound."""
    return _roles(_find(user))


def name_operators(
    actor: actors.Actor,
    agent: str,
    users: Iterable[str],
    *,
    was: Any = writing.ANY,
    reason: str = "",
    batch: Any = None,
    undoes: int | None = None,
) -> writing.Change:
    """Let these users, and no others, be the operators of one agent. ``was``: whom the writer saw.

    Raises errors.NotFound for an agent or a user that is not there, and errors.Stale.
    """
    with writing.begin():
        before, after = list(operators.of_agent(agent)), sorted(set(users))
        if was is not writing.ANY and sorted(was) != before:
            raise errors.Stale(f"The operators of {agent}", ", ".join(was), ", ".join(before))
        # Also where nothing changes: it says whether the agent is there.
        operators.put(agent, after)
        if before == after:
            return writing.Change(entry=None, before=before, after=after)
        entry = audit.record(
            actor=actor.name,
            via=actor.via,
            action="agent.operators",
            subject_kind="agent",
            subject_key=agent,
            before={"operators": before},
            after={"operators": after},
            reason=reason,
            batch=batch,
            undoes=undoes,
        )
    return writing.Change(entry=entry, before=before, after=after)


def operators_of(agent: str) -> Sequence[str]:
    """Name the users who operate one agent though they may not flip every agent's switches. Raises errors.NotFound."""
    if agent not in (known := entries.names("agent")):
        raise errors.NotFound("agent", agent, known)
    return operators.of_agent(agent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changing:
    """Who may flip an agent's switches: ``everywhere`` by a role or a permission, on every agent; ``own`` on this one
    alone; ``others`` are active users who may not, and could be named.
    """

    everywhere: Sequence[str]
    own: Sequence[str]
    others: Sequence[str]


def changing(agent: str) -> Changing:
    """Say who may flip one agent's switches. A fixed number of queries, however many users there are."""
    model = auth.get_user_model()
    name = model.USERNAME_FIELD
    active = model._default_manager.filter(is_active=True)
    flip = Q(codename=rights.FLIP.partition(".")[2], content_type__app_label="toolbelt")
    holding = logins.Permission.objects.filter(flip)
    everywhere = active.filter(
        Q(is_superuser=True) | Q(user_permissions__in=holding) | Q(groups__permissions__in=holding)
    )
    may = set(everywhere.values_list(name, flat=True))
    own = tuple(operators.of_agent(agent))
    every = sorted(active.values_list(name, flat=True))
    return Changing(
        everywhere=tuple(sorted(may)),
        own=own,
        others=tuple(one for one in every if one not in may and one not in own),
    )


def agents_of(user: int) -> Sequence[str]:
    """Name the agents that a user (the number of their row) operates one by one."""
    return sorted(operators.of_user(user))


def _put(actor: actors.Actor, user: str, role: Role, has: bool, reason: str) -> bool:
    with writing.begin():
        make()
        row = _find(user)
        before = _roles(row)
        if (role in before) is has:
            return False
        group = logins.Group.objects.get(name=role)
        row.groups.add(group) if has else row.groups.remove(group)
        if role == "administrator" and not row.is_superuser:
            row.is_staff = has
            row.save(update_fields=["is_staff"])
        audit.record(
            actor=actor.name,
            via=actor.via,
            action="user.roles",
            subject_kind="user",
            subject_key=user,
            before=list(before),
            after=list(_roles(row)),
            reason=reason,
        )
    return True


def _roles(user: Any) -> tuple[str, ...]:
    names = set(user.groups.values_list("name", flat=True))
    return tuple(role for role in ROLES if role in names)


def _find(user: str) -> Any:
    model = auth.get_user_model()
    found = model._default_manager.filter(**{model.USERNAME_FIELD: user}).first()
    if found is None:
        known = model._default_manager.values_list(model.USERNAME_FIELD, flat=True)
        raise errors.NotFound("user", user, known)
    return found


def _migrated(app_config: Any, **options: Any) -> None:
    # Permissions come app by app, and the last one's come last.
    last = [one for one in apps.get_app_configs() if one.models_module is not None][-1]
    if app_config.label == last.label and _are_tables_there(options["using"]):
        make()


def _are_tables_there(using: str) -> bool:
    """Say whether there are permissions of Toolbelt's: not after a migration of single apps, or back to none."""
    return logins.Permission.objects.using(using).filter(content_type__app_label="toolbelt").exists()
