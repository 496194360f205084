"""Every action requires the right permission, which exists."""

from __future__ import annotations

import pytest
from django.contrib.auth import models as auth

from toolbelt.control import writing
from toolbelt.control.access import switches
from toolbelt.control.catalog import entries
from toolbelt.control.people import rights
from toolbelt.control.reports import queries
from toolbelt.core import belts


class Holding:
    pk = None

    def __init__(self, *permissions: str) -> None:
        self.permissions = permissions

    def has_perm(self, perm: str) -> bool:
        return perm in self.permissions


@pytest.mark.django_db
def test_there_is_a_permission_for_every_act_on_every_kind() -> None:
    there = {f"toolbelt.{name}" for name in auth.Permission.objects.values_list("codename", flat=True)}
    acts: tuple[rights.Act, ...] = ("view", "add", "change", "delete")
    assert {rights.permission(act, kind) for act in acts for kind in belts.KINDS} <= there


@pytest.mark.usefixtures("stored")
def test_undoing_asks_for_the_right_to_do_the_reverse(operator: writing.Write) -> None:
    flipped = switches.flip(operator, "bob", "reading", False)
    created = entries.put(operator, "agent", {"key": "eve"})
    edited = entries.change(operator, "toolkit", "reading", {"title": "Reading"})
    removed = entries.remove(operator, "agent", "eve")

    written = [queries.change(one.entry or 0) for one in (flipped, created, edited, removed)]

    assert [rights.permissions_to_undo(entry) for entry in written if entry is not None] == [
        ["toolbelt.change_agent"],
        ["toolbelt.delete_agent"],
        ["toolbelt.change_toolkit"],
        ["toolbelt.add_agent"],
    ]


def test_what_the_screens_show_everyone_may_read() -> None:
    assert [kind for kind in belts.KINDS if rights.may_read(Holding(), kind)] == [
        "tool",
        "toolkit",
        "loadout",
        "agent",
        "sub_app",
    ]


def test_whoever_may_change_a_thing_may_look_at_it() -> None:
    assert rights.may_read(Holding("toolbelt.change_plugin"), "plugin")
    assert not rights.may_read(Holding("toolbelt.change_plugin"), "category")


def test_an_import_asks_for_what_its_sections_hold() -> None:
    belt = {"agents": [{"key": "ada"}], "sub_apps": [{"key": "chat"}], "tools": []}
    assert rights.permissions_to_import(belt) == [
        "toolbelt.add_agent",
        "toolbelt.change_agent",
        "toolbelt.add_subapp",
        "toolbelt.change_subapp",
    ]
