"""Tests that an operator can change several rows from a list in one batch, all of them or none."""

from __future__ import annotations

from typing import Any

from django.contrib.admin import helpers
from django.test import Client

from tests.admin import conftest
from tests.admin.test_removing import messages
from tests.plugins.upstream import listing
from tests.web import servers
from toolbelt import models
from toolbelt.core import catalog, tool_versions
from toolbelt.runtime import surfaces


def run_action(client: Client, action: str, *rows: Any) -> Any:
    return client.post(
        conftest.address(type(rows[0]), "changelist"),
        {"action": action, helpers.ACTION_CHECKBOX_NAME: [row.pk for row in rows]},
        follow=True,
    )


def active() -> set[str]:
    return set(surfaces.ask("ada").resolution.active)


def test_tools_can_be_retired_and_restored(stored, client):
    models.Tool.objects.filter(key="git__status").update(plugin=None)
    tools = conftest.tool("git__status"), conftest.tool("clock")
    assert messages(run_action(client, "retire", *tools)) == ["2 changed."]
    assert active() == {"git__commit", "crm__find"}
    entries = conftest.last_entries(2)
    assert {(entry.action, entry.via) for entry in entries} == {("tool.retire", "admin")}
    assert len({entry.batch for entry in entries}) == 1
    run_action(client, "unretire", *tools)
    assert {"git__status", "clock"} <= active()


def test_a_tool_of_a_plugin_is_not_retired_by_hand(stored, client):
    [message] = messages(run_action(client, "retire", conftest.tool("clock"), conftest.tool("git__status")))
    assert "Block a tool, or turn a plugin off, instead." in message
    assert "git__status" in active()


def test_unchanged_rows_are_counted_and_not_recorded(stored, client):
    run_action(client, "block", conftest.tool("clock"))
    page = run_action(client, "block", conftest.tool("clock"), conftest.tool("git__wipe"))
    assert messages(page) == ["1 changed. 1 already up to date."]
    assert models.AuditEntry.objects.filter(actor="olga").count() == 2


def test_tools_plugins_and_toolkits_can_be_blocked_and_unblocked(stored, client):
    run_action(client, "block", conftest.tool("git__status"))
    assert "git__status" not in active()
    run_action(client, "block", models.Plugin.objects.get(name="crm"))
    assert "crm__find" not in active()
    run_action(client, "block", conftest.toolkit("dev"))
    assert active() == {"clock"}
    run_action(client, "unblock", conftest.toolkit("dev"))
    assert active() == {"clock", "git__commit"}


def test_toolkits_can_be_reordered(stored, client):
    def keys() -> list[str]:
        return list(models.Toolkit.objects.values_list("key", flat=True))

    assert messages(run_action(client, "move_to_top", conftest.toolkit("time"))) == ["Order changed."]
    assert keys() == ["time", "dev", "sales"]
    run_action(client, "move_up", conftest.toolkit("sales"))
    assert keys() == ["time", "sales", "dev"]
    run_action(client, "move_to_bottom", conftest.toolkit("time"))
    assert keys() == ["sales", "dev", "time"]
    assert messages(run_action(client, "move_to_bottom", conftest.toolkit("time"))) == [
        "No changes: the order is already as requested."
    ]
    assert {entry.action for entry in conftest.last_entries(3)} == {"toolkit.order"}


def test_plugins_can_be_disabled_and_activated(stored, client):
    git = models.Plugin.objects.get(name="git")
    run_action(client, "disable", git)
    assert active() == {"clock", "crm__find"}
    run_action(client, "activate", git)
    assert "git__status" in active()


def test_a_new_tool_is_available_once_it_is_marked_as_seen(stored, client):
    models.Tool.objects.filter(key="clock").update(seen=False)
    assert "clock" not in active()
    run_action(client, "mark_seen", conftest.tool("clock"))
    assert "clock" in active()


def test_approving_a_tool_pins_its_current_version(stored, client):
    run_action(client, "approve", conftest.tool("clock"))
    clock = conftest.tool("clock")
    assert clock.approved == tool_versions.version(catalog.Tool(key="clock", description="Tells the time."))
    assert "clock" in active()
    models.Tool.objects.filter(key="clock").update(description="Tells lies.")
    assert "clock" not in active()
    assert "changed since approval" in client.get(conftest.address(models.Tool, "changelist")).text
    run_action(client, "approve", conftest.tool("clock"))
    assert "clock" in active()


def test_a_tool_with_findings_cannot_be_approved_from_the_list(stored, client):
    servers.add()
    servers.answer(listing.tool("purge", "Delete rows.", {"limit": {"maximum": 10}}))
    servers.approve()
    servers.answer(listing.tool("purge", "Delete rows.", {"limit": {}}))

    page = run_action(client, "approve", conftest.tool("files__purge"), conftest.tool("clock"))

    (message,) = messages(page)
    assert "files__purge: “limit” may now be more than 10 (maximum removed)" in message
    assert message.endswith("approve it in Review.")
    assert not conftest.tool("clock").approved
