"""Roles of users: four roles, and operators of single agents.

==============  =======================================================================================
role            may
==============  =======================================================================================
viewer          view everything except tokens: states, reasons, the audit log, calls
approver        decide about calls that wait for approval, and see them; beside that, as without a role
operator        what viewers and approvers may; also flip switches, edit agents and toolkits, block, approve and
                refresh tools, evict sessions, use agents with MCP clients that sign in
administrator   everything, including the admin and the users
==============  =======================================================================================

A role is a Django group with Django permissions, created once if it is missing; changes that an installation makes to
it are kept, and an upgrade adds the permissions on new models. A user without permission to flip every agent's switches
may be named as an operator of single agents, and may then change only their switches, overrides and sessions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from django.apps import apps
from django.contrib import auth
from django.contrib.auth import models as logins
from django.db.models import Q, signals

from toolbelt import conf, models
from toolbelt.control import writing
from toolbelt.control.people import provider, rights
from toolbelt.core import errors
from toolbelt.store import entries, operators

Role = Literal["viewer", "approver", "operator", "administrator"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)
# Models for plugins and for internal use, which are not viewed, or only by those who may issue tokens.
_UNSEEN = frozenset(
    {
        "apitoken",
        "approval",
        "pluginstate",
        "revision",
        "agentrevision",
        "agentoperator",
        "preferences",
        "savedview",
    }
)
_OF_APPROVERS = (rights.permission("view", "approval"), rights.DECIDE)
_OF_OPERATORS = (
    rights.FLIP,
    rights.permission("change", "toolkit"),
    rights.permission("change", "tool"),
    rights.permission("change", "plugin"),
    rights.permission("change", "session"),
    rights.permission("delete", "session"),
    *_OF_APPROVERS,
    rights.USE,
)
# What an operator of single agents may do with these, as permissions for every agent.
_OF_AGENTS = (
    rights.FLIP,
    rights.DECIDE,
    rights.USE,
    rights.permission("change", "session"),
    rights.permission("delete", "session"),
)


def permissions(role: Role) -> frozenset[str]:
    """Return the permissions that a role has when it is created, such as ``toolbelt.view_agent``."""
    names = {
        permission: f"{permission.content_type.app_label}.{permission.codename}"
        for permission in logins.Permission.objects.select_related("content_type")
    }
    toolbelts = {permission_: name for permission_, name in names.items() if name.startswith("toolbelt.")}
    if role == "administrator":
        users = {name for name in names.values() if name.startswith("auth.")}
        return frozenset(toolbelts.values()) | users
    if role == "approver":
        return frozenset(_OF_APPROVERS)
    viewing = {
        name
        for permission_, name in toolbelts.items()
        if permission_.codename.startswith("view_") and permission_.content_type.model not in _UNSEEN
    }
    return frozenset(viewing) | (frozenset(_OF_OPERATORS) if role == "operator" else frozenset())


def create_groups() -> tuple[Role, ...]:
    """Create the missing groups; return the roles that were created.

    Existing ones get their permissions on what is new: the models on which no role has any.
    """
    created = []
    every = logins.Permission.objects.select_related("content_type")
    known = set(every.filter(group__name__in=ROLES).values_list("content_type", flat=True))
    for role in ROLES:
        group, is_new = logins.Group.objects.get_or_create(name=role)
        granted = permissions(role)
        group.permissions.add(
            *(
                permission_
                for permission_ in every
                if (is_new or permission_.content_type_id not in known)
                and f"{permission_.content_type.app_label}.{permission_.codename}" in granted
            )
        )
        if is_new:
            created.append(role)
    return tuple(created)


def connect() -> None:
    """Create the groups after each migration of the database, when the permissions exist."""
    signals.post_migrate.connect(_migrated, dispatch_uid="toolbelt.roles")


def assign(write: writing.Write, user: str, role: Role) -> bool:
    """Assign a role to a user; return whether it was new. An administrator may also enter the admin.

    Raise errors.NotFound.
    """
    with writing.begin():
        return put(write, user, {*of_user(user), role})


def remove(write: writing.Write, user: str, role: Role) -> bool:
    """Remove a role from a user; return whether they had it. Raise errors.NotFound, or Refused as :func:`put` does."""
    with writing.begin():
        return put(write, user, {*of_user(user)} - {role})


def put(write: writing.Write, user: str, new_roles: Iterable[str], *, was: Any = writing.ANY) -> bool:
    """Set the roles of a user to these; return whether that changes anything. ``was``: those that the writer saw.

    Raise errors.NotFound, errors.Stale, or errors.Refused for the last administrator, and for a user whose roles the
    provider gives.
    """
    with writing.begin():
        row = _find(user)
        if row.pk in provider.given_to():
            raise errors.Refused(
                f"{conf.SIGN_IN_NAME} gives the roles of {user} at each login: change their groups there."
            )
        before = _roles(row)
        if was is not writing.ANY and set(was) != set(before):
            raise errors.Stale(
                f"The roles of {user}",
                ", ".join(was) or "none",
                ", ".join(before) or "none",
                by=writing.author(write, "user", user),
            )
        changed = _set(write, row, new_roles)
        if changed and "administrator" in before:
            refuse_without_administrator()
    return changed


def renew(write: writing.Write, user: str, new_roles: Iterable[str]) -> bool:
    """Set the roles of a user as the provider gives them, also the last administrator's, and take all other rights that
    were given here: the provider could not end them. Return whether that changes anything. Raise errors.NotFound.

    Groups without permissions stay, which say who approves; so do the agents that the user operates.
    """
    with writing.begin():
        row = _find(user)
        # As a list: both are done.
        return any([_take_other_rights(write, row), _set(write, row, new_roles)])


def _set(write: writing.Write, row: Any, new_roles: Iterable[str]) -> bool:
    """Set the roles of a user; return whether that changes anything."""
    create_groups()
    before, names = _roles(row), set(new_roles)
    after = tuple(role for role in ROLES if role in names)
    if before == after:
        return False
    row.groups.remove(*logins.Group.objects.filter(name__in=set(before) - names))
    row.groups.add(*logins.Group.objects.filter(name__in=set(after) - set(before)))
    if ("administrator" in before) is not ("administrator" in after) and not row.is_superuser:
        row.is_staff = "administrator" in after
        row.save(update_fields=["is_staff"])
    writing.record(
        write, "user", row.get_username(), action="user.roles", before=list(before), after=list(after)
    )
    return True


def _take_other_rights(write: writing.Write, row: Any) -> bool:
    """Take the rights of a user that no role gives; return whether there were any."""
    permissions = row.user_permissions.select_related("content_type").order_by("pk")
    groups = row.groups.filter(permissions__isnull=False).exclude(name__in=ROLES).distinct().order_by("name")
    is_staff = row.is_staff and "administrator" not in _roles(row)
    before = [
        *(f"{permission.content_type.app_label}.{permission.codename}" for permission in permissions),
        *(f"group {group.name}" for group in groups),
        *(["the admin"] if is_staff else []),
    ]
    if not before:
        return False
    row.user_permissions.clear()
    row.groups.remove(*groups)
    if is_staff:
        row.is_staff = False
        row.save(update_fields=["is_staff"])
    writing.record(write, "user", row.get_username(), action="user.rights", before=before, after=[])
    return True


def refuse_without_administrator() -> None:
    """Raise Refused if no active user is left who may manage the others. Called within the write that it prevents."""
    if not has_administrator():
        raise errors.Refused("Toolbelt needs an administrator: make another user an administrator first.")


def has_administrator() -> bool:
    """Return whether an active user may manage the others: a superuser, or one with the role administrator."""
    administrators = Q(is_superuser=True) | Q(groups__name="administrator")
    return auth.get_user_model()._default_manager.filter(administrators, is_active=True).exists()


def assignable(user: rights.User) -> tuple[Role, ...]:
    """Return the roles whose permissions this user has, and may therefore give to others and take from them."""
    permissions: dict[str, set[str]] = {role: set() for role in ROLES}
    rows = logins.Group.objects.filter(name__in=ROLES, permissions__isnull=False).values_list(
        "name", "permissions__content_type__app_label", "permissions__codename"
    )
    for role, label, codename in rows:
        permissions[role].add(f"{label}.{codename}")
    return tuple(role for role in ROLES if all(map(user.has_perm, permissions[role])))


def may_act_for(maker: Any, person: Any) -> bool:
    """Return whether a user may do to a person what leads into or out of their account: a password link, a reset of the
    second factor, a deactivation. So the person may do no more than the maker, also when they are active again.
    """
    return bool(_people_within(maker).filter(pk=person.pk).exists())


def names_within(maker: Any) -> frozenset[str]:
    """Return the names of the people for whom a user may act."""
    return frozenset(_people_within(maker).values_list(auth.get_user_model().USERNAME_FIELD, flat=True))


def of_user(user: str) -> tuple[str, ...]:
    """Return the roles of a user; raise errors.NotFound."""
    return _roles(_find(user))


def set_operators(
    write: writing.Write, agent: str, users: Iterable[str], *, was: Any = writing.ANY
) -> writing.Change:
    """Make these users, and no others, the operators of one agent. ``was``: those that the writer saw.

    Raise errors.NotFound for an unknown agent or user, or errors.Stale.
    """
    with writing.begin():
        before, after = list(operators.of_agent(agent)), sorted(set(users))
        if was is not writing.ANY and sorted(was) != before:
            by = writing.author(write, "agent", agent, fields=["operators"])
            raise errors.Stale(f"The operators of {agent}", ", ".join(was), ", ".join(before), by=by)
        # Also if nothing changes, because it raises NotFound for an unknown agent.
        operators.put(agent, after)
        if before == after:
            return writing.Change(entry=None, before=before, after=after)
        entry = writing.record(
            write,
            "agent",
            agent,
            action="agent.operators",
            before={"operators": before},
            after={"operators": after},
        )
    return writing.Change(entry=entry, before=before, after=after)


def operators_of(agent: str) -> Sequence[str]:
    """Return the users who operate one agent without permission for every agent; raise errors.NotFound."""
    if agent not in (keys_ := entries.names("agent")):
        raise errors.NotFound("agent", agent, keys_)
    return operators.of_agent(agent)


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedUsers:
    """The users who may flip an agent's switches: ``everywhere`` by a role or a permission, on every agent; ``own``
    only on this one; ``others`` are active users who may not, and could be named.
    """

    everywhere: Sequence[str]
    own: Sequence[str]
    others: Sequence[str]


def allowed_users(agent: str) -> AllowedUsers:
    """Return the users who may flip one agent's switches, in a fixed number of queries."""
    model = auth.get_user_model()
    name = model.USERNAME_FIELD
    active = model._default_manager.filter(is_active=True)
    flip = Q(codename=rights.FLIP.partition(".")[2], content_type__app_label="toolbelt")
    holding = logins.Permission.objects.filter(flip)
    everywhere = active.filter(
        Q(is_superuser=True) | Q(user_permissions__in=holding) | Q(groups__permissions__in=holding)
    )
    permitted = set(everywhere.values_list(name, flat=True))
    own = tuple(operators.of_agent(agent))
    all_users = sorted(active.values_list(name, flat=True))
    return AllowedUsers(
        everywhere=tuple(sorted(permitted)),
        own=own,
        others=tuple(user for user in all_users if user not in permitted and user not in own),
    )


