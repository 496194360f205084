"""Tests of how an open page learns of a new revision when it polls without a stream."""

from __future__ import annotations

import json
import re

import pytest
from django.test import Client

from tests.web import dashboard, servers
from toolbelt import models
from toolbelt.control.reports import queries
from toolbelt.store import counts
from toolbelt.web.kit import live

pytestmark = pytest.mark.django_db


def revision(browser: Client, agent: str = "") -> int:
    response = browser.get(live.PATH, {"agent": agent})
    assert response.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    kind, data = response.content.decode().strip().split("\n")
    assert kind == "event: once"
    stored: int = json.loads(data.removeprefix("data: "))["revision"]
    return stored


def shown(page: object) -> int:
    """Return the revision that a page states."""
    match = re.search(r'<data id="revision" value="(\d+)"', dashboard.text(page))
    assert match is not None
    return int(match[1])


def test_a_flip_increments_its_agents_and_the_global_revision(operator, belt):
    models.Agent.objects.create(key="other")
    before = revision(operator), revision(operator, "ada"), revision(operator, "other")
    dashboard.switch(operator, "issues", "false", "true")
    after = revision(operator), revision(operator, "ada"), revision(operator, "other")
    assert after[0] > before[0]
    assert after[1] == after[0]
    assert after[2] == before[2]


def test_a_catalog_change_increments_every_agents_revision(operator, belt):
    models.Tool.objects.update(title="x")
    assert revision(operator, "ada") == revision(operator)


@pytest.mark.parametrize("agent", ["nobody", "a\0", "a" * 65])
def test_the_stream_of_an_unknown_agent_is_not_found(operator, belt, agent):
    assert operator.get(live.PATH, {"agent": agent}).status_code == 404


def test_a_page_states_its_revision(operator, belt):
    assert shown(operator.get("/agents/ada/")) == shown(operator.get("/agents/")) == revision(operator)


def test_a_page_does_not_state_a_newer_revision_than_it_shows(operator, belt, monkeypatch):
    """A change committed during rendering is not shown, so the stated revision must not include it."""
    before = revision(operator)
    summaries = queries.summaries

    def summaries_before_a_change(*, archived: bool) -> object:
        result = summaries(archived=archived)
        models.Agent.objects.update(title="meanwhile")
        return result

    monkeypatch.setattr(queries, "summaries", summaries_before_a_change)
    assert shown(operator.get("/agents/")) == before
    assert revision(operator) > before


def test_a_flip_response_states_its_revision(operator, belt):
    assert shown(dashboard.switch(operator, "issues", "false", "true")) == revision(operator, "ada")


def test_navigation_counts_take_one_query_per_page(operator, belt, monkeypatch):
    assert dashboard.count_queries(counts.count) == 1
    counted = []
    count = queries.count

    def recorded_count() -> counts.Counts:
        counted.append(True)
        return count()

    monkeypatch.setattr(queries, "count", recorded_count)
    operator.get("/agents/")
    assert counted == [True]


def test_a_live_refresh_keeps_the_notice_for_the_next_page(operator, belt):
    dashboard.switch(operator, "issues", "false", "true", htmx=False)
    again = operator.get("/agents/ada/", headers={live.RELOAD: "1"})
    assert "issues</code> is off for ada" not in dashboard.text(again).partition('id="toast"')[2]
    assert (
        "issues</code> is off for ada"
        in dashboard.text(operator.get("/agents/ada/")).partition('id="toast"')[2]
    )


def test_a_changed_state_shows_who_changed_it(operator, belt):
    dashboard.switch(operator, "issues", "false", "true")
    assert 'data-now="Off" data-by="you"' in dashboard.text(operator.get("/agents/ada/"))


@pytest.mark.parametrize(
    ("address", "agent"),
    [
        ("/loadouts/", ""),
        ("/loadouts/developer/", ""),
        ("/sub-apps/", ""),
        ("/sub-apps/desk/", ""),
        ("/sub-apps/desk/edit/", ""),
        ("/compare/?a=ada&b=bob", ""),
        ("/tools/shell/", ""),
        ("/plugins/files/", ""),
        ("/toolkits/issues/edit/", ""),
        ("/agents/ada/settings/", "ada"),
        ("/agents/ada/sessions/", "ada"),
    ],
)
def test_pages_subscribe_to_their_agent_or_to_all_changes(admin_client, belt, address, agent):
    servers.add()
    models.SubApp.objects.create(key="desk")
    page = dashboard.text(admin_client.get(address))
    assert f'data-url="/live/" data-agent="{agent}"' in page


def test_a_form_response_has_no_live_url(operator, belt):
    response = operator.post("/agents/ada/settings/change/", {"max_tools": "-1", "was": "{}"})
    assert response.status_code == 422
    assert 'id="live-state" data-own data-url="" data-agent="ada"' in dashboard.text(response)


def test_a_form_with_rearranged_rows_is_marked_as_unsaved(admin_client, belt):
    page = "/toolkits/issues/edit/"
    form = "data-guarded data-unsaved"
    assert form not in dashboard.text(admin_client.get(page))
    assert form in dashboard.text(
        dashboard.post(admin_client, "/toolkits/issues/save/", act="add-triggers-0", was="{}")
    )


def test_sessions_and_calls_are_polled_because_they_have_no_revision(admin_client, belt):
    assert 'data-every="10" data-what="sessions"' in dashboard.text(admin_client.get("/agents/ada/sessions/"))
    assert 'data-every="15" data-what="new calls" data-still' in dashboard.text(admin_client.get("/calls/"))
    assert "data-every" not in dashboard.text(admin_client.get("/agents/ada/"))
