"""Tests that an admission is answered in front of Django from cached data, exactly as Django would."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.conftest import SETUP
from tests.front.conftest import Request, Server
from toolbelt.control.access import switches
from toolbelt.control.config import belts
from toolbelt.runtime.records import record_writer

CALL = {"tool": "refund", "arguments": {"order": 7}}


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the call records that would have been written."""
    queued: list[Any] = []

    def enqueue(record: Any) -> bool:
        # From time to time, how much of their context agents use is written, too.
        if isinstance(record, dict):
            queued.append({name: record[name] for name in ("tool", "outcome", "error", "reason", "revision")})
        return True

    monkeypatch.setattr(record_writer, "has_room", lambda: True)
    monkeypatch.setattr(record_writer, "enqueue", enqueue)
    return queued


@pytest.fixture
def shop(ada: str, records: list[Any]) -> str:
    """Return a token of the agent ada, one of whose tools runs in its own program."""
    order = {"type": "object", "properties": {"order": {"type": "integer"}}}
    belts.import_(
        SETUP,
        {
            "tools": [{"key": "refund", "input_schema": order}],
            "agents": [{"key": "ada", "tools": ["clock", "refund"]}],
        },
    )
    return ada


def admit(token: str, *calls: Any, **body: Any) -> Request:
    path = "/api/v1/agents/ada/calls/admit"
    return Request(method="POST", path=path, token=token, body={**body, "calls": list(calls)})


def surface(token: str) -> Request:
    return Request(token=token)


def answer_of(answer: Any) -> dict[str, Any]:
    (call,) = answer.json()["calls"]
    return {name: call[name] for name in call if name not in ("call_id", "report_by")}


@pytest.mark.parametrize(
    "call", [CALL, {"tool": "refund", "arguments": {"order": "x"}}, {"tool": "nothing"}, {"tool": "clock"}]
)
def test_a_cached_admission_is_answered_in_front_as_by_django(
    server: Server, shop: str, records: list[Any], call: Any
) -> None:
    by_django = server.ask_django(admit(shop, call))
    *_, answer = server.ask_each(surface(shop), admit(shop, CALL), surface(shop), admit(shop, call))
    assert not answer.by_django
    assert (answer.status, answer_of(answer)) == (200, answer_of(by_django))
    assert len(records) == 3
    assert records[0] == records[-1]


def test_a_switch_change_applies_to_the_next_admission(server: Server, shop: str) -> None:
    server.ask_each(surface(shop), admit(shop, CALL), surface(shop))
    assert answer_of(server.ask(admit(shop, CALL)))["is_error"] is False
    switches.override(SETUP, "ada", "refund", False)
    assert answer_of(server.ask(admit(shop, CALL)))["code"] == "tool-denied"


def test_a_refusal_is_worded_for_the_conversation_of_the_call(server: Server, shop: str) -> None:
    talk = {"format": "anthropic", "model": "claude-opus-5-5", "conversation": {"token": None}}
    path = "/api/v1/agents/ada/surface"
    begun = server.ask(Request(method="POST", path=path, token=shop, body=talk)).json()
    told = {"conversation": {"token": begun["append"]["token"]}}
    # The validator of its arguments is only built for an admission, and calls wait for it in front.
    server.ask(admit(shop, CALL))
    switches.override(SETUP, "ada", "refund", False)
    by_django = server.ask_django(admit(shop, CALL, **told))
    *_, answer = server.ask_each(surface(shop), admit(shop, CALL), surface(shop), admit(shop, CALL, **told))
    assert not answer.by_django
    assert answer_of(answer) == answer_of(by_django)
    assert answer_of(answer)["code"] == "tool-withdrawn"
    more = {"conversation": {"token": None, "hold": True}}
    refused = server.ask(admit(shop, CALL, **more))
    assert (refused.by_django, refused.status) == (True, 422)


@pytest.mark.parametrize("calls", [[], [CALL, CALL], [{"tool": 7}], [{**CALL, "more": 1}]])
def test_other_bodies_are_passed_on_to_django(server: Server, shop: str, calls: list[Any]) -> None:
    *_, answer = server.ask_each(surface(shop), admit(shop, CALL), surface(shop), admit(shop, *calls))
    assert answer.by_django
    assert answer.status == (200 if len(calls) == 2 else 422)


def test_an_operator_or_invalid_token_is_refused(server: Server, shop: str, olga: str) -> None:
    server.warm(surface(shop), admit(shop, CALL))
    assert server.ask(admit(olga, CALL)).status == 403
    assert server.ask(admit("tb_nothing", CALL)).status == 401
