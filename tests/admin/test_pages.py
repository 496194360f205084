"""Every page of the admin opens, at a price that does not follow the number of rows, to those who may see it."""

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

EDITED = (
    models.Category,
    models.Plugin,
    models.Tool,
    models.Toolkit,
    models.Loadout,
    models.SubApp,
    models.Agent,
)
READ = (models.AgentSession, models.AuditEntry, models.CallRecord)
MAX_QUERIES = 15


def addresses() -> Iterator[str]:
    """Return the address of every page: the lists, and the forms of the first and the last row."""
    yield reverse("admin:index")
    yield reverse("admin:app_list", args=["toolbelt"])
    for model in (*EDITED, *READ):
        yield conftest.address(model, "changelist")
        for row in {model._default_manager.first(), model._default_manager.last()} - {None}:
            yield conftest.address(row)
    for model in EDITED:
        yield conftest.address(model)


def queries(client: Client, address: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        response = client.get(address)
        assert response.status_code == 200, address
    return len(captured)


def many_more() -> None:
    """Store many times as much of everything."""
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
        "sub_apps": [{"key": "hall", "tool_names": keys, "agents": [f"zoe_{one}" for one in range(8)]}],
    }
    belts.import_(writing.by("setup", via="import"), document)
    zoe = models.Agent.objects.get(key="zoe_1")
    for number in range(30):
        models.AgentSession.objects.create(agent=zoe, key=f"chat {number}")
        called("zoe_1", f"more_{number}")


def called(agent: str, tool: str) -> models.CallRecord:
    return models.CallRecord.objects.create(agent=agent, tool=tool, outcome="ok", duration_ms=7)


def test_every_page_opens_with_few_queries_however_much_is_stored(stored, client):
    models.AgentSession.objects.create(agent=conftest.agent("ada"), key="chat")
    called("ada", "clock")
    few = {address: queries(client, address) for address in addresses()}
    many_more()
    many = {address: queries(client, address) for address in addresses()}
    for address, number in many.items():
        assert number <= MAX_QUERIES, address
        assert number <= few.get(address, number), address


def test_sending_a_long_form_looks_its_lines_up_all_at_once(stored, client):
    many_more()
    page = browsing.open_(client, conftest.address(models.Agent.objects.get(key="zoe_1")))
    with CaptureQueriesContext(connection) as captured:
        assert page.send().was_saved
    assert len(captured) <= 40


def test_no_page_offers_all_tools_to_choose_from(stored, client):
    many_more()
    for subject in (conftest.toolkit("dev"), conftest.agent("ada"), models.Toolkit, models.Agent):
        page = browsing.open_(client, conftest.address(subject))
        assert "more_33" not in page.html


def test_tools_and_toolkits_are_searched_for(stored, client):
    for model, field, term, found in (
        ("member", "tool", "commit", ["git__commit"]),
        ("toolkitswitch", "toolkit", "sal", ["sales"]),
        ("subappagent", "agent", "bo", ["bob"]),
    ):
        asked = {"app_label": "toolbelt", "model_name": model, "field_name": field, "term": term}
        answer = client.get(reverse("admin:autocomplete"), asked).json()
        assert [one["text"] for one in answer["results"]] == found


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ({"q": "status"}, {"git__status"}),
        ({"risk": "read-only"}, {"git__status", "crm__find", "crm__note", "clock"}),
        ({"risk": "writes"}, {"git__commit"}),
        ({"risk": "destructive"}, {"git__wipe"}),
        ({"held": "yes"}, {"crm__find"}),
        ({"held": "no", "category": "git"}, {"git__wipe"}),
    ],
)
def test_tools_are_narrowed_down(stored, client, asked, shown):
    models.Tool.objects.filter(key="crm__find").update(approved="x")
    models.Tool.objects.filter(key="git__wipe").update(category="git")
    rows = client.get(conftest.address(models.Tool, "changelist"), asked).context["cl"].result_list
    assert {row.key for row in rows} == shown


def test_pages_hold_no_script_and_no_style_of_their_own(stored, client):
    pages = [client.get(address) for address in addresses()]
    pages.append(browsing.open_(client, conftest.address(models.Agent)).type(key="a b").send().response)
    for page in pages:
        assert not re.search(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)[^>]*>", page.text)
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=", page.text)
        assert "'self'" in page.headers["Content-Security-Policy"]


def test_a_new_thing_is_asked_for_nothing_that_comes_by_itself(stored, client):
    for model in EDITED:
        page = browsing.open_(client, conftest.address(model))
        assert "form-row field-position" not in page.html
        assert "field-tokens" not in page.html


def test_the_admin_says_whose_it_is(stored, client):
    assert "Toolbelt" in client.get(reverse("admin:index")).context["site_header"]


def staff(*permissions: str) -> Client:
    user = auth.User.objects.create_user("sam", is_staff=True)
    user.user_permissions.set(auth.Permission.objects.filter(codename__in=permissions))
    browser = Client()
    browser.force_login(user)
    return browser


def test_staff_without_permissions_is_refused_everything(stored):
    browser = staff()
    for address in addresses():
        if address != reverse("admin:index"):
            assert browser.get(address).status_code in (403, 404), address
    assert browser.post(conftest.address(conftest.agent("ada")), {"title": "X"}).status_code == 403
    action = {"action": "retire", "_selected_action": [conftest.tool("clock").pk]}
    assert browser.post(conftest.address(models.Tool, "changelist"), action).status_code == 403


def test_strangers_are_asked_to_log_in(stored):
    response = Client().get(conftest.address(models.Agent))
    assert response.status_code == 302
    assert "login/?next=" in response.headers["Location"]


def test_who_may_only_look_cannot_change_a_thing(stored):
    browser = staff("view_agent", "view_tool", "view_toolkitswitch")
    page = browsing.open_(browser, conftest.address(conftest.agent("ada")))
    assert page.status == 200
    assert "reason" not in page.fields
    assert not {"title", "switches-0-toolkit", "switches-0-on"} & page.fields.keys()
    assert page.client.post(page.address, page.fields).status_code == 403


def test_who_may_change_the_agent_may_change_its_lines_as_on_the_screens(stored):
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


def test_the_right_to_lines_alone_changes_none_of_them(stored):
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
