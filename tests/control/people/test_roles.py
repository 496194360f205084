"""Tests that each role has exactly the permissions that its description states."""

from __future__ import annotations

import io

import pytest
from django.contrib.auth import models as auth
from django.core.management import CommandError, call_command

from toolbelt import models
from toolbelt.control import undo, writing
from toolbelt.control.people import rights, roles
from toolbelt.core import errors

pytestmark = pytest.mark.django_db
SHELL = writing.by("sam", via="command")


@pytest.fixture
def anna() -> auth.User:
    return auth.User.objects.create_user("anna")


def reloaded(user: auth.User) -> auth.User:
    """Return the user without cached permissions."""
    return auth.User.objects.get(pk=user.pk)


def test_migrating_creates_the_roles() -> None:
    assert set(auth.Group.objects.values_list("name", flat=True)) >= set(roles.ROLES)


def test_creating_roles_keeps_customized_groups() -> None:
    group = auth.Group.objects.get(name="operator")
    group.permissions.clear()
    auth.Group.objects.get(name="viewer").delete()

    assert roles.create_groups() == ("viewer",)
    assert not group.permissions.exists()


def test_an_upgrade_gives_existing_roles_their_permissions_on_new_models() -> None:
    removed = auth.Permission.objects.get(codename="change_agent")
    auth.Group.objects.get(name="operator").permissions.remove(removed)
    for group in auth.Group.objects.all():
        group.permissions.remove(*auth.Permission.objects.filter(content_type__model="gaterule"))

    assert roles.create_groups() == ()

    held = {
        role: set(auth.Permission.objects.filter(group__name=role).values_list("codename", flat=True))
        for role in roles.ROLES
    }
    assert [role for role in roles.ROLES if "view_gaterule" in held[role]] == [
        "viewer",
        "operator",
        "administrator",
    ]
    assert [role for role in roles.ROLES if "add_gaterule" in held[role]] == ["administrator"]
    assert "change_agent" not in held["operator"]


def test_each_role_has_the_permissions_of_the_previous_one() -> None:
    viewer, approver, operator, administrator = map(roles.permissions, roles.ROLES)
    assert viewer | approver < operator < administrator
    # Who approves edits no configuration, and sees nothing that people without a role do not see but the calls.
    assert approver == {rights.DECIDE, rights.permission("view", "approval")}
    assert not [name for name in viewer if not name.startswith("toolbelt.view_")]
    assert rights.FLIP in operator
    assert rights.permission("add", "agent") not in operator
    assert not [name for name in operator if "token" in name or name.startswith("auth.")]


def test_assigning_and_removing_a_role_is_audited(anna) -> None:
    assert roles.assign(SHELL.replace(reason="On call"), "anna", "operator")
    assert not roles.assign(SHELL, "anna", "operator")
    assert reloaded(anna).has_perm(rights.FLIP)
    entry = models.AuditEntry.objects.latest("id")
    assert (entry.action, entry.subject_key, entry.before, entry.after) == (
        "user.roles",
        "anna",
        [],
        ["operator"],
    )
    assert entry.reason == "On call"

    assert roles.remove(SHELL, "anna", "operator")
    assert not reloaded(anna).has_perm(rights.FLIP)
    with pytest.raises(errors.Refused, match=r"manage\.py role"):
        undo.undo(SHELL, entry.pk)


def test_an_administrator_has_admin_access_until_the_role_is_removed(anna) -> None:
    roles.assign(SHELL, "anna", "administrator")
    assert reloaded(anna).is_staff
    assert reloaded(anna).has_perm("auth.change_user")
    with pytest.raises(errors.Refused, match="needs an administrator"):
        roles.remove(SHELL, "anna", "administrator")
    assert reloaded(anna).is_staff
    auth.User.objects.create_superuser("root")
    roles.remove(SHELL, "anna", "administrator")
    assert not reloaded(anna).is_staff


def test_assigning_a_role_to_an_unknown_user_is_not_found() -> None:
    auth.User.objects.create_user("anna")
    with pytest.raises(errors.NotFound, match="Did you mean anna"):
        roles.assign(SHELL, "ana", "viewer")


@pytest.mark.usefixtures("stored")
def test_an_operator_of_one_agent_can_only_flip_that_agent(anna) -> None:
    roles.assign(SHELL, "anna", "viewer")
    change = roles.set_operators(SHELL, "bob", ["anna"])

    assert rights.may_flip(anna, "bob")
    assert not rights.may_flip(anna, "ada")
    assert [agent for agent in ("ada", "bob") if rights.flip_check(anna)(agent)] == ["bob"]
    assert rights.may_change_sessions(anna, "delete", "bob")
    assert not rights.may_change_sessions(anna, "delete", "ada")
    assert not anna.has_perm(rights.FLIP)

    undo.undo(SHELL, change.entry or 0)
    assert not rights.may_flip(anna, "bob")


@pytest.mark.usefixtures("stored")
def test_setting_operators_based_on_an_outdated_list_is_refused(anna) -> None:
    roles.set_operators(SHELL, "bob", ["anna"])

    assert roles.set_operators(SHELL, "bob", ["anna"]).is_nothing
    with pytest.raises(errors.Stale):
        roles.set_operators(SHELL, "bob", [], was=[])
    with pytest.raises(errors.NotFound):
        roles.set_operators(SHELL, "bob", ["anna", "nobody"])
    with pytest.raises(errors.NotFound):
        roles.set_operators(SHELL, "bobby", [])
    assert roles.operators_of("bob") == ("anna",)


@pytest.mark.usefixtures("stored")
def test_undoing_a_change_of_operators_requires_permission_to_change_users(anna, operator) -> None:
    roles.set_operators(SHELL, "bob", ["anna"])
    entry = models.AuditEntry.objects.latest("id")
    roles.assign(SHELL, "anna", "operator")
    assert not rights.may_undo(reloaded(anna), entry)
    roles.assign(SHELL, "anna", "administrator")
    assert rights.may_undo(reloaded(anna), entry)


@pytest.mark.usefixtures("stored")
def test_the_role_command_gives_takes_and_lists_roles(anna) -> None:
    assert run_role_command("give", "anna", "viewer") == "anna is now viewer.\n"
    assert run_role_command("give", "anna", "viewer") == "No changes: anna is already viewer.\n"
    assert run_role_command("operate", "bob", "anna") == "Operators of bob: anna.\n"
    assert "viewer, operator of bob" in run_role_command("list")
    assert run_role_command("operate", "bob", "--none") == "Operators of bob: none.\n"
    assert run_role_command("take", "anna", "viewer") == "anna is no longer viewer.\n"
    assert "anna" in run_role_command("list")
    assert "no role" in run_role_command("list")
    with pytest.raises(
        CommandError, match=r"There is no user named 'ann'\. Did you mean anna\? To create a user"
    ):
        run_role_command("give", "ann", "viewer")


def run_role_command(*arguments: str) -> str:
    out = io.StringIO()
    call_command("role", *arguments, stdout=out)
    return out.getvalue()
