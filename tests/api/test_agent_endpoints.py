"""Tests of the endpoints for agents, including conditional requests."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.api.conftest import Asking
from toolbelt.api import surfaces as shapes
from toolbelt.control import writing
from toolbelt.control.access import switches
from toolbelt.core import schema
from toolbelt.runtime import surfaces
from toolbelt.runtime.surfaces import documents

OLIVE = writing.by("olive", via="screen")


def load(agent: Asking, session: str = "s1", request_id: str | None = None, toolkit: str = "reading") -> Any:
    sent = {"session": session, "tool": "load_tools", "arguments": {"toolkit": toolkit}}
    answer = agent.post("/agents/ada/calls", sent | ({"request_id": request_id} if request_id else {}))
    assert answer.status_code == 200
    return answer.json()


def test_a_surface_is_returned_as_the_core_builds_it(ada):
    answer = ada.get("/agents/ada/surface", {"session": "s1", "request_id": "r9"})
    assert answer.status_code == 200
    assert answer.content.decode() == schema.canonical(documents.of(surfaces.ask("ada", "s1", "r9")))
    assert answer.json()["active_tools"] == [
        "clock",
        "list_toolkits",
        "load_tools",
        "search_tools",
        "unload_tools",
    ]


def test_a_surface_matches_the_documented_schema(ada):
    load(ada)
    for query in ({"session": "s1"}, {"format": "anthropic"}):
        document = ada.get("/agents/ada/surface", query).json()
        validated = shapes.Surface.model_validate(document, extra="forbid")
        assert json.loads(validated.model_dump_json(exclude_unset=True)) == document


def test_an_unchanged_surface_is_not_sent_again(ada):
    first = ada.get("/agents/ada/surface", {"session": "s1"})
    assert first.headers["ETag"] == f'"{first.json()["fingerprint"]}"'
    assert first.headers["Cache-Control"] == "private, no-cache"
    again = ada.get("/agents/ada/surface", {"session": "s1"}, **{"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["ETag"] == first.headers["ETag"]


def test_a_flip_changes_the_next_surface_response(ada):
    first = ada.get("/agents/ada/surface")
    switches.flip(OLIVE, "ada", "reading", True)
    again = ada.get("/agents/ada/surface", **{"If-None-Match": first.headers["ETag"]})
    assert again.status_code == 200
    assert "kb__find" in again.json()["active_tools"]


def test_each_format_has_its_own_etag(ada):
    plain, openai = (ada.get("/agents/ada/surface", query) for query in ({}, {"format": "openai_chat"}))
    assert plain.json()["provider"] == {}
    assert openai.json()["provider"]["tools"]
    assert plain.headers["ETag"] != openai.headers["ETag"]
    assert openai.headers["ETag"] == f'"{openai.json()["fingerprint"]}"'


def test_a_message_produces_a_directive(bob):
    answer = bob.post("/agents/bob/surface", {"message": "Please find the invoice."})
    assert answer.json()["directive"] == {
        "active_tools": ["kb__find"],
        "tool_choice": "required",
        "first_step_only": True,
    }
    assert bob.post("/agents/bob/surface", {}).json()["directive"] is None


def test_a_surface_lists_the_changes_since_the_declared_tools(ada):
    before = ada.get("/agents/ada/surface", {"session": "s1"}).json()
    assert before["delta"] is None
    load(ada)
    sent = {"session": "s1", "declared": before["declared"]}
    delta = ada.post("/agents/ada/surface", sent).json()["delta"]
    assert delta == {"added": ["kb__find", "kb__read"], "removed": [], "changed": []}


def test_a_load_applies_from_the_next_request(ada):
    answer = load(ada, request_id="r1")
    assert answer["content"]["status"] == "loaded"
    assert answer["content"]["takes_effect"] == "next_request"
    same_request = ada.get("/agents/ada/surface", {"session": "s1", "request_id": "r1"}).json()
    next_request = ada.get("/agents/ada/surface", {"session": "s1", "request_id": "r2"}).json()
    assert "kb__find" not in same_request["active_tools"]
    assert "kb__find" in next_request["active_tools"]


def test_a_refused_call_returns_200_with_an_error_code(ada):
    answer = ada.post("/agents/ada/calls", {"tool": "kb__drop", "arguments": {}})
    assert answer.status_code == 200
    assert (answer.json()["is_error"], answer.json()["code"]) == (True, "tool-denied")
    answer = ada.post("/agents/ada/calls", {"tool": "load_tools", "arguments": {"toolkit": 7}})
    assert answer.json()["code"] == "invalid-arguments"
    assert answer.json()["errors"][0]["path"] == "toolkit"


def test_asking_takes_two_queries_and_writes_nothing(ada):
    ada.get("/agents/ada/surface", {"session": "s1"})
    for method, path, body in (
        ("GET", "surface?session=s1", None),
        ("POST", "surface", {"session": "s1", "message": "find it"}),
        ("GET", "toolkits", None),
    ):
        with CaptureQueriesContext(connection) as queries:
            assert ada.send(method, f"/agents/ada/{path}", body).status_code == 200
        # One query for the token, one for the state of the surface.
        assert len(queries) == 2
        assert all(query["sql"].strip().startswith("SELECT") for query in queries.captured_queries)


def test_an_agents_toolkits_are_listed_with_their_states(ada):
    toolkits = {toolkit["key"]: toolkit for toolkit in ada.get("/agents/ada/toolkits").json()["items"]}
    assert list(toolkits) == ["reading", "dropping"]
    assert toolkits["reading"] == {
        "key": "reading",
        "title": "Reading",
        "description": "Looks things up.",
        "members": ["kb__find", "kb__read"],
        "default": False,
        "state": "loadable",
    }
    assert toolkits["dropping"]["state"] == "off"
    load(ada)
    [reading, _] = ada.get("/agents/ada/toolkits", {"session": "s1"}).json()["items"]
    assert reading["state"] == "on"


def test_denied_toolkits_are_hidden_if_configured(ada, settings):
    settings.TOOLBELT_HIDE_DENIED = True
    assert [toolkit["key"] for toolkit in ada.get("/agents/ada/toolkits").json()["items"]] == ["reading"]


def test_operators_can_read_why_a_tool_is_denied(reader, ada):
    explanation = reader.get("/agents/ada/tools/kb__drop/why").json()
    assert (explanation["state"], explanation["code"]) == ("denied", "switch-off")
    assert explanation["because"] == "toolkit dropping is off"
    assert explanation["origin"] == {"kind": "switch", "name": "dropping", "detail": ""}
    assert [step["question"] for step in explanation["trace"]] == [*range(1, 12)]
    assert ada.get("/agents/ada/tools/kb__drop/why").status_code == 403


def test_an_agents_token_can_only_ask_for_allowed_subagent_kinds(ada, reader):
    assert ada.get("/agents/ada/surface", {"subagent": "explore"}).status_code == 200
    for refused in (
        ada.get("/agents/ada/surface", {"subagent": "general"}),
        ada.post("/agents/ada/surface", {"subagent": "general"}),
        ada.post("/agents/ada/calls", {"subagent": "general", "tool": "clock"}),
        ada.get("/agents/ada/toolkits", {"subagent": "general"}),
    ):
        assert refused.status_code == 409
        assert "it may ask for explore" in refused.json()["detail"]
    assert reader.get("/agents/ada/surface", {"subagent": "general"}).status_code == 200


def test_a_call_of_a_subagent_over_http_is_recorded_as_one(ada, reader):
    ada.post("/agents/ada/calls", {"subagent": "explore", "tool": "clock"})
    [record] = reader.get("/calls").json()["items"]
    assert (record["subagent"], record["dispatched"]) == ("explore", False)


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ({"session": "x" * 201}, "session"),
        ({"session": "a\nb"}, "session"),
        ({"request_id": ""}, "request_id"),
        ({"subagent": "nurse"}, "subagent"),
        ({"format": "cobol"}, "format"),
        ({"sesion": "s1"}, "sesion"),
    ],
)
def test_an_invalid_parameter_is_reported_with_its_path(ada, query, path):
    answer = ada.get("/agents/ada/surface", query)
    assert answer.status_code == 422
    assert [error["path"] for error in answer.json()["errors"]] == [path]
