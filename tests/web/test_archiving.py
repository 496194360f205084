"""Tests of archiving and restoring agents, and of naming their operators."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from tests.web import dashboard
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.agents import agents
from toolbelt.control.people import roles

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]
ARCHIVE, HOME = "/agents/ada/archive/", "/agents/ada/settings/"
SETUP = writing.by("setup", via="command")


@pytest.fixture
def archived(belt: None) -> None:
    agents.archive(SETUP.replace(confirm=True), "ada", True)


def text(browser: Client, address: str) -> str:
    response = browser.get(address)
    assert response.status_code == 200, address
    html: str = response.content.decode()
    return html


def test_archiving_requires_confirmation_and_can_be_undone(operator: Client) -> None:
    confirmation = dashboard.post(operator, ARCHIVE, htmx=False, archived="yes")
    assert confirmation.status_code == 200
    assert "While ada is archived, it answers no requests" in confirmation.content.decode()
    assert not models.Agent.objects.get(key="ada").archived
    done = dashboard.post(operator, ARCHIVE, htmx=False, archived="yes", confirm="yes")
    assert (done.status_code, done.headers["Location"]) == (303, HOME)
    assert models.Agent.objects.get(key="ada").archived
    entry = dashboard.latest_entry()
    assert (entry.action, entry.after) == ("agent.change", {"archived": True})
    page = text(operator, HOME)
    assert "ada is archived." in page
    assert "Restore" in page
    dashboard.post(operator, f"/audit/{entry.pk}/undo/", htmx=False)
    assert not models.Agent.objects.get(key="ada").archived


def test_an_archived_agent_is_listed_only_on_request(operator: Client, archived: None) -> None:
    assert "/agents/ada/" not in text(operator, "/agents/")
    assert "/agents/ada/" in text(operator, "/agents/?archived=1")
    assert "/agents/bob/" not in text(operator, "/agents/?archived=1")
    assert "at:ada:" not in text(operator, "/matrix/")
    assert "at:ada:" not in text(operator, "/toolkits/issues/")
    assert 'value="ada"' not in text(operator, "/compare/")
    overview = text(operator, "/").partition('id="agents-title"')[2]
    assert "/agents/bob/" in overview
    assert "/agents/ada/" not in overview


def test_pages_of_an_archived_agent_have_a_notice_and_no_controls(operator: Client, archived: None) -> None:
    page = text(operator, "/agents/ada/")
    assert "This agent is archived." in page
    assert 'action="/agents/ada/switches/issues/"' not in page
    assert "/agents/ada/preview/" not in page
    # The menu of a switch, which is fetched when it is opened.
    assert (
        "<button" not in operator.get("/agents/ada/effect/issues/", headers=dashboard.HTMX).content.decode()
    )
    assert operator.get("/agents/ada/history/").status_code == 200
    assert operator.get("/agents/ada/preview/").status_code == 404
    assert operator.get("/agents/ada/sessions/").status_code == 404


def test_forged_posts_do_not_change_an_archived_agent(operator: Client, archived: None) -> None:
    before = dashboard.latest_entry()
    flipped = dashboard.switch(operator, "issues", "false", "true", confirm="yes")
    assert flipped.status_code == 422
    assert "bring it back first" in flipped.content.decode()
    seen = '{"ada": {"issues": true}}'
    dashboard.post(operator, "/bulk/", on="false", seen=seen, confirm="yes", htmx=False)
    dashboard.post(operator, "/agents/ada/settings/change/", htmx=False, title="X", was="{}", confirm="yes")
    assert dashboard.latest_entry() == before
    assert models.ToolkitSwitch.objects.get(agent__key="ada").on


def test_an_empty_list_of_archived_agents_shows_an_empty_state(operator: Client) -> None:
    assert "No archived agents" in text(operator, "/agents/?archived=1")


def test_a_viewer_sees_an_archived_agent_but_cannot_restore_it(viewer: Client, archived: None) -> None:
    page = text(viewer, HOME)
    assert 'id="archive-title"' in page
    assert f'action="{ARCHIVE}"' not in page
    assert dashboard.post(viewer, ARCHIVE, htmx=False, archived="no").status_code == 403


def test_setting_operators_rejects_stale_forms_and_can_be_undone(
    admin_client: Client, django_user_model: Any
) -> None:
    for name in ("anna", "ben"):
        django_user_model.objects.create_user(name)
    path = "/agents/ada/operators/"
    assert f'action="{path}"' in text(admin_client, HOME)
    assert dashboard.post(admin_client, path, htmx=False, user=["anna"]).status_code == 303
    assert "Operators of ada only: anna." in text(admin_client, HOME)
    stale = dashboard.post(admin_client, path, htmx=False, user=["ben"])
    assert stale.status_code == 303
    assert "Not changed." in text(admin_client, HOME)
    named = dashboard.latest_entry()
    assert (named.action, named.after) == ("agent.operators", {"operators": ["anna"]})
    dashboard.post(admin_client, f"/audit/{named.pk}/undo/", htmx=False)
    assert "no one else" in text(admin_client, HOME)


def test_an_operator_sees_but_cannot_change_the_operators_of_an_agent(
    operator: Client, django_user_model: Any
) -> None:
    django_user_model.objects.create_user("anna")
    roles.set_operators(SETUP, "ada", ["anna"])
    page = text(operator, HOME)
    assert '<span class="given">anna</span>' in page
    assert 'action="/agents/ada/operators/"' not in page
