"""Each role may do exactly what its description says."""

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


def fresh(user: auth.User) -> auth.User:
    """Return the user without what was remembered of their permissions."""
    return auth.User.objects.get(pk=user.pk)


def test_the_roles_are_there_once_the_database_was_migrated() -> None:
    assert set(auth.Group.objects.values_list("name", flat=True)) >= set(roles.ROLES)


def test_what_an_installation_made_of_a_role_stays_so() -> None:
    group = auth.Group.objects.get(name="operator")
    group.permissions.clear()
    auth.Group.objects.get(name="viewer").delete()

    assert roles.create_groups() == ("viewer",)
    assert not group.permissions.exists()


def test_each_role_may_what_the_one_before_it_may() -> None:
    viewer, operator, administrator = map(roles.permissions, roles.ROLES)
    assert viewer < operator < administrator
    assert not [name for name in viewer if not name.startswith("toolbelt.view_")]
    assert rights.FLIP in operator
    assert rights.permission("add", "agent") not in operator
    assert not [name for name in operator if "token" in name or name.startswith("auth.")]


def test_a_role_is_given_and_taken_and_both_are_kept_in_the_log(anna) -> None:
    assert roles.assign(SHELL.replace(reason="On call"), "anna", "operator")
    assert not roles.assign(SHELL, "anna", "operator")
    assert fresh(anna).has_perm(rights.FLIP)
    entry = models.AuditEntry.objects.latest("id")
    assert (entry.action, entry.subject_key, entry.before, entry.after) == (
        "user.roles",
        "anna",
        [],
        ["operator"],
    )
    assert entry.reason == "On call"

    assert roles.remove(SHELL, "anna", "operator")
    assert not fresh(anna).has_perm(rights.FLIP)
    with pytest.raises(errors.Refused, match=r"manage\.py role"):
        undo.undo(SHELL, entry.pk)


def test_an_administrator_may_come_into_the_admin_for_as_long(anna) -> None:
    roles.assign(SHELL, "anna", "administrator")
    assert fresh(anna).is_staff
    assert fresh(anna).has_perm("auth.change_user")
    with pytest.raises(errors.Refused, match="needs an administrator"):
        roles.remove(SHELL, "anna", "administrator")
    assert fresh(anna).is_staff
    auth.User.objects.create_superuser("root")
    roles.remove(SHELL, "anna", "administrator")
    assert not fresh(anna).is_staff


def test_somebody_who_is_not_there_has_no_role() -> None:
    auth.User.objects.create_user("anna")
    with pytest.raises(errors.NotFound, match="Did you mean anna"):
        roles.assign(SHELL, "ana", "viewer")


@pytest.mark.usefixtures("stored")
def test_an_operator_of_one_agent_flips_that_one_alone(anna) -> None:
    roles.assign(SHELL, "anna", "viewer")
    done = roles.set_operators(SHELL, "bob", ["anna"])

    assert rights.may_flip(anna, "bob")
    assert not rights.may_flip(anna, "ada")
    assert [agent for agent in ("ada", "bob") if rights.flip_check(anna)(agent)] == ["bob"]
    assert rights.may_change_sessions(anna, "delete", "bob")
    assert not rights.may_change_sessions(anna, "delete", "ada")
    assert not anna.has_perm(rights.FLIP)

    undo.undo(SHELL, done.entry or 0)
    assert not rights.may_flip(anna, "bob")


@pytest.mark.usefixtures("stored")
def test_naming_operators_compares_with_what_was_seen(anna) -> None:
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
def test_only_who_may_change_users_takes_back_who_operates_what(anna, operator) -> None:
    roles.set_operators(SHELL, "bob", ["anna"])
    entry = models.AuditEntry.objects.latest("id")
    roles.assign(SHELL, "anna", "operator")
    assert not rights.may_undo(fresh(anna), entry)
    roles.assign(SHELL, "anna", "administrator")
    assert rights.may_undo(fresh(anna), entry)


@pytest.mark.usefixtures("stored")
def test_the_command_gives_takes_names_and_lists(anna) -> None:
    assert said("give", "anna", "viewer") == "anna is now viewer.\n"
    assert said("give", "anna", "viewer") == "No changes: anna is already viewer.\n"
    assert said("operate", "bob", "anna") == "Operators of bob: anna.\n"
    assert "viewer, operator of bob" in said("list")
    assert said("operate", "bob") == "Operators of bob: none.\n"
    assert said("take", "anna", "viewer") == "anna is no longer viewer.\n"
    assert "anna" in said("list")
    assert "no role" in said("list")
    with pytest.raises(CommandError, match=r"There is no user named 'ann'\. Did you mean anna"):
        said("give", "ann", "viewer")


def said(*arguments: str) -> str:
    out = io.StringIO()
    call_command("role", *arguments, stdout=out)
    return out.getvalue()
