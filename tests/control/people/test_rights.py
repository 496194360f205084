"""Tests that every action requires the right permission."""

from __future__ import annotations

import pytest
from django.contrib.auth import models as auth

from toolbelt.control import writing
from toolbelt.control.access import switches
from toolbelt.control.catalog import entries
from toolbelt.control.people import rights
from toolbelt.control.reports import queries
from toolbelt.core import belts


class UserWithPermissions:
    pk = None

    def __init__(self, *permissions: str) -> None:
        self.permissions = permissions

    def has_perm(self, perm: str) -> bool:
        return perm in self.permissions

    def get_username(self) -> str:
        return "user"


@pytest.mark.django_db
def test_every_action_on_every_kind_has_a_permission() -> None:
    existing = {f"toolbelt.{name}" for name in auth.Permission.objects.values_list("codename", flat=True)}
    actions: tuple[rights.Act, ...] = ("view", "add", "change", "delete")
    assert {rights.permission(action, kind) for action in actions for kind in belts.KINDS} <= existing


@pytest.mark.usefixtures("stored")
def test_undoing_requires_the_permission_for_the_reverse_change(operator: writing.Write) -> None:
    flipped = switches.flip(operator, "bob", "reading", False)
    created = entries.put(operator, "agent", {"key": "eve"})
    edited = entries.change(operator, "toolkit", "reading", {"title": "Reading"})
    removed = entries.remove(operator, "agent", "eve")

    entries_to_undo = [queries.change(change.entry or 0) for change in (flipped, created, edited, removed)]

    assert [rights.permissions_to_undo(entry) for entry in entries_to_undo if entry is not None] == [
        ["toolbelt.change_agent"],
        ["toolbelt.delete_agent"],
        ["toolbelt.change_toolkit"],
        ["toolbelt.add_agent"],
    ]


def test_everyone_may_read_the_kinds_that_screens_show() -> None:
    assert [kind for kind in belts.KINDS if rights.may_read(UserWithPermissions(), kind)] == [
        "tool",
        "toolkit",
        "loadout",
        "agent",
        "sub_app",
        "gate_rule",
    ]


def test_a_user_who_may_change_a_kind_may_read_it() -> None:
    assert rights.may_read(UserWithPermissions("toolbelt.change_plugin"), "plugin")
    assert not rights.may_read(UserWithPermissions("toolbelt.change_plugin"), "category")


def test_an_import_requires_the_permissions_of_its_sections() -> None:
    belt = {"agents": [{"key": "ada"}], "sub_apps": [{"key": "chat"}], "tools": []}
    assert rights.permissions_to_import(belt) == [
        "toolbelt.add_agent",
        "toolbelt.change_agent",
        "toolbelt.add_subapp",
        "toolbelt.change_subapp",
    ]


@pytest.mark.django_db
def test_approving_versions_in_advance_requires_the_permission_for_tools(operator: writing.Write) -> None:
    assert rights.permissions_to_set("plugin", ["preapproved"]) == ["toolbelt.change_tool"]
    assert rights.permissions_to_set("plugin", ["title"]) == []
    belt = {"plugins": [{"name": "shop", "preapproved": {"shop__a": "2:sha256:0"}}]}
    assert "toolbelt.change_tool" in rights.permissions_to_import(belt)
    entries.put(operator, "plugin", {"name": "shop"})
    change = entries.change(operator, "plugin", "shop", {"preapproved": {"shop__a": "2:sha256:0"}})
    entry = queries.change(change.entry or 0)
    assert entry is not None
    assert rights.permissions_to_undo(entry) == ["toolbelt.change_plugin", "toolbelt.change_tool"]
