"""Tests that client calls are admitted, reported and recorded over HTTP, with the required permissions."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from tests.api.conftest import SETUP, Asking, of_operator
from toolbelt import models
from toolbelt.control.config import belts
from toolbelt.control.people import tokens

ADMIT = "/agents/ada/calls/admit"
BELT: dict[str, Any] = {
    "tools": [
        {
            "key": "refund",
            "input_schema": {
                "type": "object",
                "properties": {"order": {"type": "integer"}},
                "required": ["order"],
            },
        }
    ],
    "agents": [{"key": "ada", "tools": [{"tool": "refund", "options": {"limit": 50}}]}],
}
REFUND = {"tool": "refund", "arguments": {"order": 7}}


@pytest.fixture
def ada(db: None) -> Asking:
    belts.import_(SETUP, BELT)
    return Asking(tokens.issue(SETUP, agent="ada").text)


def admit(ada: Asking) -> str:
    (answer,) = ada.post(ADMIT, {"calls": [REFUND]}).json()["calls"]
    return str(answer["call_id"])


def report(api_client: Asking, call_id: str, **body: Any) -> Any:
    return api_client.post(f"/agents/ada/calls/{call_id}/outcome", {"outcome": "ok", **body})


def test_calls_are_admitted_independently(ada: Asking) -> None:
    wrong = {"tool": "refund", "arguments": {}}
    answer = ada.post(ADMIT, {"session": "s1", "calls": [REFUND, wrong]})
    first, second = answer.json()["calls"]
    assert answer.status_code == 200
    assert (first["is_error"], first["tool"], first["options"]) == (False, "refund", {"limit": 50})
    assert first["report_by"].endswith("Z")
    assert (second["is_error"], second["code"]) == (True, "invalid-arguments")
    assert [error["path"] for error in second["errors"]] == [""]


def test_an_outcome_is_reported_once(ada: Asking) -> None:
    call_id = admit(ada)
    assert report(ada, call_id, duration_ms=5, result_bytes=2).status_code == 204
    again = report(ada, call_id)
    assert (again.status_code, again.json()["code"]) == (409, "refused")
    row = models.CallRecord.objects.get()
    assert (row.outcome, row.duration_ms, row.result_bytes) == ("ok", 5, 2)


def test_an_operators_token_cannot_report_a_call_admitted_for_an_agents_token(ada: Asking) -> None:
    call_id = admit(ada)
    operator = Asking(of_operator("olga", superuser=True, scope="write"))
    assert report(operator, call_id).status_code == 404
    assert models.CallRecord.objects.get().outcome == "admitted"


def test_another_agents_token_finds_neither_agent_nor_call(ada: Asking) -> None:
    call_id = admit(ada)
    belts.import_(SETUP, {"agents": [{"key": "bob"}]})
    bob = Asking(tokens.issue(SETUP, agent="bob").text)
    assert bob.post(ADMIT, {"calls": [REFUND]}).status_code == 404
    assert report(bob, call_id).status_code == 404


def test_a_read_only_token_cannot_admit_calls(ada: Asking) -> None:
    viewer = Asking(of_operator("vera", superuser=True, scope="read"))
    assert viewer.post(ADMIT, {"calls": [REFUND]}).status_code == 403
    assert not models.CallRecord.objects.exists()


@pytest.mark.parametrize(
    "body",
    [
        {"outcome": "fine"},
        {"duration_ms": -1},
        {"duration_ms": 1.5},
        {"result_bytes": True},
        {"content": "x"},
    ],
)
def test_an_invalid_report_is_refused_with_its_path(ada: Asking, body: dict[str, Any]) -> None:
    answer = report(ada, admit(ada), **body)
    assert answer.status_code == 422
    (problem,) = answer.json()["errors"]
    assert problem["path"].endswith(next(iter(body)))
    assert models.CallRecord.objects.get().outcome == "admitted"


@pytest.mark.parametrize("calls", [[], [REFUND] * 33])
def test_a_request_without_calls_or_with_more_than_32_is_refused(ada: Asking, calls: Any) -> None:
    assert ada.post(ADMIT, {"calls": calls}).status_code == 422


def test_a_secret_in_an_error_is_masked(ada: Asking) -> None:
    from toolbelt.runtime import masking

    masking.add("sesame-4711")
    report(ada, admit(ada), outcome="tool-failed", error="key sesame-4711 was wrong")
    assert models.CallRecord.objects.get().error == "key [withheld] was wrong"


def test_a_call_that_ran_without_admission_is_recorded_with_a_note(ada: Asking) -> None:
    call = {**REFUND, "outcome": "tool-failed", "error": "Lost.", "seconds_ago": 3600, "duration_ms": 40}
    answer = ada.post("/agents/ada/calls/record", {"session": "s1", "calls": [call]})
    assert answer.status_code == 204
    row = models.CallRecord.objects.get()
    assert (row.tool, row.session, row.outcome) == ("refund", "s1", "tool-failed")
    assert row.error == "Ran without an admission, because Toolbelt could not be reached. Lost."
    assert row.duration_ms >= 40
    assert 3500 < (timezone.now() - row.at).total_seconds() < 3700


def test_only_client_tools_can_be_recorded(ada: Asking) -> None:
    call = {"tool": "load_tools", "arguments": {}, "outcome": "ok"}
    answer = Asking(of_operator("olga", superuser=True)).post("/agents/ada/calls/record", {"calls": [call]})
    assert answer.status_code == 422
    assert "runs no tool named 'load_tools'" in answer.json()["detail"]
    assert not models.CallRecord.objects.exists()


def test_recording_does_not_tell_an_agent_which_client_tools_exist(ada: Asking) -> None:
    belts.import_(SETUP, {"tools": [{"key": "not_granted"}]})
    answers = set()
    for tool in ("not_granted", "unknown", "load_tools", "refund"):
        call: dict[str, Any] = {"tool": tool, "arguments": {}, "outcome": "ok"}
        answer = ada.post("/agents/ada/calls/record", {"calls": [call]})
        answers.add((answer.status_code, answer.content))
    assert answers == {(204, b"")}
    assert not models.CallRecord.objects.filter(tool__in=["unknown", "load_tools"]).exists()


def test_the_other_calls_of_a_request_are_recorded_beside_an_unknown_one(ada: Asking) -> None:
    unknown = {"tool": "unknown", "arguments": {}, "outcome": "ok"}
    ada.post("/agents/ada/calls/record", {"calls": [unknown, {**REFUND, "outcome": "ok"}]})
    assert models.CallRecord.objects.get().tool == "refund"
