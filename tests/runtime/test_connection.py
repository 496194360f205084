"""Tests that a program gets the same answers in process as over HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from tests import concurrently
from tests.adapters import served
from toolbelt import models, testing
from toolbelt.adapters.connection import http, protocol
from toolbelt.control.access import switches
from toolbelt.control.agents import call_approvals
from toolbelt.control.catalog import entries
from toolbelt.control.config import belts
from toolbelt.control.people import tokens
from toolbelt.core import errors
from toolbelt.runtime import connection
from toolbelt.runtime.calls import approval_waits

CHOICE = {"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
BELT: dict[str, Any] = {
    "tools": [
        {"key": "clock", "description": "Tells the time.", "default_on": True},
        {"key": "calc"},
        {"key": "odd", "input_schema": CHOICE},
    ],
    "plugins": [
        {"name": "shop", "namespace": "shop", "trusted": True, "declared_by": ["seller"]},
        {"name": "bank"},
    ],
    "toolkits": [
        {
            "key": "desk",
            "members": ["clock", "calc"],
            "triggers": [{"name": "time", "any": ["what time"], "focus": ["clock"]}],
        }
    ],
    "agents": [{"key": "ada", "allowed_toolkits": ["desk"]}, {"key": "seller", "loadout": "shop"}],
    "loadouts": [{"name": "shop", "plugins": ["shop"]}],
}
RUN = protocol.Run(session="s1", request_id="r1")

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def stored(db: None) -> None:
    belts.import_(testing.OPERATOR, BELT)


@pytest.fixture(params=["in process", "over HTTP"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def ada(transport: str) -> protocol.BlockingConnection:
    return connect(transport, "ada")


@pytest.fixture
def seller(transport: str) -> protocol.BlockingConnection:
    return connect(transport, "seller")


def connect(transport: str, agent: str) -> protocol.BlockingConnection:
    """Connect as an agent."""
    if transport == "in process":
        return connection.BlockingLocal(agent)
    token = tokens.issue(testing.OPERATOR, agent=agent).text
    return http.BlockingHttp("http://testserver", agent, token, transport=served.transport())


def test_a_toolkit_loaded_in_a_run_is_active_in_the_next_run(ada: protocol.BlockingConnection) -> None:
    surface = ada.surface(RUN, message="What time is it?", form="vercel")
    assert surface["provider"]["activeTools"] == surface["active_tools"]
    assert surface["directive"]["active_tools"] == ["clock"]

    loaded = ada.call(RUN, "load_tools", {"toolkit": "desk"})
    assert (loaded["is_error"], loaded["content"]["status"]) == (False, "loaded")
    assert "calc" not in ada.surface(RUN)["active_tools"]
    later = ada.surface(protocol.Run.begin("s1"), declared=surface["declared"])
    assert later["delta"] == {"added": ["calc"], "removed": [], "changed": []}


def test_a_switch_change_applies_to_the_next_request_of_the_same_run(
    ada: protocol.BlockingConnection,
) -> None:
    before = ada.surface(RUN)
    assert ada.surface(RUN) == before
    switches.override(testing.OPERATOR, "ada", "clock", False)
    assert "clock" not in ada.surface(RUN)["active_tools"]


def test_a_refused_call_is_returned_as_an_answer(ada: protocol.BlockingConnection) -> None:
    refused = ada.call(RUN, "calc", {})
    assert (refused["is_error"], refused["code"]) == (True, "tool-not-active")


def test_a_call_is_checked_before_it_is_made(ada: protocol.BlockingConnection) -> None:
    rule = {"key": "time", "effect": "ask", "tools": ["clock"]}
    entries.put(testing.OPERATOR, "gate_rule", rule)
    assert ada.check(RUN, "calc", {})["code"] == "tool-not-active"
    assert ("approval" in ada.check(RUN, "clock", {}), models.Approval.objects.count()) == (False, 0)
    asked = ada.check(RUN, "clock", {}, ask=True)
    assert (asked["would"], asked["approval"]["id"]) == ("wait", models.Approval.objects.get().key)


def test_a_provider_limit_raises_the_same_error_over_both_transports(
    ada: protocol.BlockingConnection,
) -> None:
    switches.override(testing.OPERATOR.replace(confirm=True), "ada", "odd", True)
    with pytest.raises(errors.ProviderLimit, match=r"tools\.odd\.input_schema"):
        ada.surface(RUN, form="anthropic")


def test_an_unknown_format_raises_the_same_error_over_both_transports(
    ada: protocol.BlockingConnection,
) -> None:
    with pytest.raises(errors.Invalid, match="format"):
        ada.surface(RUN, form="bard")


def test_an_unknown_agent_is_not_found() -> None:
    with pytest.raises(errors.NotFound, match="Did you mean ada"):
        connection.BlockingLocal("adda").surface(RUN)


@pytest.mark.django_db(transaction=True)
def test_the_async_connection_returns_the_same_answers() -> None:
    local, blocking = connection.Local("ada"), connection.BlockingLocal("ada")
    assert async_to_sync(local.surface)(RUN, form="mcp") == blocking.surface(RUN, form="mcp")
    listed = async_to_sync(local.call)(RUN, "list_toolkits", {})
    assert listed == blocking.call(RUN, "list_toolkits", {})
    assert async_to_sync(local.check)(RUN, "list_toolkits", {}) == {"would": "run"}


REFUND = {"name": "refund", "description": "Refund an order."}


def test_a_program_declares_its_tools_and_reports_admitted_calls(
    seller: protocol.BlockingConnection,
) -> None:
    declared = seller.declare("shop", [REFUND])
    assert declared["keys"] == {"refund": "shop__refund"}
    assert "shop__refund" in seller.surface(RUN)["active_tools"]

    admission = seller.admit(RUN, "shop__refund", {})
    assert admission["is_error"] is False
    seller.report(admission["call_id"], protocol.Outcome(result_bytes=7, duration_ms=3))
    row = models.CallRecord.objects.get()
    assert (row.tool, row.outcome, row.duration_ms, row.result_bytes) == ("shop__refund", "ok", 3, 7)

    seller.record(RUN, "shop__refund", {}, protocol.Outcome(code="cancelled"), 60)
    assert models.CallRecord.objects.filter(outcome="cancelled", request_id="r1").count() == 1


def test_a_refused_admission_equals_a_refused_call(seller: protocol.BlockingConnection) -> None:
    refused = seller.admit(RUN, "odd", {"a": 1})
    assert refused["is_error"]
    assert refused == seller.call(RUN, "odd", {"a": 1})


def test_declaring_a_plugin_without_permission_is_not_found(
    seller: protocol.BlockingConnection,
) -> None:
    with pytest.raises(errors.NotFound, match="no client plugin named 'bank'"):
        seller.declare("bank", [REFUND])


@pytest.mark.django_db(transaction=True)
def test_the_async_connection_declares_and_reports() -> None:
    local = connection.Local("seller")
    assert async_to_sync(local.declare)("shop", [REFUND])["keys"] == {"refund": "shop__refund"}
    admission = async_to_sync(local.admit)(RUN, "shop__refund", {})
    async_to_sync(local.report)(admission["call_id"], protocol.Outcome())
    async_to_sync(local.record)(RUN, "shop__refund", {}, protocol.Outcome(), 1)
    assert [*models.CallRecord.objects.values_list("outcome", flat=True)] == ["ok", "ok"]


@pytest.mark.django_db(transaction=True)
def test_a_program_on_an_event_loop_waits_for_approval(transactional_db: None) -> None:
    entries.put(testing.OPERATOR, "gate_rule", {"key": "ask", "effect": "ask", "plugins": ["shop"]})
    testing.declared("shop", [{"name": "sell"}])
    seller = connection.Local("seller")

    def approve() -> None:
        (approval,) = call_approvals.listed(state="pending")
        call_approvals.approve(testing.OPERATOR, approval.key, approval.shown)

    async def act() -> protocol.Document:
        admitting = asyncio.create_task(seller.admit(RUN, "shop__sell", {}))
        async with asyncio.timeout(20):
            while not approval_waits.waiting():  # noqa: ASYNC110 (set by another task)
                await asyncio.sleep(0.01)
        await concurrently.do(approve)
        return await admitting

    assert async_to_sync(act)()["call_id"]
