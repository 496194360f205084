"""Tests that the API proves changes, alone and with dry runs, for those who may make them and view calls."""

from __future__ import annotations

from typing import Any

import pytest

from tests import factories
from tests.api.conftest import SETUP, Asking, of_operator
from tests.factories import call as recorded
from toolbelt.api import application, reference
from toolbelt.control.access import switches
from toolbelt.control.catalog import entries
from toolbelt.control.config import belts

ON = {"on": False, "dry_run": True, "prove": 7}
RULE = {"key": "no", "effect": "deny", "tools": ["kb__find"]}
# The writes that change nothing by which recorded calls are decided again, or that something else proves.
NOT_PROVED = {
    "what agents do": (
        "ask_for_surface",
        "call_tool",
        "check_call",
        "admit_calls",
        "report_outcome",
        "record_calls",
        "equip_session",
        "declare_tools",
    ),
    "about one call or session": (
        "approve_call",
        "revoke_approval",
        "reject_call",
        "edit_call",
        "evict_session",
        "clear_label",
    ),
    "about conversations, which no record names": ("purge_tool", "purge_toolkit"),
    "about people and servers": (
        "set_operators",
        "issue_token",
        "revoke_token",
        "refresh_plugin",
        "end_sign_in",
        "test_alert",
    ),
    "proofs, and what POST /proofs proves": (
        "prove_change",
        "propose_belt",
        "create_draft",
        "discard_draft",
        "apply_draft",
        "observe_draft",
        "schedule_draft",
        "roll_out_draft",
        "stop_draft",
    ),
}


@pytest.fixture(autouse=True)
def calls(stored: None) -> None:
    facts = factories.facts("kb__find")
    for session in ("s1", "s2"):
        recorded("kb__find", agent="bob", session=session, days_ago=5, **facts)


def test_a_belt_is_proved(olga: Asking) -> None:
    revision = belts.revision()
    answer = olga.post("/proofs", {"belt": {"agents": [{"key": "bob"}]}})

    assert answer.status_code == 200
    proof = answer.json()
    assert (proof["refused"], proof["load_first"], proof["coverage"], proof["unproven"]) == (2, 0, 1.0, {})
    [row] = proof["rows"]
    assert (row["agent"], row["tool"], row["today"], row["changed"]) == (
        "bob",
        "kb__find",
        "admitted",
        "refused",
    )
    assert (row["calls"], row["ran"], row["sessions"], len(row["examples"])) == (2, 2, 2, 2)
    assert belts.revision() == revision


def test_an_undo_is_proved(olga: Asking) -> None:
    change = switches.flip(SETUP, "bob", "reading", False)

    proof = olga.post("/proofs", {"undo": change.entry, "days": 30}).json()

    assert (proof["admitted"], proof["refused"]) == (2, 0)


@pytest.mark.parametrize(
    ("method", "address", "body"),
    [
        ("PUT", "/agents/bob/switches/reading", ON),
        ("PUT", "/agents/bob/overrides/kb__find", ON),
        ("DELETE", "/agents/bob/switches/reading?dry_run=true&prove=7", None),
        ("PATCH", "/agents/bob/tools-config?dry_run=true&prove=7", {"reading": False}),
        ("PUT", "/agents/bob/tools-config?dry_run=true&prove=7", {}),
        ("PATCH", "/tools/kb__find", {"changes": {"blocked": True}, "dry_run": True, "prove": 7}),
        ("PATCH", "/agents/bob", {"changes": {"archived": True}, "dry_run": True, "prove": 7}),
        ("PUT", "/belt?dry_run=1&prove=7", {"agents": [{"key": "bob"}]}),
        ("POST", "/gate-rules?dry_run=true&prove=7", RULE),
        ("DELETE", "/agents/bob?dry_run=true&prove=7", None),
    ],
)
def test_every_dry_run_can_be_proved(olga: Asking, method: str, address: str, body: Any) -> None:
    revision = belts.revision()
    answer = olga.send(method, address, body)

    assert answer.status_code == 200, answer.json()
    past = answer.json()["past"]
    assert (past["days"], past["refused"]) == (7, 2)
    assert past["sentence"] == "In the last 7 days this would have refused 2 calls of 1 agent in 2 sessions."
    assert belts.revision() == revision


