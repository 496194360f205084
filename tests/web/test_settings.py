"""Tests of viewing and changing an agent's settings."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from tests.web import dashboard, editor_forms
from toolbelt.control import undo
from toolbelt.control.catalog import entries
from toolbelt.control.reports import queries
from toolbelt.testing import OPERATOR

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]

SETTINGS = "/agents/ada/settings/"
CHANGE = "/agents/ada/settings/change/"


def open_page(browser: Client, address: str = SETTINGS) -> Any:
    return browser.get(address).context["page"]


def form_fields(browser: Client, address: str = SETTINGS, **other: str) -> dict[str, str]:
    """Return the fields that the page's form would submit, with some of them changed."""
    sent = editor_forms.form(browser.get(address).content.decode(), f"{address}change/")
    return {name: str(sent[name]) for name in sent} | other


def save(browser: Client, address: str = SETTINGS, **other: str) -> Any:
    return browser.post(f"{address}change/", form_fields(browser, address, **other))


def test_the_form_shows_the_stored_settings(operator: Client) -> None:
    entries.change(
        OPERATOR.replace(confirm=True),
        "agent",
        "ada",
        {
            "budget": {"max_tools": 9, "on_exceed": "defer"},
            "tools": ["shell", {"tool": "clock__now", "options": {"zone": "UTC"}}],
            "initial_toolkits": ["research"],
            "kind": "plan",
        },
    )
    page = open_page(operator)
    sent = form_fields(operator)
    assert (sent["role"], sent["max_tools"], sent["max_tokens"]) == ("Keeps the project tidy", "9", "")
    assert (sent["on_exceed"], sent["kind"]) == ("defer", "plan")
    assert page.form.labels["kind"] == "plan → developer"
    assert {"minimal", "research"} <= {value for value, _ in page.form.fields["loadout"].widget.choices}
    given = " ".join(re.findall(r'<span class="given">.*?</span> ', dashboard.text(operator.get(SETTINGS))))
    assert re.sub(r"<[^>]*>", "", given).split("  ") == [
        "shell",
        "clock__now with options",
        "research in every session ",
    ]


def test_saving_changes_only_the_edited_fields(operator: Client) -> None:
    before = entries.read("agent", "ada")
    response = save(operator, title="Ada L.", max_tokens="9000", reason="Named.")
    assert (response.status_code, response.headers["Location"]) == (303, SETTINGS)
    assert entries.read("agent", "ada") == {**before, "title": "Ada L.", "budget": {"max_tokens": 9000}}
    entry = dashboard.latest_entry()
    assert (entry.action, entry.reason, entry.via) == ("agent.change", "Named.", "screen")
    assert entry.after == {"title": "Ada L.", "budget": {"max_tokens": 9000}}
    notice = open_page(operator).notice
    assert (notice.text, notice.undo) == ("Settings of ada saved.", entry.pk)
    dashboard.post(operator, f"/audit/{entry.pk}/undo/", htmx=False)
    assert entries.read("agent", "ada") == before


def test_saving_unchanged_settings_logs_nothing(operator: Client) -> None:
    save(operator, description="Two\r\nlines")
    newest = dashboard.latest_entry()
    assert entries.read("agent", "ada")["description"] == "Two\nlines"
    assert save(operator, description="Two\r\nlines").status_code == 303
    assert open_page(operator).notice.text.startswith("No changes")
    assert dashboard.latest_entry() == newest


def test_concurrent_changes_conflict_only_in_the_same_field(operator: Client) -> None:
    old = form_fields(operator)
    entries.change(OPERATOR, "agent", "ada", {"title": "Theirs", "model": "haiku"})
    assert operator.post(CHANGE, {**old, "role": "Mine"}).status_code == 303
    stored = dashboard.stored_agent()
    assert (stored.title, stored.model, stored.role) == ("Theirs", "haiku", "Mine")
    response = operator.post(CHANGE, {**old, "title": "Mine"})
    assert response.status_code == 409
    assert "changed by another operator" in dashboard.text(response)
    assert response.context["page"].form["title"].value() == "Mine", "the input is kept"
    assert dashboard.stored_agent().title == "Theirs"


