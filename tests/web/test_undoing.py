"""Tests of undoing changes, including after later changes."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import models as auth
from django.test import Client

from tests.web import dashboard
from toolbelt import models
from toolbelt.control.access import switches
from toolbelt.control.catalog import entries
from toolbelt.runtime import surfaces
from toolbelt.testing import OPERATOR

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]


def undo(browser: Client, entry: int, **fields: Any) -> Any:
    return dashboard.post(browser, f"/audit/{entry}/undo/", **fields)


@pytest.mark.parametrize("htmx", [True, False])
def test_undo_restores_the_models_surface(operator: Client, htmx: bool) -> None:
    before = surfaces.ask("ada").fingerprint
    dashboard.switch(operator, "issues", "false", "true")
    flip = dashboard.latest_entry()
    assert surfaces.ask("ada").fingerprint != before
    response = undo(operator, flip.pk, htmx=htmx)
    assert response.status_code == (200 if htmx else 303)
    assert surfaces.ask("ada").fingerprint == before
    entry = dashboard.latest_entry()
    assert (entry.undoes, entry.via, entry.actor, entry.after) == (flip, "screen", "olive", True)


def test_undo_reports_its_effect_and_offers_redo(operator: Client) -> None:
    dashboard.switch(operator, "issues", "false", "true")
    notice = undo(operator, dashboard.latest_entry().pk).context["page"].notice
    assert notice.text == "Undone: olive turned off Issues and reviews `issues`."
    assert notice.detail.startswith("+2 tools, +")
    assert (notice.undo, notice.undo_word) == (dashboard.latest_entry().pk, "Redo")
    undo(operator, notice.undo)
    assert dashboard.stored_agent().switches["issues"] is False


def test_without_htmx_undo_redirects_to_the_log(operator: Client) -> None:
    dashboard.switch(operator, "issues", "false", "true")
    response = undo(operator, dashboard.latest_entry().pk, htmx=False, next="/audit/?agent=ada")
    assert response.headers["Location"] == "/audit/?agent=ada"
    page = operator.get("/audit/").context["page"]
    assert page.notice.text == "Undone: olive turned off Issues and reviews `issues`."
    newest, flip = (entry for day in page.days for entry in day.entries)
    assert newest.action == "undid a change; this turned on"
    assert newest.undoable
    assert not flip.undoable
    assert flip.undone.startswith("undone by olive")


def test_resetting_a_sections_overrides_is_undone_as_a_whole(operator: Client) -> None:
    dashboard.override(operator, "github__issue_read", "false", "unset")
    dashboard.override(operator, "github__issue_write", "false", "unset")
    section = dashboard.sections(operator.get("/agents/ada/").context["page"])["toolkit-issues"]
    assert section.overrides == ("github__issue_read=false", "github__issue_write=false")
    response = dashboard.post(operator, "/agents/ada/reset/", was=section.overrides)
    notice = response.context["page"].notice
    assert notice.text == "2 overrides of ada reset to default."
    assert notice.whole
    assert dashboard.stored_agent().overrides == {"clock__now": True}
    last, first = models.AuditEntry.objects.order_by("-id")[:2]
    assert last.batch == first.batch is not None
    undone = undo(operator, notice.undo, whole="yes")
    assert undone.status_code == 200
    assert dashboard.stored_agent().overrides == {
        "clock__now": True,
        "github__issue_read": False,
        "github__issue_write": False,
    }


def test_a_reset_that_enables_destructive_tools_requires_confirmation(operator: Client) -> None:
    dashboard.override(operator, "github__merge", "false", "unset")
    switches.flip(OPERATOR, "ada", "releases", True)
    confirmation = dashboard.post(operator, "/agents/ada/reset/", was="github__merge=false")
    question = confirmation.context["confirmation"]
    assert (question.title, question.confirm_word) == (
        "Reset 1 override of ada to default?",
        "Reset to default",
    )
    assert question.dangerous
    fields = list(question.fields)
    assert fields == [("was", "github__merge=false"), ("confirm", "yes")]
    dashboard.post(operator, question.action, **dict(fields))
    assert "github__merge" not in dashboard.stored_agent().overrides


def test_a_reset_is_all_or_nothing(operator: Client) -> None:
    dashboard.override(operator, "papers", "true", "unset")
    response = dashboard.post(operator, "/agents/ada/reset/", was=["clock__now=true", "papers=false"])
    assert response.status_code == 409
    assert dashboard.stored_agent().overrides == {"clock__now": True, "papers": True}


@pytest.mark.parametrize("was", [[], ["papers"], ["=true"], ["papers=unset"], ["papers=true", "x"]])
def test_an_invalid_reset_is_refused(operator: Client, was: list[str]) -> None:
    response = dashboard.post(operator, "/agents/ada/reset/", was=was)
    assert response.status_code == 422
    assert not models.AuditEntry.objects.exists()


def test_a_reset_of_an_unknown_tool_or_agent_is_refused(operator: Client) -> None:
    assert dashboard.post(operator, "/agents/ada/reset/", was="nothing=true").status_code == 422
    assert dashboard.post(operator, "/agents/nobody/reset/", was="papers=true").status_code == 404


@pytest.mark.parametrize("htmx", [True, False])
def test_a_change_overwritten_since_is_shown_as_a_three_way_comparison(operator: Client, htmx: bool) -> None:
    dashboard.switch(operator, "issues", "false", "true")
    entry = dashboard.latest_entry()
    dashboard.switch(operator, "issues", "unset", "false")
    response = undo(operator, entry.pk, htmx=htmx, next="/agents/ada/")
    question = response.context["confirmation"]
    assert question.is_three_way
    assert question.title == "Turn on Issues and reviews `issues` for ada?"
    difference = question.differences[0]
    assert (difference.before, difference.after, difference.now) == ("on", "off", "default")
    assert "issues" not in dashboard.stored_agent().switches
    html = dashboard.text(response)
    assert "Before the change" in html
    fields = dict(question.fields)
    assert fields == {"on": "true", "was": "unset", "next": "/agents/ada/"}
    dashboard.post(operator, question.action, htmx=htmx, **fields)
    assert dashboard.stored_agent().switches["issues"] is True


def test_a_late_undo_returns_the_current_state(operator: Client) -> None:
    dashboard.override(operator, "papers", "true", "unset")
    entry = dashboard.latest_entry()
    dashboard.override(operator, "papers", "false", "true")
    response = undo(operator, entry.pk, tools="papers")
    page = response.context["page"]
    assert page.notice.text == "Not undone: there is a newer change of papers."
    assert [(row.key, row.stored) for row in page.rows] == [("papers", "false")]


def test_undoing_twice_is_refused(operator: Client) -> None:
    dashboard.switch(operator, "issues", "false", "true")
    entry = dashboard.latest_entry()
    undo(operator, entry.pk)
    response = undo(operator, entry.pk)
    assert response.status_code == 409
    assert response.context["page"].notice.text.startswith("Not undone. ")
    assert models.AuditEntry.objects.count() == 2


def test_a_batch_is_undone_only_if_none_of_it_changed_since(operator: Client) -> None:
    dashboard.override(operator, "papers", "true", "unset")
    dashboard.post(operator, "/agents/ada/reset/", was=["clock__now=true", "papers=true"])
    batch = dashboard.latest_entry()
    dashboard.override(operator, "papers", "false", "unset")
    assert undo(operator, batch.pk, whole="yes").status_code == 409
    assert dashboard.stored_agent().overrides == {"papers": False}


def test_an_undo_that_exceeds_the_budget_is_refused(operator: Client) -> None:
    entries.change(
        OPERATOR.replace(confirm=True), "agent", "ada", {"budget": {"max_tools": 4, "on_exceed": "refuse"}}
    )
    dashboard.override(operator, "clock__now", "unset", "true")
    entry = dashboard.latest_entry()
    dashboard.override(operator, "papers", "true", "unset")
    response = undo(operator, entry.pk)
    assert response.status_code == 422
    assert "The budget of ada is 4 tools" in response.context["page"].notice.text


def test_undoing_an_agents_creation_redirects_to_the_list(operator: Client, olive: auth.User) -> None:
    change = entries.put(OPERATOR, "agent", {"key": "cyd"})
    olive.user_permissions.add(auth.Permission.objects.get(codename="delete_agent"))
    assert operator.get("/agents/cyd/").context["page"].agent.last_change.entry is None
    assert change.entry is not None
    response = undo(operator, change.entry)
    assert (response.status_code, response.headers["HX-Redirect"]) == (200, "/agents/")
    agent_list = operator.get("/agents/")
    assert agent_list.context["page"].agents[0].key == "ada"
    assert "Undone: test created agent cyd." in agent_list.content.decode()


def test_undoing_an_unknown_entry_is_not_found(operator: Client) -> None:
    assert undo(operator, 4711).status_code == 404
    assert undo(operator, 10**30).status_code == 404
    assert undo(operator, 4711, htmx=False).status_code == 404


def test_undoing_a_catalog_change_requires_permission(operator: Client, olive: auth.User) -> None:
    entries.change(OPERATOR, "toolkit", "issues", {"title": "Tickets"})
    assert undo(operator, dashboard.latest_entry().pk, htmx=False).status_code == 403
    olive.user_permissions.add(auth.Permission.objects.get(codename="change_toolkit"))
    response = undo(operator, dashboard.latest_entry().pk, htmx=False)
    assert response.status_code == 303
    assert models.Toolkit.objects.get(key="issues").title == "Issues and reviews"


def test_an_htmx_undo_of_a_catalog_change_reloads_the_page(operator: Client, olive: auth.User) -> None:
    olive.user_permissions.add(*auth.Permission.objects.filter(codename="change_toolkit"))
    dashboard.post(operator, "/toolkits/issues/block/", on="true", was="false", from_agent="ada")
    response = undo(operator, dashboard.latest_entry().pk)
    assert (response.status_code, response.headers["HX-Refresh"]) == (200, "true")
    assert "Undone" in dashboard.text(operator.get("/agents/ada/"))
