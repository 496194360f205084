"""Tests of comparing two agents and copying differences between them."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import models as auth
from django.test import Client

from tests.web import dashboard
from toolbelt import models
from toolbelt.control.agents import agents
from toolbelt.control.catalog import entries
from toolbelt.core.rules import reasons
from toolbelt.testing import OPERATOR

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]

COMPARE = "/compare/"
COPY = "/compare/copy/"
ROWS = ["switch:clock__now", "loadable:research"]


def open_page(browser: Client, a: str = "ada", b: str = "bob", **query: Any) -> Any:
    """Return the view model of the comparison."""
    return browser.get(COMPARE, {"a": a, "b": b, **query}).context["page"]


def rows(page: Any) -> list[tuple[str, str, str]]:
    return [(row.id, row.a, row.b) for _, rows in page.comparison.groups for row in rows]


def confirmation_fields(browser: Client, *, htmx: bool = True, **fields: Any) -> dict[str, Any]:
    """Request a copy, and return the fields of the confirmation."""
    response = dashboard.post(browser, COPY, htmx=htmx, **{"a": "ada", "b": "bob", "row": ROWS, **fields})
    assert response.status_code == 200
    question = response.context["confirmation"]
    form_fields: dict[str, Any] = {}
    for name, value in question.fields:
        form_fields.setdefault(name, []).append(value)
    return form_fields


def test_only_the_differences_of_both_sides_are_shown(operator: Client) -> None:
    page = open_page(operator)
    assert (page.comparison.a.name, page.comparison.b.name) == ("ada", "bob")
    assert rows(page) == [
        ("setting:kind", "not set", "plan"),
        ("setting:protected", "no", "yes"),
        ("switch:issues", "on", "default"),
        ("switch:clock__now", "on", "default"),
        ("loadable:research", "may be loaded", "may not be loaded"),
    ]
    assert [title for title, _ in page.comparison.groups] == [
        "Settings",
        "Switches",
        "Overrides",
        "Loadable toolkits",
    ]
    outcomes = {
        outcome.tool.key: (
            outcome.a.state,
            reasons.explain(outcome.a),
            outcome.b.state,
            reasons.explain(outcome.b),
        )
        for outcome in page.comparison.outcomes
    }
    assert outcomes["clock__now"] == (
        "active",
        "its override is on",
        "discoverable",
        "loadout minimal lets the agent discover *",
    )
    assert outcomes["shell"][0] == "active"


def test_a_loadout_or_an_earlier_version_can_be_compared(operator: Client) -> None:
    page = open_page(operator, "loadout:minimal", "ada")
    assert page.comparison.a.about == "on its own, as for an agent without other settings"
    assert ("setting:loadout", "minimal", "not set") in rows(page)
    dashboard.switch(operator, "issues", "false", "true")
    entry = dashboard.latest_entry().pk
    dashboard.switch(operator, "issues", "unset", "false")
    page = open_page(operator, f"ada@{entry}", "ada")
    assert rows(page) == [("switch:issues", "off", "default")]
    assert page.comparison.a.about == "after olive turned off issues"
    by_time = open_page(operator, "ada", "ada", a_at=dashboard.latest_entry().at.isoformat())
    assert by_time.comparison.a.name == "ada"
    assert rows(by_time) == []


def test_the_missing_side_is_chosen_from_links(operator: Client) -> None:
    def offered(**query: str) -> tuple[str, list[tuple[str, str]]]:
        page = operator.get(COMPARE, query).context["page"]
        return page.others_title, list(page.others)

    assert offered() == (
        "Choose the first agent",
        [("ada", "/compare/?a=ada"), ("bob", "/compare/?a=bob")],
    )
    assert offered(a="ada") == ("Compare ada with", [("bob", "/compare/?a=ada&b=bob")])
    assert offered(b="ada") == ("Compare ada with", [("bob", "/compare/?a=bob&b=ada")])
    assert offered(a="loadout:minimal")[1][0] == ("ada", "/compare/?a=loadout%3Aminimal&b=ada")
    assert "Tools that differ" in dashboard.text(operator.get("/compare/?a=ada&b=bob"))


def test_tools_on_for_only_one_side_are_listed_first(operator: Client) -> None:
    comparison = open_page(operator, show="all").comparison
    only = [outcome.only for outcome in comparison.outcomes]
    groups = ["On only for ada", "On only for bob", "Not on for either"]
    assert only == sorted(only, key=groups.index)
    assert only[0] == "On only for ada"
    assert "On only for bob" in only


def test_unknown_agents_loadouts_and_times_are_reported(operator: Client) -> None:
    assert open_page(operator, "nobody").problem.startswith("There is no agent named 'nobody'.")
    assert "is not a time" in open_page(operator, "ada@soon").problem
    # Out of the calendar's range in other zones.
    assert "is not a time" in open_page(operator, "ada@9999-12-31T23:59:59-23:00").problem
    assert "is not a time" in open_page(operator, "ada@0001-01-01T00:00+23:00").problem
    assert open_page(operator, "loadout:<b>").comparison is None
    assert "<b>" not in operator.get(COMPARE, {"a": "loadout:<b>", "b": "ada"}).content.decode()


@pytest.mark.parametrize("htmx", [True, False])
def test_selected_differences_are_copied_after_confirmation(operator: Client, htmx: bool) -> None:
    before = entries.read("agent", "bob")
    fields = confirmation_fields(operator, htmx=htmx)
    assert entries.read("agent", "bob") == before
    response = dashboard.post(operator, COPY, htmx=htmx, **{**fields, "reason": "Same work."})
    location = response.headers["HX-Redirect" if htmx else "Location"]
    assert location == "/compare/?a=ada&b=bob"
    assert response.status_code == (200 if htmx else 303)
    assert entries.read("agent", "bob")["tools_config"] == {"clock__now": True}
    notice = operator.get(location).context["page"].notice
    assert notice.text == "2 differences copied from ada to bob."
    act = models.AuditEntry.objects.filter(batch=dashboard.latest_entry().batch)
    assert set(act.values_list("reason", flat=True)) == {"Same work."}
    assert act.count() == 2
    dashboard.post(operator, f"/audit/{notice.undo}/undo/", htmx=False, whole="yes")
    assert entries.read("agent", "bob") == before


def test_all_differences_are_copied_together(operator: Client) -> None:
    fields = confirmation_fields(operator, row=[], what="all")
    assert len(fields["row"]) == 5
    dashboard.post(operator, COPY, **fields)
    assert rows(open_page(operator)) == []


def test_the_confirmation_shows_the_effect_of_copying(operator: Client) -> None:
    html = dashboard.text(dashboard.post(operator, COPY, a="ada", b="bob", row=["switch:issues"]))
    assert "bob is protected." in html
    assert "Copy 1 difference to bob?" in html
    assert "issues</code></th> <td>default</td> <td>on</td>" in html
    assert "Tools that can destroy" not in html


def test_copying_is_refused_if_the_target_changed_after_the_confirmation(operator: Client) -> None:
    fields = confirmation_fields(operator)
    dashboard.override(operator, "clock__now", "false", "true")
    response = dashboard.post(operator, COPY, htmx=False, **fields)
    notice = operator.get(response.headers["Location"]).context["page"].notice
    assert (notice.tone, notice.text[:40]) == ("refused", "Nothing was copied. What you copy to bob")
    assert "tools_config" not in entries.read("agent", "bob")


def test_copying_unknown_or_no_differences_is_reported(operator: Client) -> None:
    for row, message in ((["switch:nothing"], "no difference named"), ([], "Select a difference first")):
        response = dashboard.post(operator, COPY, htmx=False, a="ada", b="bob", row=row)
        assert message in operator.get(response.headers["Location"]).context["page"].notice.text
    response = dashboard.post(operator, COPY, htmx=False, b="bob")
    notice = operator.get(response.headers["Location"]).context["page"].notice
    assert notice.text == "Nothing was copied: a: This field is required."


def test_a_viewer_has_no_checkboxes_and_cannot_copy(viewer: Client) -> None:
    page = open_page(viewer)
    assert (page.comparison.to, len(rows(page))) == ("", 5)
    assert 'name="row"' not in viewer.get(COMPARE, {"a": "ada", "b": "bob"}).content.decode()
    assert dashboard.post(viewer, COPY, a="ada", b="bob", row=ROWS).status_code == 403


def test_an_operator_of_one_agent_copies_only_its_switches(viewer: Client) -> None:
    from toolbelt.control.people import roles

    roles.set_operators(OPERATOR, "bob", ["rosa"])
    page = open_page(viewer)
    assert (page.comparison.to, page.comparison.copyable) == ("bob", 2)
    assert dashboard.post(viewer, COPY, a="ada", b="bob", row=["setting:kind"]).status_code == 403
    assert dashboard.post(viewer, COPY, a="bob", b="ada", row=["switch:issues"]).status_code == 403
    fields = confirmation_fields(viewer, row=[], what="all")
    assert fields["row"] == ["switch:clock__now", "switch:issues"]
    dashboard.post(viewer, COPY, **fields)
    assert entries.read("agent", "bob")["tools_config"] == {"clock__now": True, "issues": True}


def test_copying_an_earlier_version_restores_the_agent(operator: Client, olive: auth.User) -> None:
    was = entries.read("agent", "ada")
    dashboard.switch(operator, "issues", "false", "true")
    first = dashboard.latest_entry().pk
    agents.edit(OPERATOR.replace(confirm=True), "ada", {"role": "Does nothing", "allowed_toolkits": None})
    dashboard.override(operator, "papers", "true", "unset")
    dashboard.post(operator, f"/audit/{first}/undo/", htmx=False)
    fields = confirmation_fields(operator, a=f"ada@{first}", b="ada", row=[], what="all")
    dashboard.post(operator, COPY, **fields)
    assert entries.read("agent", "ada") == {**was, "tools_config": {"clock__now": True, "issues": False}}


def test_query_count_does_not_grow_with_the_catalog_and_history(operator: Client, more_tools: Any) -> None:
    dashboard.switch(operator, "issues", "false", "true")
    entry = dashboard.latest_entry().pk
    open_page(operator, f"ada@{entry}", "bob")
    few = dashboard.count_queries(lambda: open_page(operator, f"ada@{entry}", "bob"))
    more_tools(60)
    for on, was in (("true", "false"), ("false", "true")) * 4:
        dashboard.switch(operator, "issues", on, was)
    open_page(operator, f"ada@{entry}", "bob")
    assert dashboard.count_queries(lambda: open_page(operator, f"ada@{entry}", "bob")) == few <= 22
