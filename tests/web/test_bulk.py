"""Tests that a bulk change previews its effect and then applies exactly that."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from tests import factories
from tests.web import dashboard
from toolbelt import models
from toolbelt.control.access import bulk
from toolbelt.control.catalog import entries
from toolbelt.runtime import surfaces
from toolbelt.testing import OPERATOR

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("belt")]


def overrides() -> dict[str, bool]:
    """Return the overrides of ada without the initial one."""
    return {key: on for key, on in dashboard.stored_agent().overrides.items() if key != "clock__now"}


def confirmation(response: Any) -> Any:
    """Return the confirmation that a response asks for."""
    return response.context["confirmation"]


def fields(response: Any) -> dict[str, Any]:
    return dict(confirmation(response).fields)


@pytest.mark.parametrize("htmx", [True, False])
def test_a_bulk_change_from_the_access_page_asks_for_confirmation_first(operator: Client, htmx: bool) -> None:
    response = operator.get(
        "/agents/ada/bulk/?q=issue&set=tools-false", headers=dashboard.HTMX if htmx else {}
    )

    question = confirmation(response)
    assert question.title == "Turn off 2 tools for ada?"
    assert [difference.label for difference in question.differences] == [
        "github__issue_read",
        "github__issue_write",
    ]
    assert json.loads(fields(response)["seen"]) == {
        "ada": {"github__issue_read": None, "github__issue_write": None}
    }
    assert overrides() == {}
    if htmx:
        assert (response.headers["HX-Reswap"], response.headers["HX-Replace-Url"]) == ("none", "false")


def test_only_the_selected_sections_are_changed(operator: Client) -> None:
    picked = "/agents/ada/bulk/?set=toolkits-false&pick=toolkit-issues&pick=plugin-acme.clock"
    assert json.loads(fields(operator.get(picked))["seen"]) == {"ada": {"issues": True}}
    tools = operator.get("/agents/ada/bulk/?set=tools-false&q=write&pick=toolkit-issues")
    assert json.loads(fields(tools)["seen"]) == {"ada": {"github__issue_write": None}}


def test_a_bulk_change_is_one_batch_and_is_undone_as_a_whole(operator: Client) -> None:
    question = operator.get("/agents/ada/bulk/?q=issue&set=tools-false")
    response = dashboard.post(operator, "/bulk/", htmx=False, **fields(question))

    assert (response.status_code, response.headers["Location"]) == (303, "/agents/ada/?q=issue")
    assert overrides() == {"github__issue_read": False, "github__issue_write": False}
    entry = dashboard.latest_entry()
    assert models.AuditEntry.objects.filter(batch=entry.batch).count() == 2
    assert "2 changes for ada: off." in dashboard.text(operator.get("/agents/ada/"))
    dashboard.post(operator, f"/audit/{entry.pk}/undo/", whole="yes")
    assert overrides() == {}


def test_an_htmx_bulk_change_returns_the_displayed_rows(operator: Client) -> None:
    sent = fields(operator.get("/agents/ada/bulk/?q=issue&set=tools-false"))
    response = operator.post("/bulk/", {"tools": "github__issue_read", **sent}, headers=dashboard.HTMX)

    assert [row.stored for row in response.context["page"].rows] == ["false"]
    assert response.context["page"].notice.whole


def test_a_bulk_change_switches_the_displayed_toolkits(operator: Client) -> None:
    sent = fields(operator.get("/agents/ada/bulk/?q=releases&set=toolkits-false"))
    assert json.loads(sent["seen"]) == {"ada": {"releases": None}}


@pytest.mark.parametrize(
    ("address", "seen"),
    [
        ("/bulk/tools/?q=papers&every=yes&set=tools-true&for=ada", {"ada": {"papers": None}}),
        ("/bulk/agents/?q=ada&key=releases&set=toolkits-false", {"ada": {"releases": None}}),
        ("/bulk/toolkits/releases/?set=toolkits-false&for=ada", {"ada": {"releases": None}}),
    ],
)
def test_bulk_changes_from_other_lists_ask_for_confirmation(
    operator: Client, address: str, seen: dict[str, Any]
) -> None:
    assert json.loads(fields(operator.get(address))["seen"]) == seen


def test_the_confirmation_lists_each_affected_agent(operator: Client) -> None:
    question = confirmation(operator.get("/bulk/tools/?tool=papers&for=*&set=tools-true"))
    assert {"ada", "bob"} <= {difference.label for difference in question.differences}
    assert question.title.startswith("Turn on papers for ")


def test_a_bulk_change_of_tools_requires_tools_and_agents(operator: Client) -> None:
    for query, missing in (
        ("for=*", "Select tools first, or choose all matching tools."),
        ("tool=papers", "Choose agents first, or All agents."),
    ):
        response = operator.get(f"/bulk/tools/?set=tools-true&{query}", headers=dashboard.HTMX)
        # The page is not replaced, so the selection is kept.
        assert (response.status_code, response.headers["HX-Reswap"]) == (200, "none")
        assert "HX-Redirect" not in response.headers
        assert missing in dashboard.text(response)


def test_only_the_selected_tools_are_changed(operator: Client) -> None:
    question = operator.get("/bulk/tools/?q=issue&tool=github__issue_read&for=ada&set=tools-unset")
    assert question.status_code == 303  # redirected: there is no override to reset
    question = operator.get("/bulk/tools/?q=issue&tool=github__issue_read&for=ada&set=tools-true")
    assert json.loads(fields(question)["seen"]) == {"ada": {"github__issue_read": None}}


def test_turning_off_skips_tools_that_are_already_off(operator: Client) -> None:
    entries.change(OPERATOR.replace(confirm=True), "agent", "ada", {"tools_config": {"papers": False}})
    having = json.loads(fields(operator.get("/bulk/tools/?every=yes&for=ada&set=tools-false"))["seen"])
    every = json.loads(
        fields(operator.get("/bulk/tools/?every=yes&also_off=yes&for=ada&set=tools-false"))["seen"]
    )
    granted = {tool.name for tool in surfaces.ask("ada").tools}
    assert granted <= {*having["ada"]} < {*every["ada"]}
    assert "left out: nothing grants" in " ".join(
        confirmation(operator.get("/bulk/tools/?every=yes&for=ada&set=tools-false")).facts
    )


def test_turning_off_includes_tools_that_are_only_unavailable(operator: Client) -> None:
    address = "/bulk/tools/?tool=github__issue_read&for=ada&set=tools-false"
    models.Plugin.objects.filter(name="github").update(status="failed")
    assert json.loads(fields(operator.get(address))["seen"]) == {"ada": {"github__issue_read": None}}


def test_turning_off_includes_tools_that_subagents_may_get(operator: Client) -> None:
    factories.agent("cleo")
    address = "/bulk/tools/?tool=github__merge&for=cleo&set=tools-false"
    assert operator.get(address).status_code == 303
    models.Agent.objects.filter(key="cleo").update(subagent_kinds=["explore"])
    assert json.loads(fields(operator.get(address))["seen"]) == {"cleo": {"github__merge": None}}


def test_a_bulk_change_without_effect_is_reported(operator: Client) -> None:
    response = operator.get("/bulk/toolkits/issues/?set=toolkits-true&for=ada")
    assert response.status_code == 303
    assert "No changes: it is already on." in dashboard.text(operator.get("/toolkits/issues/"))


def test_a_concurrent_change_is_not_overwritten(operator: Client) -> None:
    sent = fields(operator.get("/agents/ada/bulk/?q=issue&set=tools-false"))
    dashboard.override(operator, "github__issue_read", "true", "unset")
    dashboard.post(operator, "/bulk/", htmx=False, **sent)

    assert overrides() == {"github__issue_read": True}
    assert "was changed by you, in another tab" in dashboard.text(operator.get("/agents/ada/"))


def test_the_confirmation_names_agents_skipped_by_their_budget(operator: Client) -> None:
    entries.change(
        OPERATOR.replace(confirm=True), "agent", "ada", {"budget": {"max_tools": 4, "on_exceed": "refuse"}}
    )
    question = confirmation(operator.get("/bulk/tools/?tool=papers&for=*&set=tools-true"))
    assert [
        reason for reason in question.reasons if reason.startswith("Skipped: The budget of ada is 4 tools")
    ]


@pytest.mark.parametrize("address", ["/agents/ada/bulk/?set=tools-true", "/bulk/tools/?set=tools-true"])
def test_a_viewer_cannot_open_bulk_changes(viewer: Client, address: str) -> None:
    assert viewer.get(address).status_code == 403


@pytest.mark.parametrize(
    "seen",
    [
        "[]",
        "{}",
        '{"ada": {"papers": 1}}',
        '{"ada": []}',
        "nonsense",
        pytest.param("[" * 100_000, id="deeply-nested"),
    ],
)
def test_an_invalid_seen_field_changes_nothing(operator: Client, seen: str) -> None:
    dashboard.post(operator, "/bulk/", htmx=False, on="true", seen=seen, confirm="yes")
    assert not models.AuditEntry.objects.exists()


def test_lists_offer_bulk_actions_only_to_operators(operator: Client, viewer: Client) -> None:
    for address in ("/agents/", "/tools/"):
        assert operator.get(address).context["page"].bulk is not None
        assert viewer.get(address).context["page"].bulk is None


def test_a_bulk_change_above_the_limit_is_refused(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "MAX_CHANGES", 1)
    operator.get("/agents/ada/bulk/?set=tools-true")
    assert "narrow the filter" in dashboard.text(operator.get("/agents/ada/"))
