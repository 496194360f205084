"""Tests of creating an agent blank, with a loadout, or as a copy."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import models as auth
from django.test import Client

from tests.web import dashboard
from toolbelt.control.catalog import entries
from toolbelt.control.reports import queries
from toolbelt.runtime import surfaces
from toolbelt.testing import OPERATOR

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]

SURE = OPERATOR.replace(confirm=True)
NEW = "/new/agent/"
CREATE = "/new/agent/save/"


@pytest.fixture
def agent_creator(operator: Client, olive: auth.User) -> Client:
    """Return the browser of an operator who may also create and delete agents."""
    olive.user_permissions.add(*auth.Permission.objects.filter(codename__in=["add_agent", "delete_agent"]))
    return operator


def create(browser: Client, **fields: str) -> Any:
    return browser.post(CREATE, fields)


@pytest.mark.parametrize(
    ("start", "entry"),
    [
        ("", {"key": "eve", "title": "Eve"}),
        ("loadout:research", {"key": "eve", "title": "Eve", "loadout": "research"}),
    ],
)
def test_creating_a_blank_or_equipped_agent_redirects_to_connect(
    agent_creator: Client, start: str, entry: dict[str, str]
) -> None:
    response = create(agent_creator, key="eve", title="Eve", start=start)
    assert (response.status_code, response.headers["Location"]) == (303, "/agents/eve/connect/")
    assert entries.read("agent", "eve") == entry
    made = dashboard.latest_entry()
    assert (made.action, made.actor, made.via) == ("agent.create", "olive", "screen")
    notice = agent_creator.get("/agents/eve/connect/").context["page"].notice
    assert (notice.text, notice.undo) == ("Agent Eve `eve` created.", made.pk)


def test_a_copy_has_the_same_configuration_and_can_be_undone(agent_creator: Client) -> None:
    assert create(agent_creator, key="ada-2", start="agent:ada").status_code == 303
    assert entries.read("agent", "ada-2") == {**entries.read("agent", "ada"), "key": "ada-2"}
    assert surfaces.ask("ada-2").fingerprint == surfaces.ask("ada").fingerprint
    made = dashboard.latest_entry()
    assert made.reason == "Duplicated from ada."
    dashboard.post(agent_creator, f"/audit/{made.pk}/undo/", htmx=False)
    assert agent_creator.get("/agents/ada-2/").status_code == 404


def test_a_copy_can_have_its_own_title(agent_creator: Client) -> None:
    create(agent_creator, key="ada-2", title="Second", start="agent:ada")
    assert entries.read("agent", "ada-2")["title"] == "Second"


@pytest.mark.parametrize(
    ("wrong", "field", "says"),
    [
        ({"key": "bob"}, "key", "already exists"),
        ({"key": "a b"}, "key", "a b"),
        ({"key": ""}, "key", "required"),
        ({"key": "x" * 65}, "key", "64"),
        ({"start": "loadout:nonsense"}, "start", "nonsense"),
        ({"start": "agent:nobody"}, "start", "nobody"),
    ],
)
def test_errors_are_shown_at_their_field_and_nothing_is_created(
    agent_creator: Client, wrong: dict[str, str], field: str, says: str
) -> None:
    before = set(queries.agent_keys())
    response = create(agent_creator, **{"key": "eve", "start": "", **wrong})
    assert response.status_code in (409, 422)
    form = response.context["page"].form
    assert says in " ".join(form.errors[field])
    assert form["start"].value() == wrong.get("start", "")
    assert set(queries.agent_keys()) == before


def test_the_form_offers_every_loadout_and_agent(agent_creator: Client) -> None:
    html = agent_creator.get(f"{NEW}?from=agent:bob").content.decode()
    assert '<option value="agent:bob" selected>Copy of bob</option>' in html
    assert '<option value="loadout:research">Loadout research</option>' in html


def test_creating_agents_requires_permission(operator: Client) -> None:
    assert operator.get(NEW).status_code == 403
    assert create(operator, key="eve").status_code == 403
    for address in ("/agents/", "/agents/ada/settings/"):
        assert NEW not in operator.get(address).content.decode()


@pytest.mark.parametrize("start", ["", "loadout:research", "agent:ada"])
def test_a_new_agent_can_be_read_only_from_the_start(agent_creator: Client, start: str) -> None:
    assert create(agent_creator, key="eve", start=start, read_only="yes").status_code == 303
    assert entries.read("agent", "eve")["denied_risks"] == ["writes", "destructive", "unstated"]
    assert agent_creator.get("/agents/eve/").context["page"].agent.is_read_only


def test_a_copy_of_an_agent_that_denies_risks_denies_them_too(agent_creator: Client) -> None:
    entries.change(SURE, "agent", "ada", {"denied_risks": ["destructive"]})
    assert create(agent_creator, key="ada-2", start="agent:ada").status_code == 303
    assert entries.read("agent", "ada-2")["denied_risks"] == ["destructive"]
