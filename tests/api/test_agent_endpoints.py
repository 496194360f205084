"""The answers that an agent gets over HTTP, and conditional requests."""

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
from toolbelt.runtime import documents, surfaces

OLIVE = writing.by("olive", via="screen")


def load(agent: Asking, session: str = "s1", request_id: str | None = None, toolkit: str = "reading") -> Any:
    sent = {"session": session, "tool": "load_tools", "arguments": {"toolkit": toolkit}}
    answer = agent.post("/agents/ada/calls", sent | ({"request_id": request_id} if request_id else {}))
    assert answer.status_code == 200
    return answer.json()


def test_a_surface_is_sent_as_the_core_says_it(ada):
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


def test_a_surface_has_the_shape_that_is_documented(ada):
    load(ada)
    for query in ({"session": "s1"}, {"format": "anthropic"}):
        document = ada.get("/agents/ada/surface", query).json()
        shaped = shapes.Surface.model_validate(document, extra="forbid")
        assert json.loads(shaped.model_dump_json(exclude_unset=True)) == document


def test_an_unchanged_surface_is_not_sent_again(ada):
    first = ada.get("/agents/ada/surface", {"session": "s1"})
    assert first.headers["ETag"] == f'"{first.json()["fingerprint"]}"'
    assert first.headers["Cache-Control"] == "private, no-cache"
    again = ada.get("/agents/ada/surface", {"session": "s1"}, **{"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["ETag"] == first.headers["ETag"]


def test_a_flip_is_sent_at_the_next_question(ada):
    first = ada.get("/agents/ada/surface")
    switches.flip(OLIVE, "ada", "reading", True)
    again = ada.get("/agents/ada/surface", **{"If-None-Match": first.headers["ETag"]})
    assert again.status_code == 200
    assert "kb__find" in again.json()["active_tools"]


def test_each_format_has_an_etag_of_its_own(ada):
    plain, said = (ada.get("/agents/ada/surface", query) for query in ({}, {"format": "openai_chat"}))
    assert plain.json()["provider"] == {}
    assert said.json()["provider"]["tools"]
    assert plain.headers["ETag"] != said.headers["ETag"]
    assert said.headers["ETag"] == f'"{said.json()["fingerprint"]}"'


def test_a_message_gives_a_directive(bob):
    answer = bob.post("/agents/bob/surface", {"message": "Please find the invoice."})
    assert answer.json()["directive"] == {
        "active_tools": ["kb__find"],
        "tool_choice": "required",
        "first_step_only": True,
    }
    assert bob.post("/agents/bob/surface", {}).json()["directive"] is None


def test_what_the_model_was_given_is_compared(ada):
    before = ada.get("/agents/ada/surface", {"session": "s1"}).json()
    assert before["delta"] is None
    load(ada)
    sent = {"session": "s1", "declared": before["declared"]}
    delta = ada.post("/agents/ada/surface", sent).json()["delta"]
    assert delta == {"added": ["kb__find", "kb__read"], "removed": [], "changed": []}


def test_a_load_counts_from_the_next_request(ada):
    told = load(ada, request_id="r1")
    assert told["content"]["status"] == "loaded"
    assert told["content"]["takes_effect"] == "next_request"
    in_it = ada.get("/agents/ada/surface", {"session": "s1", "request_id": "r1"}).json()
    behind_it = ada.get("/agents/ada/surface", {"session": "s1", "request_id": "r2"}).json()
    assert "kb__find" not in in_it["active_tools"]
    assert "kb__find" in behind_it["active_tools"]


def test_a_refused_call_is_an_answer(ada):
    answer = ada.post("/agents/ada/calls", {"tool": "kb__drop", "arguments": {}})
    assert answer.status_code == 200
    assert (answer.json()["is_error"], answer.json()["code"]) == (True, "tool-denied")
    answer = ada.post("/agents/ada/calls", {"tool": "load_tools", "arguments": {"toolkit": 7}})
    assert answer.json()["code"] == "invalid-arguments"
    assert answer.json()["errors"][0]["path"] == "toolkit"


def test_a_question_asks_once_and_writes_nothing(ada):
    ada.get("/agents/ada/surface", {"session": "s1"})
    for method, what, body in (
        ("GET", "surface?session=s1", None),
        ("POST", "surface", {"session": "s1", "message": "find it"}),
        ("GET", "toolkits", None),
    ):
        with CaptureQueriesContext(connection) as asked:
            assert ada.send(method, f"/agents/ada/{what}", body).status_code == 200
        # The token, and what the surface is made of.
        assert len(asked) == 2
        assert all(one["sql"].strip().startswith("SELECT") for one in asked.captured_queries)


def test_a_client_is_told_what_it_may_know_of_the_toolkits(ada):
    found = {one["key"]: one for one in ada.get("/agents/ada/toolkits").json()["items"]}
    assert list(found) == ["reading", "dropping"]
    assert found["reading"] == {
        "key": "reading",
        "title": "Reading",
        "description": "Looks things up.",
        "members": ["kb__find", "kb__read"],
        "default": False,
        "state": "loadable",
    }
    assert found["dropping"]["state"] == "off"
    load(ada)
    [reading, _] = ada.get("/agents/ada/toolkits", {"session": "s1"}).json()["items"]
    assert reading["state"] == "on"


def test_denied_toolkits_are_hidden_where_that_is_wanted(ada, settings):
    settings.TOOLBELT_HIDE_DENIED = True
    assert [one["key"] for one in ada.get("/agents/ada/toolkits").json()["items"]] == ["reading"]


def test_operators_are_told_why(reader, ada):
    told = reader.get("/agents/ada/tools/kb__drop/why").json()
    assert (told["state"], told["code"]) == ("denied", "switch-off")
    assert told["because"] == "toolkit dropping is off"
    assert told["origin"] == {"kind": "switch", "name": "dropping", "detail": ""}
    assert [step["question"] for step in told["trace"]] == [*range(1, 12)]
    assert ada.get("/agents/ada/tools/kb__drop/why").status_code == 403


def test_an_agents_token_asks_for_the_kinds_of_subagents_that_it_may(ada, reader):
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
def test_what_cannot_be_asked_is_said_with_its_place(ada, query, path):
    answer = ada.get("/agents/ada/surface", query)
    assert answer.status_code == 422
    assert [one["path"] for one in answer.json()["errors"]] == [path]