@pytest.mark.parametrize(
    ("wrong", "field", "says"),
    [
        ({"max_tools": "many"}, "max_tools", "whole number"),
        ({"max_tools": "-1"}, "max_tools", "whole number"),
        ({"loadout": "nonsense"}, "loadout", "nonsense"),
        ({"kind": "gardener"}, "kind", "gardener"),
    ],
)
def test_invalid_settings_are_reported_at_their_field(
    operator: Client, wrong: dict[str, str], field: str, says: str
) -> None:
    before = entries.read("agent", "ada")
    response = save(operator, **wrong)
    assert response.status_code == 422
    assert says in response.context["page"].form.errors[field][0]
    assert "Not saved." in response.content.decode()
    assert entries.read("agent", "ada") == before


@pytest.mark.parametrize("was", ["", "{", "[1]", "[" * 100_000, '{"title": "\\ud800"}'])
def test_a_form_without_valid_previous_values_overwrites_nothing(operator: Client, was: str) -> None:
    before = entries.read("agent", "ada")
    assert save(operator, was=was).status_code == 409
    assert entries.read("agent", "ada") == before


def test_changing_only_the_loadout_is_logged_as_equipping(operator: Client) -> None:
    save(operator, loadout="research", confirm="yes")
    assert (dashboard.latest_entry().action, dashboard.stored_agent().loadout) == ("agent.equip", "research")


def test_a_far_reaching_change_requires_confirmation_with_its_effect(operator: Client) -> None:
    address = "/agents/bob/settings/"
    response = save(operator, address, kind="", role="Works")
    question = response.context["confirmation"]
    assert response.status_code == 200
    assert question.title == "Save the settings of bob?"
    assert question.effect.tools[1] == 1, "the tool that is on by default, without a loadout"
    assert dashboard.stored_agent("bob").kind == "plan"
    again = dict(question.fields)
    assert operator.post(question.action, {**again, "reason": "Meant."}).status_code == 303
    assert (dashboard.stored_agent("bob").kind, dashboard.stored_agent("bob").role) == ("", "Works")
    assert dashboard.stored_agent("bob").protected


def test_a_change_refused_by_the_budget_is_reported(operator: Client) -> None:
    none = {"kind": "explore", "budget": {"max_tools": 0, "on_exceed": "refuse"}}
    entries.change(OPERATOR.replace(confirm=True), "agent", "bob", none)
    response = save(operator, "/agents/bob/settings/", kind="", confirm="yes")
    assert response.status_code == 422
    assert "The budget of bob is 0 tools" in dashboard.text(response)
    assert response.context["page"].form["kind"].value() == ""
    assert dashboard.stored_agent("bob").kind == "explore"


def test_unchecking_protected_removes_the_protection(operator: Client) -> None:
    address = "/agents/bob/settings/"
    form = form_fields(operator, address)
    assert form.pop("protected") == "yes"
    operator.post(f"{address}change/", {**form, "confirm": "yes"})
    assert not dashboard.stored_agent("bob").protected


def test_a_viewer_sees_settings_as_text(viewer: Client) -> None:
    html = dashboard.text(viewer.get(SETTINGS))
    assert "<dt>Role</dt><dd>Keeps the project tidy</dd>" in html
    assert "<dt>Budget</dt> <dd> no limit </dd>" in html
    assert 'name="title"' not in html
    assert "Duplicate" not in html
    assert "/admin/" not in html


def test_an_administrator_gets_links_to_duplicate_and_to_the_admin(admin_client: Client) -> None:
    html = dashboard.text(admin_client.get(SETTINGS))
    assert "duplicate-title" in html
    assert "?from=agent:ada" in html
    [address] = re.findall('<a class="small" href="([^"]*)">Edit in the admin<', html)
    assert (address, admin_client.get(address).status_code) == ("/admin/toolbelt/agent/?q=ada", 200)


def test_the_mcp_loading_mode_is_stored_unless_it_is_the_default(operator: Client) -> None:
    assert form_fields(operator)["mcp_loading"] == "dispatch"
    for loading, entry in (("list", "list"), ("dispatch", None)):
        assert save(operator, mcp_loading=loading).status_code == 303
        assert entries.read("agent", "ada").get("mcp_loading") == entry


def test_query_count_does_not_grow_with_the_catalog(operator: Client, more_tools: Any) -> None:
    open_page(operator)
    of_few = dashboard.count_queries(lambda: open_page(operator))
    more_tools(48)
    open_page(operator)
    assert dashboard.count_queries(lambda: open_page(operator)) == of_few <= 14