def agents_of(user: int) -> Sequence[str]:
    """Return the agents that a user (by primary key) operates one by one."""
    return sorted(operators.of_user(user))


def _people_within(maker: Any) -> Any:
    """Return the users who may do no more than this active one, whether they are active or not.

    Everyone for a superuser. For others, those without a permission, a group or an agent that the maker has not. Groups
    say who approves calls; the roles that the maker may assign count as theirs, and so does every agent if they may do
    all that its operators may.
    """
    people = auth.get_user_model()._default_manager
    if not maker.is_active:
        return people.none()
    if maker.is_superuser:
        return people.all()
    held = logins.Permission.objects.filter(Q(user=maker) | Q(group__user=maker)).values("pk")
    permissions = logins.Permission.objects.exclude(pk__in=held)
    groups = logins.Group.objects.exclude(Q(user=maker) | Q(name__in=assignable(maker)))
    beyond = (
        Q(is_superuser=True) | Q(user_permissions__in=permissions) | Q(groups__permissions__in=permissions)
    )
    beyond |= Q(groups__in=groups)
    if not all(map(maker.has_perm, _OF_AGENTS)):
        agents = models.AgentOperator.objects.filter(user=maker).values("agent")
        others = models.AgentOperator.objects.exclude(agent__in=agents)
        beyond |= Q(pk__in=others.values("user"))
    return people.exclude(pk__in=people.filter(beyond).values("pk"))


def _roles(user: Any) -> tuple[str, ...]:
    names = set(user.groups.values_list("name", flat=True))
    return tuple(role for role in ROLES if role in names)


def _find(user: str) -> Any:
    model = auth.get_user_model()
    user_ = model._default_manager.filter(**{model.USERNAME_FIELD: user}).first()
    if user_ is None:
        names = model._default_manager.values_list(model.USERNAME_FIELD, flat=True)
        raise errors.NotFound("user", user, names)
    return user_


def _migrated(app_config: Any, **options: Any) -> None:
    # Permissions are created app by app; after the last app, all exist.
    last = [config for config in apps.get_app_configs() if config.models_module is not None][-1]
    if app_config.label == last.label and _has_permissions(options["using"]):
        create_groups()


def _has_permissions(using: str) -> bool:
    """Return whether Toolbelt's permissions exist: not after migrating single apps, or back to zero."""
    return logins.Permission.objects.using(using).filter(content_type__app_label="toolbelt").exists()
