"""Tests that a smaller belt is proposed on a page, to those who may import it, and imported from there."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.test import Client

from tests import factories
from tests.factories import call as recorded
from tests.web import dashboard
from toolbelt import models
from toolbelt.control import least_privilege
from toolbelt.control.config import belts
from toolbelt.store import audit
from toolbelt.web import proposals

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt", "calls")]
ADDRESS = "/calls/proposal/"


@pytest.fixture
def calls(belt: None) -> None:
    # As if it had been configured before the period.
    models.AuditEntry.objects.all()._raw_delete(models.AuditEntry.objects.db)
    facts = factories.facts("papers")
    for at in range(60):
        recorded("papers", agent="ada", days_ago=at % 30, **facts)


def show(browser: Client, **query: str) -> Any:
    return browser.get(ADDRESS, {**query, "show": "yes"}).context["page"]


def test_the_page_answers_at_once_and_loads_the_proposal(
    administrator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = {"agent": "ada", "days": "7", "keep": "paper* git__x", "turn_off": "yes"}
    with monkeypatch.context() as patched:
        patched.delattr(least_privilege, "propose")
        page = administrator.get(ADDRESS, query).content.decode()

    loaded = html.unescape(re.findall(r'hx-get="(/calls/proposal/[^"]+)"', page)[0])
    assert loaded in html.unescape("".join(re.findall(r'<a class="button no-js" href="[^"]+"', page)))
    part = administrator.get(loaded, headers={"HX-Request": "true"})
    assert "<html" not in part.content.decode()
    assert [line.agent for line in part.context["page"].lines] == ["ada"]
    assert part.context["page"].keep == "paper* git__x"
    assert "<html" in administrator.get(loaded).content.decode()


def test_the_page_shows_what_is_cleared_and_its_proof_without_changing_anything(
    administrator: Client,
) -> None:
    before = (belts.revision(), audit.newest_id())

    page = show(administrator, agent="ada", turn_off="yes")

    [line] = page.lines
    assert (line.agent, line.is_nothing) == ("ada", False)
    assert (page.report.proof.is_nothing, page.report.proof.coverage) == (True, 1.0)
    assert [one.agent for one in page.checked.assessment.consequences] == ["ada"]
    assert (belts.revision(), audit.newest_id()) == before


def test_it_is_imported_as_it_was_shown_and_can_be_undone(administrator: Client) -> None:
    before = belts.export()
    page = show(administrator, agent="ada", turn_off="yes")
    assessment = page.checked.assessment

    dashboard.post(
        administrator,
        "/belt/import/",
        text=page.text,
        revision=assessment.revision,
        shown=assessment.digest,
    )

    assert show(administrator, agent="ada", turn_off="yes").checked is None
    dashboard.post(administrator, f"/audit/{audit.newest_id()}/undo/", whole="yes", confirm="yes")
    assert belts.export() == before


def test_agents_without_enough_calls_are_named_with_the_reason(administrator: Client) -> None:
    exceptions = {line.agent: bool(line.exception) for line in show(administrator).lines}

    assert exceptions == {"ada": False, "bob": True}


def test_an_impossible_pattern_is_said_and_an_unknown_agent_not_found(administrator: Client) -> None:
    page = show(administrator, keep="*x")
    assert (page.proposal, "*x" in page.problem) == (None, True)
    assert administrator.get(ADDRESS, {"agent": "nobody"}).status_code == 404


def test_many_agents_are_not_looked_at_at_once(
    administrator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proposals, "MAX_AGENTS", 1)

    page = administrator.get(ADDRESS)
    assert (page.context["page"].has_too_many, show(administrator).is_shown) == (True, False)
    assert ADDRESS + "?" not in page.content.decode()
    assert show(administrator, agent="ada").proposal is not None


@pytest.mark.parametrize("address", ["/calls/?view=unused&agent=ada", "/agents/ada/"])
def test_it_is_offered_beside_unused_tools_and_on_access_to_those_who_may_import_it(
    administrator: Client, call_viewer: Client, address: str
) -> None:
    link = re.compile(r'href="/calls/proposal/\?agent=ada"')

    assert link.search(administrator.get(address).content.decode())
    assert not link.search(call_viewer.get(address).content.decode())
    assert call_viewer.get(ADDRESS).status_code == 403
