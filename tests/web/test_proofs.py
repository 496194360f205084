"""Tests that previews and confirmations say what their change would have done, to those who may see calls."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.contrib.auth import models as auth
from django.test import Client
from django.urls import get_resolver

from tests import factories
from tests.factories import call as recorded
from tests.web import dashboard, editor_forms
from toolbelt import models
from toolbelt.control.config import belts
from toolbelt.core import tool_versions
from toolbelt.store import audit, snapshots
from toolbelt.web.kit import proved_forms

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt", "calls")]


@pytest.fixture
def calls(belt: None) -> None:
    for tool, days in (("github__issue_read", 3), ("github__issue_read", 20), ("papers", 3)):
        facts = factories.facts(tool)
        recorded(tool, agent="ada", session=f"s{days}", days_ago=days, **facts)


def prove(browser: Client, proof_of: str, **fields: Any) -> Any:
    return dashboard.post(browser, "/proof/", proof_of=proof_of, **fields)


SWITCH = "/agents/ada/switches/issues/"


def test_a_flip_is_proved_without_being_made(call_viewer: Client) -> None:
    before = (belts.revision(), audit.newest_id())

    response = prove(call_viewer, SWITCH, on="false", was="true")

    page = response.context["page"]
    assert page.proof.sentence == (
        "In the last 30 days this would have refused 2 calls of 1 agent in 2 sessions."
    )
    assert [(row.tool, outcome) for row, outcome in page.rows] == [("github__issue_read", "is refused")]
    assert page.proof.reason == "It would have refused 1 call that ran in the last 7 days."
    assert (belts.revision(), audit.newest_id()) == before
    # No notice of it is kept for the next page.
    assert call_viewer.get("/agents/ada/").context["page"].notice is None


@pytest.mark.parametrize(
    ("address", "fields", "refused"),
    [
        ("/agents/ada/overrides/github__issue_read/", {"on": "false", "was": "unset"}, 2),
        ("/bulk/", {"on": "false", "seen": json.dumps({"ada": {"issues": True}})}, 2),
        ("/toolkits/issues/block/", {"on": "true", "was": "false"}, 2),
        ("/tools/github__issue_read/block/", {"on": "true", "was": "false"}, 2),
        ("/plugins/github/switch/", {"control": "blocked", "on": "true", "was": "false"}, 2),
        ("/agents/ada/archive/", {"archived": "yes"}, 2),
    ],
)
def test_every_way_to_change_something_is_proved_by_the_same_address(
    administrator: Client, address: str, fields: dict[str, str], refused: int
) -> None:
    revision = belts.revision()

    page = prove(administrator, address, **fields).context["page"]

    assert page.refusal == ""
    assert page.proof.count("refused") == refused
    assert belts.revision() == revision


def test_an_import_is_proved_as_it_was_checked(administrator: Client) -> None:
    text = json.dumps({"agents": [{"key": "ada"}]})
    checked = administrator.post("/belt/check/", {"text": text}).content.decode()
    fields = {name: re.search(f'name="{name}" value="([^"]+)"', checked)[1] for name in ("revision", "shown")}  # type: ignore[index]
    assert 'hx-post="/proof/"' in checked

    page = prove(administrator, "/belt/import/", text=text, **fields).context["page"]

    assert page.proof.count("refused") >= 2


def test_a_new_gate_rule_is_proved_by_the_form_of_its_confirmation(administrator: Client) -> None:
    asked = editor_forms.submit(
        administrator, "/new/rule/", "/new/rule/save/", key="no", effect="deny", tools="github__*"
    )
    question = asked.context["page"]
    assert 'hx-post="/proof/"' in asked.content.decode()

    page = prove(administrator, question.action, **dict(question.fields)).context["page"]

    assert (page.refusal, page.proof.count("refused")) == ("", 2)


def test_a_budget_is_proved_by_the_form_of_the_settings(administrator: Client) -> None:
    html = administrator.get("/agents/ada/settings/").content.decode()
    fields = editor_forms.form(html, "/agents/ada/settings/change/").dict()
    fields |= {"max_tools": "0", "on_exceed": "defer"}

    page = prove(administrator, "/agents/ada/settings/change/", **fields).context["page"]

    assert page.refusal == ""


def test_a_decision_of_the_review_is_proved(administrator: Client) -> None:
    models.Tool.objects.filter(key="github__issue_read").update(seen=False)
    version = tool_versions.version(snapshots.catalog().tools["github__issue_read"])

    page = prove(administrator, "/review/decide/", decision=f"approve:github__issue_read={version}").context[
        "page"
    ]

    assert (page.refusal, page.proof.count("runs")) == ("", 2)


def test_a_confirmation_asks_for_its_proof_after_it_is_open(call_viewer: Client) -> None:
    response = dashboard.switch(call_viewer, "releases", "true", "unset")
    html = response.content.decode()

    assert 'hx-trigger="load"' in html
    assert 'hx-include="#question"' in html
    assert "this would have" not in html


def test_a_confirmation_of_what_is_no_change_of_calls_asks_for_no_proof(administrator: Client) -> None:
    html = dashboard.post(administrator, "/tools/papers/purge/").content.decode()

    assert 'id="question"' in html
    assert "/proof/" not in html


def test_a_form_that_changes_nothing_has_no_proof(call_viewer: Client) -> None:
    for fields in ({"on": "true", "was": "true"}, {"on": "false", "was": "false"}, {"on": "odd"}):
        page = prove(call_viewer, SWITCH, **fields).context["page"]
        assert page.proof is None
        assert page.refusal


def test_a_proof_needs_the_permission_to_make_the_change_and_to_see_calls(
    viewer: Client, operator: Client, olive: auth.User
) -> None:
    flip = {"on": "false", "was": "true"}
    assert prove(viewer, SWITCH, **flip).status_code == 403
    assert prove(operator, SWITCH, **flip).status_code == 403
    assert 'hx-post="/proof/"' not in operator.get("/agents/ada/effect/issues/").content.decode()
    olive.user_permissions.set(auth.Permission.objects.filter(codename="view_callrecord"))
    assert prove(operator, SWITCH, **flip).status_code == 403
    olive.user_permissions.set(
        auth.Permission.objects.filter(codename__in=["view_callrecord", "change_agent"])
    )
    assert prove(operator, SWITCH, **flip).status_code == 200


@pytest.mark.parametrize(
    "address",
    ["/", "/logout/", "/refresh/", "/account/password/", "/admin/", "https://evil.example/", "/proof/"],
)
def test_no_other_form_is_run_by_a_proof(call_viewer: Client, address: str) -> None:
    assert prove(call_viewer, address, on="false").status_code == 404


def test_every_view_that_is_proved_exists() -> None:
    names = {name for name in get_resolver().namespace_dict["web"][1].reverse_dict if isinstance(name, str)}
    assert names >= proved_forms.PROVED


def test_without_javascript_a_proof_is_a_page(call_viewer: Client) -> None:
    text = dashboard.text(prove(call_viewer, SWITCH, htmx=False, on="false", was="true"))

    assert "<h1>What this would have done</h1>" in text
    assert "refused 2 calls of 1 agent in 2 sessions" in text


def test_the_menu_of_a_switch_proves_each_setting_in_a_few_words(call_viewer: Client) -> None:
    menu = call_viewer.get("/agents/ada/effect/issues/", headers=dashboard.HTMX).content.decode()
    assert menu.count('hx-post="/proof/"') == 2

    brief = dashboard.text(prove(call_viewer, SWITCH, on="false", was="true", brief="yes"))
    assert "30 days: 2 refused" in brief


def test_the_audit_log_says_what_undoing_a_change_would_have_done(
    administrator: Client, call_viewer: Client
) -> None:
    dashboard.post(administrator, SWITCH, on="false", was="true", confirm="yes")
    entry = audit.newest_id()

    html = administrator.get("/audit/").content.decode()
    assert f'form="undo-{entry}"' in html
    page = prove(administrator, f"/audit/{entry}/undo/").context["page"]

    assert (page.proof.count("runs"), page.proof.count("refused")) == (2, 0)
    assert audit.newest_id() == entry


def test_what_would_have_to_be_recorded_is_linked_to_the_page_where_it_is_chosen(
    administrator: Client,
) -> None:
    # The simplest form that brings a rule with a condition.
    text = json.dumps(
        {
            "gate_rules": [
                {
                    "key": "no",
                    "effect": "deny",
                    "tools": ["github__issue_read"],
                    "when": {"title": {"const": "x"}},
                }
            ]
        }
    )
    checked = dashboard.post(administrator, "/belt/check/", text=text).context["page"].checked.assessment
    fields = {"text": text, "revision": str(checked.revision), "shown": checked.digest}

    html = prove(administrator, "/belt/import/", **fields).content.decode()

    assert "/tools/github__issue_read/?record=title#recorded" in html