def test_every_write_of_the_configuration_can_be_proved_and_saved_as_a_draft() -> None:
    document = application.api.get_openapi_schema(path_prefix=reference.PREFIX)
    models_ = document["components"]["schemas"]
    found, lacking = set(), set()
    for method, _, operation in application.described_operations(document):
        if method.upper() == "GET":
            continue
        names = {parameter["name"] for parameter in operation.get("parameters", ())}
        for content in operation.get("requestBody", {}).get("content", {}).values():
            model = content["schema"].get("$ref", "").rpartition("/")[2]
            names |= models_.get(model, {}).get("properties", {}).keys()
        found.add(operation["operationId"])
        if not {"dry_run", "prove", "draft"} <= names:
            lacking.add(operation["operationId"])

    assert lacking == {name for names in NOT_PROVED.values() for name in names}
    assert len(found - lacking) > 20


def test_an_undo_is_tried_and_proved(olga: Asking) -> None:
    entries.create(SETUP, "gate_rule", {**RULE, "effect": "ask"})
    [change] = olga.get("/changes", {"limit": 1}).json()["items"]
    revision = belts.revision()

    answer = olga.post(f"/changes/{change['id']}/undo", {"dry_run": True, "prove": 7}).json()

    assert (answer["dry_run"], answer["change"], answer["past"]["admitted"]) == (True, None, 2)
    assert belts.revision() == revision


def test_a_removal_is_saved_as_a_draft(olga: Asking) -> None:
    answer = olga.delete("/agents/bob?dry_run=true&draft=No+bob").json()

    assert olga.get(f"/drafts/{answer['draft']}").json()["title"] == "No bob"
    assert olga.get("/agents/bob").status_code == 200


@pytest.mark.parametrize("address", ["/agents/bob", "/agents/bob/switches/reading"])
def test_a_delete_that_asks_for_a_dry_run_in_a_body_changes_nothing(olga: Asking, address: str) -> None:
    revision = belts.revision()
    answer = olga.delete(address, {"dry_run": True})

    assert (answer.status_code, "in the address" in answer.json()["detail"]) == (422, True)
    assert belts.revision() == revision


def test_only_a_dry_run_is_proved(olga: Asking) -> None:
    answer = olga.delete("/agents/bob?prove=7")

    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, "prove")
    assert olga.post("/gate-rules?prove=7", RULE).status_code == 422
    assert olga.get("/agents/bob").status_code == 200


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ([{"kind": "agent", "name": "bob", "key": "reading", "after": False}], 2),
        ([{"kind": "agent", "name": "bob", "key": "kb__find", "after": None}], 0),
        ([{"kind": "toolkit", "name": "reading", "after": {"members": ["kb__read"]}}], 2),
        ([{"kind": "agent", "name": "bob", "after": None}], 2),
        (
            [
                {"kind": "toolkit", "name": "more", "after": {"members": ["kb__find"]}},
                {"kind": "agent", "name": "bob", "key": "more", "after": True},
                {"kind": "agent", "name": "bob", "key": "reading", "after": None},
            ],
            0,
        ),
        ([{"kind": "gate_rule", "name": "no", "after": {"effect": "deny", "tools": ["kb__find"]}}], 2),
    ],
)
def test_changes_are_proved_in_their_order(olga: Asking, changes: list[Any], refused: int) -> None:
    revision = belts.revision()

    answer = olga.post("/proofs", {"changes": changes})

    assert answer.status_code == 200, answer.json()
    assert answer.json()["refused"] == refused
    assert belts.revision() == revision


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"kind": "toolkit", "name": "reading", "key": "x", "after": True}, "changes[0].key"),
        ({"kind": "agent", "name": "bob", "key": "reading", "after": "on"}, "changes[0].after"),
        ({"kind": "toolkit", "name": "reading", "after": 3}, "changes[0].after"),
        (
            {"kind": "toolkit", "name": "reading", "after": {"members": ["nothing"]}},
            "changes[0].toolkits.reading.members[0]",
        ),
    ],
)
def test_a_change_that_cannot_be_made_is_named_by_its_number(
    olga: Asking, change: dict[str, Any], path: str
) -> None:
    answer = olga.post("/proofs", {"changes": [change]})

    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, path)
    unknown = {"kind": "nothing", "name": "x", "after": None}
    assert olga.post("/proofs", {"changes": [unknown]}).status_code == 404


