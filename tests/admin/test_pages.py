"""Tests that every page of the admin opens for those who may see it, with few queries for any number of rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import models as auth
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.admin import browsing, conftest
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.config import belts

EDITABLE = (
    models.Category,
    models.Plugin,
    models.Tool,
    models.Toolkit,
    models.Loadout,
    models.SubApp,
    models.Agent,
)
READ_ONLY = (models.AgentSession, models.AuditEntry, models.CallRecord)
MAX_QUERIES = 15


def addresses() -> Iterator[str]:
    """Yield the address of every page: the lists, and the forms of the first and the last row."""
    yield reverse("admin:index")
    yield reverse("admin:app_list", args=["toolbelt"])
    for model in (*EDITABLE, *READ_ONLY):
        yield conftest.address(model, "changelist")
        for row in {model._default_manager.first(), model._default_manager.last()} - {None}:
            yield conftest.address(row)
    for model in EDITABLE:
        yield conftest.address(model)


def count_queries(client: Client, address: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        response = client.get(address)
        assert response.status_code == 200, address
    return len(captured)


def store_many_rows() -> None:
    """Store many more rows of every kind."""
    keys = [f"more_{number}" for number in range(60)]
    document = {
        "plugins": [{"name": f"plugin_{number}"} for number in range(20)],
        "tools": [{"key": key, "plugin": "plugin_1", "approved": "x"} for key in keys],
        "toolkits": [{"key": f"kit_{number}", "members": keys[:40]} for number in range(20)],
        "agents": [
            {
                "key": f"zoe_{number}",
                "tools": keys[:30],
                "tools_config": {**dict.fromkeys(keys, True), "kit_1": False, "kit_2": True},
                "allowed_toolkits": [f"kit_{kit}" for kit in range(20)],
            }
            for number in range(8)
        ],
        "sub_apps": [{"key": "hall", "tool_names": keys, "agents": [f"zoe_{number}" for number in range(8)]}],
    }
    belts.import_(writing.by("setup", via="import"), document)
    zoe = models.Agent.objects.get(key="zoe_1")
    for number in range(30):
        models.AgentSession.objects.create(agent=zoe, key=f"chat {number}")
        record_call("zoe_1", f"more_{number}")


def record_call(agent: str, tool: str) -> models.CallRecord:
    return models.CallRecord.objects.create(agent=agent, tool=tool, outcome="ok", duration_ms=7)


def test_every_page_takes_few_queries_regardless_of_the_number_of_rows(stored, client):
    models.AgentSession.objects.create(agent=conftest.agent("ada"), key="chat")
    record_call("ada", "clock")
    few = {address: count_queries(client, address) for address in addresses()}
    store_many_rows()
    many = {address: count_queries(client, address) for address in addresses()}
    for address, number in many.items():
        assert number <= MAX_QUERIES, address
        assert number <= few.get(address, number), address


def test_saving_a_long_form_takes_few_queries(stored, client):
    store_many_rows()
    page = browsing.open_(client, conftest.address(models.Agent.objects.get(key="zoe_1")))
    with CaptureQueriesContext(connection) as captured:
        assert page.send().was_saved
    assert len(captured) <= 40


def test_no_page_lists_all_tools_as_choices(stored, client):
    store_many_rows()
    for subject in (conftest.toolkit("dev"), conftest.agent("ada"), models.Toolkit, models.Agent):
        page = browsing.open_(client, conftest.address(subject))
        assert "more_33" not in page.html


def test_tools_toolkits_and_agents_are_chosen_by_searching(stored, client):
    for model, field, term, expected in (
        ("member", "tool", "commit", ["git__commit"]),
        ("toolkitswitch", "toolkit", "sal", ["sales"]),
        ("subappagent", "agent", "bo", ["bob"]),
    ):
        query = {"app_label": "toolbelt", "model_name": model, "field_name": field, "term": term}
        answer = client.get(reverse("admin:autocomplete"), query).json()
        assert [result["text"] for result in answer["results"]] == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"q": "status"}, {"git__status"}),
        ({"risk": "read-only"}, {"git__status", "crm__find", "crm__note", "clock"}),
        ({"risk": "writes"}, {"git__commit"}),
        ({"risk": "destructive"}, {"git__wipe"}),
        ({"held": "yes"}, {"crm__find"}),
        ({"held": "no", "category": "git"}, {"git__wipe"}),
    ],
)
def test_tools_can_be_searched_and_filtered(stored, client, query, expected):
    models.Tool.objects.filter(key="crm__find").update(approved="x")
    models.Tool.objects.filter(key="git__wipe").update(category="git")
    rows = client.get(conftest.address(models.Tool, "changelist"), query).context["cl"].result_list
    assert {row.key for row in rows} == expected


def test_pages_have_no_inline_scripts_or_styles(stored, client):
    pages = [client.get(address) for address in addresses()]
    pages.append(browsing.open_(client, conftest.address(models.Agent)).type(key="a b").send().response)
    for page in pages:
        assert not re.search(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)[^>]*>", page.text)
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=", page.text)
        assert "'self'" in page.headers["Content-Security-Policy"]


def test_forms_for_new_rows_have_no_computed_fields(stored, client):
    for model in EDITABLE:
        page = browsing.open_(client, conftest.address(model))
        assert "form-row field-position" not in page.html
        assert "field-tokens" not in page.html


def test_the_admins_header_names_toolbelt(stored, client):
    assert "Toolbelt" in client.get(reverse("admin:index")).context["site_header"]


def staff(*permissions: str) -> Client:
    user = auth.User.objects.create_user("sam", is_staff=True)
    user.user_permissions.set(auth.Permission.objects.filter(codename__in=permissions))
    browser = Client()
    browser.force_login(user)
    return browser


def test_staff_without_permissions_are_refused_every_page(stored):
    browser = staff()
    for address in addresses():
        if address != reverse("admin:index"):
            assert browser.get(address).status_code in (403, 404), address
    assert browser.post(conftest.address(conftest.agent("ada")), {"title": "X"}).status_code == 403
    action = {"action": "retire", "_selected_action": [conftest.tool("clock").pk]}
    assert browser.post(conftest.address(models.Tool, "changelist"), action).status_code == 403


def test_anonymous_visitors_are_redirected_to_the_login(stored):
    response = Client().get(conftest.address(models.Agent))
    assert response.status_code == 302
    assert "login/?next=" in response.headers["Location"]


def test_staff_with_view_permissions_cannot_change_an_agent(stored):
    browser = staff("view_agent", "view_tool", "view_toolkitswitch")
    page = browsing.open_(browser, conftest.address(conftest.agent("ada")))
    assert page.status == 200
    assert "reason" not in page.fields
    assert not {"title", "switches-0-toolkit", "switches-0-on"} & page.fields.keys()
    assert page.client.post(page.address, page.fields).status_code == 403


def test_staff_who_may_change_an_agent_may_change_its_switches(stored):
    browser = staff("change_agent")
    page = browsing.open_(browser, conftest.address(conftest.agent("ada")))
    page.fields |= {
        "switches-TOTAL_FORMS": ["2"],
        "switches-1-toolkit": [str(conftest.toolkit("sales").pk)],
        "switches-1-on": ["False"],
    }
    assert page.type(title="Ada L.").send().was_saved
    assert conftest.agent("ada").title == "Ada L."
    assert models.ToolkitSwitch.objects.filter(agent__key="ada", toolkit__key="sales", on=False).exists()


def test_permissions_for_switches_alone_do_not_allow_changing_them(stored):
    browser = staff("view_agent", "view_toolkitswitch", "add_toolkitswitch", "change_toolkitswitch")
    page = browsing.open_(browser, conftest.address(conftest.agent("ada")))
    assert "switches-0-on" not in page.fields
    assert page.client.post(page.address, page.fields).status_code == 403


def test_the_admin_shows_the_name_of_the_environment_as_text(admin_client: Client, settings: Any) -> None:
    settings.TOOLBELT_ENVIRONMENT_NAME, settings.TOOLBELT_ENVIRONMENT_COLOR = "<b>EU</b>", "red"
    html = admin_client.get(reverse("admin:index")).content.decode()
    assert '<span class="environment" data-color="red">' in html
    assert "</span> &lt;b&gt;EU&lt;/b&gt;</span>" in html
    assert "admin/css/toolbelt.css" in html