def test_an_unknown_agent_is_not_found(operator: Client) -> None:
    for response in (
        operator.get("/agents/nobody/settings/"),
        operator.post("/agents/nobody/settings/change/", form_fields(operator, title="x")),
    ):
        assert response.status_code == 404


@pytest.fixture
def explorer_loadout(belt: None) -> None:
    """Store a loadout for the kind explore with papers, which ada may load, and clock__now, which ada has."""
    entries.put(
        OPERATOR,
        "loadout",
        {"name": "research", "plugins": ["acme.clock", "acme.papers"]},
    )
    entries.put(OPERATOR, "plugin", {"name": "acme.papers"})
    entries.change(OPERATOR, "tool", "papers", {"plugin": "acme.papers"})


def subagent(page: Any, kind: str = "explore") -> Any:
    return next(subagent for subagent in page.subagents if subagent.kind == kind)


@pytest.mark.usefixtures("explorer_loadout")
def test_each_subagent_kind_shows_what_it_would_add(operator: Client) -> None:
    papers = queries.settings("ada").surface.resolution.context.catalog.tools["papers"]
    html = dashboard.text(operator.get(SETTINGS))
    added, total, address = re.findall(
        '<strong>adds (.*?)</strong> <span class="quiet">· (.*?)</span> '
        '<a href="([^"]*)">Preview<span class="unseen"> as explore<',
        html,
    )[0]
    assert added == f"1 tool, ~{papers.tokens} tokens"
    assert total.startswith("2 tools, ")
    preview = operator.get(address).context["page"]
    assert {tool.key for tool in preview.now.tools if tool.decision} == {"clock__now", "papers"}


@pytest.mark.usefixtures("explorer_loadout")
def test_a_subagent_kind_does_not_add_denied_tools(operator: Client) -> None:
    dashboard.override(operator, "papers", "false", "unset")
    assert subagent(open_page(operator)).added == ()


@pytest.mark.usefixtures("explorer_loadout")
def test_subagent_kinds_are_allowed_and_removed(operator: Client, viewer: Client) -> None:
    assert save(operator, subagent_kinds="explore").status_code == 303
    assert entries.read("agent", "ada")["subagent_kinds"] == ["explore"]
    added_tokens = subagent(open_page(viewer)).added_tokens
    given = re.findall(
        '<code>(explore)</code> <span class="mark accent">(.*?)<', dashboard.text(viewer.get(SETTINGS))
    )
    assert given == [("explore", f"adds 1 tool, ~{added_tokens} tokens")]
    assert 'value="explore" autocomplete="off" checked' in dashboard.text(operator.get(SETTINGS))
    sent = form_fields(operator)
    del sent["subagent_kinds"]
    operator.post(CHANGE, sent)
    assert "subagent_kinds" not in entries.read("agent", "ada")


def test_read_only_denies_every_risk_and_can_be_undone(operator: Client) -> None:
    before = entries.read("agent", "ada")
    assert save(operator, read_only="yes", confirm="yes").status_code == 303
    assert entries.read("agent", "ada") == {**before, "denied_risks": ["writes", "destructive", "unstated"]}
    entry = dashboard.latest_entry()
    assert (entry.action, entry.after) == (
        "agent.change",
        {"denied_risks": ["writes", "destructive", "unstated"]},
    )
    assert form_fields(operator)["read_only"] == "yes"

    undo.undo(OPERATOR.replace(confirm=True), entry.pk)
    assert entries.read("agent", "ada") == before
    assert "read_only" not in form_fields(operator)


def test_some_denied_risks_stay_when_other_settings_are_saved(operator: Client) -> None:
    entries.change(OPERATOR.replace(confirm=True), "agent", "ada", {"denied_risks": ["destructive"]})
    assert open_page(operator).form.some_denied == "tools that may destroy something"

    save(operator, title="Ada L.")
    assert entries.read("agent", "ada")["denied_risks"] == ["destructive"]

    save(operator, read_only="yes", confirm="yes")
    fields = form_fields(operator)
    del fields["read_only"]
    operator.post(f"{SETTINGS}change/", {**fields, "confirm": "yes"})
    assert "denied_risks" not in entries.read("agent", "ada")
