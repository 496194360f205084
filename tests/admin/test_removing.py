"""Tests that an operator can remove rows that are not in use, with an audit entry."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin import helpers
from django.test import Client

from tests.admin import conftest
from toolbelt import models
from toolbelt.control import undo, writing

ME = writing.by("olga", via="admin")


def messages(response: Any) -> list[str]:
    """Return the messages that the page shows after the redirect."""
    return [str(message) for message in response.context["messages"]]


def delete(client: Client, row: Any) -> Any:
    return client.post(conftest.address(row, "delete"), {"post": "yes"}, follow=True)


def delete_all(client: Client, *rows: Any) -> Any:
    return client.post(
        conftest.address(type(rows[0]), "changelist"),
        {"action": "delete_selected", helpers.ACTION_CHECKBOX_NAME: [row.pk for row in rows], "post": "yes"},
        follow=True,
    )


def test_removing_an_agent_removes_its_switches_and_can_be_undone(stored, client):
    delete(client, conftest.agent("ada"))
    assert not models.Agent.objects.filter(key="ada").exists()
    [entry] = conftest.last_entries()
    assert (entry.actor, entry.via, entry.action) == ("olga", "admin", "agent.remove")
    undo.undo(ME, entry.pk)
    assert conftest.agent("ada").switches.count() == 1


@pytest.mark.parametrize(
    ("row", "user"),
    [
        (lambda: conftest.toolkit("sales"), "ada"),
        (lambda: models.Category.objects.get(name="crm"), "crm"),
        (lambda: conftest.agent("bob"), "desk"),
    ],
)
def test_a_row_in_use_cannot_be_removed_and_the_message_names_its_user(stored, client, row, user):
    page = delete(client, row())
    assert row()
    [message] = messages(page)
    assert "is used by" in message
    assert user in message
    assert not models.AuditEntry.objects.filter(actor="olga").exists()


def test_a_loadout_in_use_cannot_be_removed(open_form, client):
    assert open_form(conftest.agent("bob")).type(loadout="house").send().was_saved
    assert "the agent bob" in messages(delete(client, models.Loadout.objects.get(name="house")))[-1]


def test_several_agents_are_removed_in_one_batch(stored, client):
    page = delete_all(client, conftest.agent("ada"), conftest.agent("cyd"))
    assert messages(page) == ["Successfully deleted 2 agents."]
    entries = conftest.last_entries(2)
    assert {entry.action for entry in entries} == {"agent.remove"}
    assert len({entry.batch for entry in entries}) == 1


def test_nothing_is_removed_if_one_of_the_rows_is_in_use(stored, client):
    page = delete_all(client, conftest.agent("ada"), conftest.agent("bob"))
    assert "bob is used by" in messages(page)[0]
    assert models.Agent.objects.count() == 3


def test_tools_and_plugins_cannot_be_deleted(stored, client):
    for row in (conftest.tool("clock"), models.Plugin.objects.get(name="git")):
        assert client.post(conftest.address(row, "delete"), {"post": "yes"}).status_code == 403
        page = client.get(conftest.address(type(row), "changelist"))
        assert "delete_selected" not in page.content.decode()
