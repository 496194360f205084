"""Tests of the audit log, sessions, calls and tokens in the admin: reading, searching, undoing and evicting."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin import helpers
from django.test import Client
from django.utils import timezone

from tests.admin import conftest
from tests.admin.test_pages import staff
from tests.admin.test_removing import messages
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.access import switches
from toolbelt.control.people import tokens
from toolbelt.core.request_key import RequestKey
from toolbelt.runtime import credentials, surfaces
from toolbelt.runtime.calls import own_tools

PAUL = writing.by("paul", via="screen")


def log(client: Client, **query: Any) -> list[models.AuditEntry]:
    response = client.get(conftest.address(models.AuditEntry, "changelist"), query)
    assert response.status_code == 200
    return list(response.context["cl"].result_list)


def undo(client: Client, *entries: models.AuditEntry) -> Any:
    return client.post(
        conftest.address(models.AuditEntry, "changelist"),
        {"action": "undo", helpers.ACTION_CHECKBOX_NAME: [entry.pk for entry in entries]},
        follow=True,
    )


def test_the_history_of_a_row_shows_its_audit_entries(stored, client):
    switches.flip(PAUL, "ada", "dev", False)
    switches.flip(PAUL, "bob", "dev", True)
    page = client.get(conftest.address(conftest.agent("ada"), "history"), follow=True)
    rows = page.context["cl"].result_list
    assert {row.subject_key for row in rows} == {"ada"}
    assert (rows[0].action, rows[0].key) == ("switch.set", "dev")


def test_staff_without_access_to_the_audit_log_see_the_admins_own_history(stored):
    page = staff("view_agent").get(conftest.address(conftest.agent("ada"), "history"))
    assert page.status_code == 200


@pytest.mark.parametrize(
    "query",
    [{"via": "screen"}, {"q": "paul"}, {"action": "switch.set"}, {"q": "dev", "via__exact": "screen"}],
)
def test_the_audit_log_can_be_searched_and_filtered(stored, client, query):
    switches.flip(PAUL, "ada", "dev", False)
    [entry] = log(client, **query)
    assert (entry.actor, entry.key) == ("paul", "dev")


def test_the_audit_log_is_read_only(stored, client):
    [entry] = conftest.last_entries()
    assert client.post(conftest.address(entry), {"actor": "nobody"}).status_code == 403
    assert client.post(conftest.address(entry, "delete"), {"post": "yes"}).status_code == 403
    assert client.get(conftest.address(models.AuditEntry)).status_code == 403


def test_changes_are_undone_together_from_the_newest(stored, client):
    before = surfaces.ask("ada").fingerprint
    switches.flip(PAUL, "ada", "dev", False)
    switches.flip(PAUL, "ada", "dev", None)
    page = undo(client, *conftest.last_entries(2))
    assert messages(page) == ["2 undone."]
    assert surfaces.ask("ada").fingerprint == before
    assert [entry.actor for entry in conftest.last_entries(2)] == ["olga", "olga"]
    assert all(entry.undoes_id for entry in conftest.last_entries(2))


def test_undoing_a_value_that_changed_since_is_refused(stored, client):
    switches.flip(PAUL, "ada", "dev", False)
    [entry] = conftest.last_entries()
    switches.flip(PAUL, "ada", "dev", None)
    assert "was changed by another operator" in messages(undo(client, entry))[0]
    assert not models.ToolkitSwitch.objects.filter(agent__key="ada").exists()


def test_undoing_requires_permission_to_change_the_subject(stored, client):
    switches.flip(PAUL, "ada", "dev", False)
    [entry] = conftest.last_entries()
    assert undo(staff("view_auditentry", "change_tool", "add_agent"), entry).status_code == 403
    assert undo(client, entry).status_code == 200
    assert models.ToolkitSwitch.objects.get(agent__key="ada").on


@pytest.mark.parametrize("query", [{"outcome": "timed-out"}, {"agent": "ada"}, {"q": "clock"}])
def test_calls_can_be_searched_and_filtered(stored, client, query):
    late = models.CallRecord.objects.create(agent="ada", tool="clock", outcome="timed-out", duration_ms=9)
    models.CallRecord.objects.create(agent="bob", tool="crm__find", outcome="ok", duration_ms=9)
    page = client.get(conftest.address(models.CallRecord, "changelist"), query)
    assert list(page.context["cl"].result_list) == [late]


def test_calls_are_read_only(stored, client):
    call = models.CallRecord.objects.create(agent="ada", tool="clock", outcome="ok", duration_ms=9)
    assert "clock" in client.get(conftest.address(call)).text
    assert client.post(conftest.address(call), {"agent": "bob"}).status_code == 403
    assert client.post(conftest.address(call, "delete"), {"post": "yes"}).status_code == 403
    assert client.get(conftest.address(models.CallRecord)).status_code == 403
    assert models.CallRecord.objects.get().agent == "ada"


def test_plugin_state_is_not_shown() -> None:
    assert not admin.site.is_registered(models.PluginState)


def test_a_session_can_be_viewed_and_evicted(stored, client):
    own_tools.call(RequestKey("ada", "chat"), "load_tools", {"toolkit": "sales"})
    chat = models.AgentSession.objects.get()
    assert "sales" in client.get(conftest.address(chat)).text
    assert client.post(conftest.address(chat), {"key": "x"}).status_code == 403
    client.post(conftest.address(chat, "delete"), {"post": "yes"})
    assert not models.AgentSession.objects.exists()


def test_evicting_sessions_from_the_list_is_audited(stored, client):
    for session in ("one", "two"):
        own_tools.call(RequestKey("ada", session), "load_tools", {"toolkit": "sales"})
    chats = [row.pk for row in models.AgentSession.objects.all()]
    sent = {"action": "delete_selected", helpers.ACTION_CHECKBOX_NAME: chats, "post": "yes"}
    client.post(conftest.address(models.AgentSession, "changelist"), sent)
    assert not models.AgentSession.objects.exists()
    assert [(entry.action, entry.actor, entry.via) for entry in conftest.last_entries(2)] == [
        ("session.evict", "olga", "admin")
    ] * 2


def test_tokens_can_only_be_viewed_and_revoked(stored, client):
    issued = [tokens.issue(PAUL, agent="ada", name=name) for name in ("one", "two")]
    row = models.ApiToken.objects.get(name="one")
    page = client.get(conftest.address(row)).text
    assert row.prefix in page
    assert row.digest not in page
    assert client.get(conftest.address(models.ApiToken)).status_code == 403
    assert client.post(conftest.address(row), {"name": "x"}).status_code == 403
    assert client.post(conftest.address(row, "delete"), {"post": "yes"}).status_code == 403
    listing = conftest.address(models.ApiToken, "changelist")
    sent = {"action": "revoke", helpers.ACTION_CHECKBOX_NAME: [row.pk]}
    staff("view_apitoken").post(listing, sent)
    assert credentials.recognize(issued[0].text) is not None
    assert messages(client.post(listing, sent, follow=True)) == ["1 revoked."]
    assert [credentials.recognize(token.text) is None for token in issued] == [True, False]
    [entry] = conftest.last_entries()
    assert (entry.action, entry.actor, entry.via) == ("token.revoke", "olga", "admin")


def test_an_agent_with_tokens_can_be_deleted(stored, client):
    text = tokens.issue(PAUL, agent="cyd").text
    client.post(conftest.address(conftest.agent("cyd"), "delete"), {"post": "yes"})
    assert not models.Agent.objects.filter(key="cyd").exists()
    assert credentials.recognize(text) is None


def test_an_admitted_call_reads_as_unreported_after_its_deadline(stored: None, client: Client) -> None:
    now = timezone.now()
    times = {"overdue": now - dt.timedelta(seconds=1), "running": now + dt.timedelta(minutes=1)}
    calls = {
        tool: models.CallRecord.objects.create(
            agent="ada", tool=tool, outcome="admitted", report_by=report_by, duration_ms=0
        )
        for tool, report_by in times.items()
    }
    address = conftest.address(models.CallRecord, "changelist")

    def listed(outcome: str = "") -> dict[str, str]:
        page = client.get(address, {"outcome": outcome} if outcome else {})
        return {call.tool: call.outcome_now for call in page.context["cl"].result_list}

    assert listed() == {"overdue": "unreported", "running": "admitted"}
    assert listed("unreported") == {"overdue": "unreported"}
    assert listed("admitted") == {"running": "admitted"}
    assert '<td class="field-current_outcome">unreported</td>' in client.get(address).text
    shown = client.get(conftest.address(calls["overdue"])).text
    assert '<div class="readonly">unreported</div>' in shown
    assert '<div class="readonly">admitted</div>' not in shown
