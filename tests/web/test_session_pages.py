"""Tests of the Sessions page and of evicting sessions."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.contrib.auth import models as auth
from django.test import Client
from django.utils import timezone

from tests.web import dashboard
from toolbelt import models
from toolbelt.control.agents import agents, session_changes
from toolbelt.runtime import calls, surfaces
from toolbelt.store import agent_sessions
from toolbelt.testing import OPERATOR

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]

SESSIONS = "/agents/ada/sessions/"
EVICT = "/agents/ada/sessions/evict/"


def open_page(browser: Client, **query: Any) -> Any:
    return browser.get(SESSIONS, query).context["page"]


def load(session: str, request: str | None = None, agent: str = "ada") -> None:
    calls.run(agent, "load_tools", {"toolkit": "research"}, session=session, request_id=request)


@pytest.fixture
def session_manager(operator: Client, olive: auth.User) -> Client:
    """Return the browser of an operator who may evict sessions, and clear their labels."""
    codenames = ("delete_agentsession", "change_agentsession")
    olive.user_permissions.add(*auth.Permission.objects.filter(codename__in=codenames))
    return operator


def test_each_session_shows_its_loaded_toolkits_and_time(operator: Client) -> None:
    load("s1")
    load("s2", "r1")
    session_changes.equip(OPERATOR, "ada", "s1", "minimal")
    page = open_page(operator)
    assert page.matches == "2 sessions, most recently changed first"
    assert [line.key for line in page.sessions] == ["s1", "s2"]
    (loaded,) = page.sessions[0].loaded
    assert (loaded.kind, loaded.name, loaded.note) == ("toolkit", "research", "")
    assert ">just now</time>" in operator.get("/agents/ada/sessions/").content.decode()
    assert [line.loadout for line in page.sessions] == ["minimal", ""]
    assert '<a href="/agents/ada/preview/?session=s1">' in operator.get(SESSIONS).content.decode()
    assert page.agent.key == "ada"


def test_loaded_toolkits_without_effect_have_a_note(operator: Client) -> None:
    load("s1")
    load("s2", "r1")
    calls.run("ada", "unload_tools", {"toolkit": "research"}, session="s2", request_id="r2")
    assert open_page(operator).sessions[0].loaded[0].note == "unloaded from the next request"
    agents.edit(OPERATOR, "ada", {"allowed_toolkits": None})
    assert [line.loaded[0].note for line in open_page(operator).sessions if line.key == "s1"] == [
        "no longer allowed"
    ]


def test_an_empty_list_shows_the_loadable_toolkits(operator: Client) -> None:
    html = dashboard.text(operator.get(SESSIONS))
    assert "No sessions yet" in html
    assert "<code>research</code>" in html
    agents.edit(OPERATOR, "ada", {"allowed_toolkits": None})
    assert "nothing to load" in dashboard.text(operator.get(SESSIONS))
    assert "the tools that its loadout offers on request" in dashboard.text(
        operator.get("/agents/bob/sessions/")
    )


def test_initial_and_loadable_toolkits_are_listed(operator: Client) -> None:
    agents.edit(
        OPERATOR, "ada", {"allowed_toolkits": ["research", "issues"], "initial_toolkits": ["research"]}
    )
    page = open_page(operator)
    assert (page.initial, page.loadable) == (("research",), ("issues",))


@pytest.mark.parametrize("htmx", [True, False])
def test_evicting_a_session_requires_confirmation(session_manager: Client, htmx: bool) -> None:
    load("s1")
    response = dashboard.post(session_manager, EVICT, htmx=htmx, session="s1")
    question = response.context["confirmation"]
    assert response.status_code == 200
    assert question.title == "Evict session s1?"
    assert list(question.fields) == [
        ("session", "s1"),
        ("next", SESSIONS),
        ("confirm", "yes"),
    ]
    assert session_changes.page("ada").total == 1


@pytest.mark.parametrize("htmx", [True, False])
def test_evicting_a_session_resets_it_and_is_logged(session_manager: Client, htmx: bool) -> None:
    load("s1")
    load("s2")
    assert "papers" in surfaces.ask("ada", "s1").because
    response = dashboard.post(
        session_manager, EVICT, htmx=htmx, session="s1", confirm="yes", reason="It went astray."
    )
    assert "papers" not in surfaces.ask("ada", "s1").because
    assert "papers" in surfaces.ask("ada", "s2").because
    entry = dashboard.latest_entry()
    assert (entry.action, entry.key, entry.actor, entry.via, entry.reason) == (
        "session.evict",
        "s1",
        "olive",
        "screen",
        "It went astray.",
    )
    if htmx:
        page = response.context["page"]
        assert 'id="sessions" hx-swap-oob="innerHTML"' in response.content.decode()
    else:
        assert (response.status_code, response.headers["Location"]) == (303, SESSIONS)
        page = open_page(session_manager)
    assert page.notice.text == "Session s1 of ada evicted."
    assert [line.key for line in page.sessions] == ["s2"]


def test_evicting_an_unknown_session_is_refused(session_manager: Client) -> None:
    response = dashboard.post(session_manager, EVICT, session="s9", confirm="yes")
    assert response.status_code == 409
    assert response.context["page"].notice.tone == "refused"
    assert dashboard.post(session_manager, EVICT, session="").status_code == 422
    assert dashboard.post(session_manager, "/agents/nobody/sessions/evict/", session="s").status_code == 200
    assert (
        dashboard.post(
            session_manager, "/agents/nobody/sessions/evict/", session="s", confirm="yes"
        ).status_code
        == 404
    )


def test_session_names_may_contain_special_characters(session_manager: Client) -> None:
    name = "<b>/ü? & 1"
    load(name)
    html = session_manager.get(SESSIONS).content.decode()
    assert "<b>/" not in html
    dashboard.post(session_manager, EVICT, session=name, confirm="yes")
    assert session_changes.page("ada").total == 0


def test_evicting_requires_permission(viewer: Client, operator: Client) -> None:
    load("s1")
    for browser in (viewer, operator):
        page = open_page(browser)
        assert (len(page.sessions), page.may_evict) == (1, False)
        assert "Evict" not in browser.get(SESSIONS).content.decode()
        assert dashboard.post(browser, EVICT, session="s1", confirm="yes").status_code == 403
    assert session_changes.page("ada").total == 1


def test_a_long_list_is_paginated(operator: Client) -> None:
    ada = models.Agent.objects.get(key="ada")
    models.AgentSession.objects.bulk_create(
        models.AgentSession(agent=ada, key=f"s{number}", state={}) for number in range(120)
    )
    first = open_page(operator)
    assert (len(first.sessions), first.pages.newer_url) == (50, "")
    assert first.pages.words == "1 to 50 of 120"
    last = open_page(operator, offset=100)
    assert (len(last.sessions), last.pages.older_url, last.pages.newer_url) == (
        20,
        "",
        f"{SESSIONS}?offset=50",
    )
    assert open_page(operator, offset="nonsense").sessions[0].key == first.sessions[0].key
    assert open_page(operator, offset=500).pages.newer_url == f"{SESSIONS}?offset=70"


def test_query_count_does_not_grow_with_the_number_of_sessions(operator: Client) -> None:
    load("s1")
    open_page(operator)
    of_one = dashboard.count_queries(lambda: open_page(operator))
    for number in range(2, 9):
        load(f"s{number}")
    assert dashboard.count_queries(lambda: open_page(operator)) == of_one <= 16


def test_an_unknown_agent_is_not_found(operator: Client) -> None:
    assert operator.get("/agents/nobody/sessions/").status_code == 404


def test_sessions_are_filtered_by_their_last_change(operator: Client) -> None:
    load("s1")
    load("s2")
    week_ago = timezone.now() - dt.timedelta(days=7, hours=1)
    models.AgentSession.objects.filter(key="s1").update(changed=week_ago)

    def shown(**query: Any) -> list[str]:
        return [line.key for line in open_page(operator, **query).sessions]

    assert shown() == ["s2", "s1"]
    assert shown(period="7d") == ["s2"]
    day = timezone.localdate(week_ago).isoformat()
    assert shown(period="custom", since=day, until=day) == ["s1"]
    assert shown(period="yesterday") == []
    assert "No matching sessions" in dashboard.text(operator.get(SESSIONS, {"period": "yesterday"}))


def test_an_htmx_filter_request_returns_only_the_list(operator: Client) -> None:
    load("s1")
    html = dashboard.text(operator.get(SESSIONS, {"period": "today"}, headers=dashboard.HTMX))
    assert '<p id="matches" hx-swap-oob="innerHTML">1 session, most recently changed first</p>' in html
    assert "<html" not in html


def test_a_session_links_to_its_calls_if_permitted(operator: Client, olive: auth.User) -> None:
    load("s1")
    assert "/calls/" not in dashboard.text(operator.get(SESSIONS))
    olive.user_permissions.add(auth.Permission.objects.get(codename="view_callrecord"))
    began = timezone.now() - dt.timedelta(days=60)
    models.AgentSession.objects.update(created=began)
    models.CallRecord.objects.update(at=began)
    (session,) = open_page(operator).sessions
    assert session.calls_url.startswith("/calls/?view=log&agent=ada&session=s1&")
    (call,) = operator.get(session.calls_url).context["page"].calls
    assert call.call.tool == "load_tools"


CLEAR = "/agents/ada/sessions/clear/"


def test_a_session_shows_its_labels_and_the_calls_that_brought_them(operator: Client) -> None:
    agent_sessions.bring("ada", "s1", ["private"], "papers")
    (line,) = open_page(operator).sessions
    assert [(name, tool) for name, tool, _ in line.labels] == [("private", "papers")]


@pytest.mark.parametrize("htmx", [True, False])
def test_a_label_is_cleared_after_a_confirmation_and_logged(session_manager: Client, htmx: bool) -> None:
    agent_sessions.bring("ada", "s1", ["private", "untrusted"], "papers")
    response = dashboard.post(session_manager, CLEAR, htmx=htmx, session="s1", label="private")
    assert response.context["confirmation"].title == "Clear private of session s1?"
    dashboard.post(session_manager, CLEAR, htmx=htmx, session="s1", label="private", confirm="yes")
    (line,) = open_page(session_manager).sessions
    assert [name for name, _, _ in line.labels] == ["untrusted"]
    entry = dashboard.latest_entry()
    assert (entry.action, entry.key, entry.actor) == ("session.clear", "s1", "olive")


def test_who_may_not_change_sessions_clears_no_label(operator: Client, viewer: Client) -> None:
    agent_sessions.bring("ada", "s1", ["private"], "papers")
    assert dashboard.post(viewer, CLEAR, session="s1", label="private", confirm="yes").status_code == 403
    (line,) = open_page(operator).sessions
    assert line.labels