@pytest.mark.parametrize(
    ("permission", "change"),
    [
        ("change_agent", {"kind": "agent", "name": "bob", "key": "reading", "after": False}),
        ("change_toolkit", {"kind": "toolkit", "name": "reading", "after": {"title": "R"}}),
        ("add_toolkit", {"kind": "toolkit", "name": "more", "after": {"members": ["kb__find"]}}),
        ("delete_agent", {"kind": "agent", "name": "bob", "after": None}),
    ],
)
def test_changes_take_the_permission_to_make_them(permission: str, change: dict[str, Any]) -> None:
    allowed = Asking(of_operator("may", permission, "view_callrecord"))
    refused = Asking(of_operator("may_not", "view_callrecord"))

    assert allowed.post("/proofs", {"changes": [change]}).status_code == 200
    assert refused.post("/proofs", {"changes": [change]}).status_code == 403


def test_calls_are_decided_as_everything_was_then_if_asked(olga: Asking) -> None:
    body = {"changes": [{"kind": "agent", "name": "bob", "key": "reading", "after": False}], "basis": "then"}

    proof = olga.post("/proofs", body).json()

    assert (proof["basis"], proof["refused"], proof["unproven"]) == ("then", 0, {"no-revision": 2})
    assert olga.post("/proofs", {**body, "basis": "someday"}).status_code == 422


@pytest.mark.parametrize("days", [0, 366])
def test_the_days_are_limited(olga: Asking, days: int) -> None:
    assert olga.put("/agents/bob/switches/reading", {**ON, "prove": days}).status_code == 422
    assert olga.post("/proofs", {"belt": {}, "days": days}).status_code == 422


def test_what_is_not_one_change_is_refused(olga: Asking) -> None:
    for body in ({}, {"belt": {}, "undo": 1}, {"belt": {"agents": [{"key": "bob", "kind": "odd"}]}}):
        assert olga.post("/proofs", body).status_code == 422
    assert olga.post("/proofs", {"undo": 987654}).status_code == 404


@pytest.mark.parametrize(
    ("method", "address", "body"),
    [
        ("PUT", "/agents/bob/switches/reading", {"on": False, "prove": 7}),
        ("PUT", "/belt?prove=7", {"agents": [{"key": "bob"}]}),
    ],
)
def test_a_change_that_is_made_is_not_proved_instead(
    olga: Asking, method: str, address: str, body: Any
) -> None:
    answer = olga.send(method, address, body)

    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, "prove")
    assert belts.export()["agents"][1]["tools_config"] == {"reading": True}


def test_a_proof_needs_the_permission_to_view_calls_and_to_make_the_change() -> None:
    flipping = Asking(of_operator("flip", "change_agent"))
    viewing = Asking(of_operator("view", "view_callrecord"))

    assert flipping.put("/agents/bob/switches/reading", {**ON, "prove": None}).status_code == 200
    assert flipping.put("/agents/bob/switches/reading", ON).status_code == 403
    assert viewing.post("/proofs", {"belt": {"agents": [{"key": "bob"}]}}).status_code == 403
    assert viewing.put("/agents/bob/switches/reading", ON).status_code == 403


def test_an_agent_proves_nothing(bob: Asking, anonymous: Asking) -> None:
    assert bob.post("/proofs", {"belt": {}}).status_code == 403
    assert anonymous.post("/proofs", {"belt": {}}).status_code == 401
