"""Tests that errors of callers and of the server are returned as problem details."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from tests.api.conftest import Asking
from toolbelt.api import application, problems
from toolbelt.core import errors
from toolbelt.runtime import surfaces

STALE = errors.Stale("the switch of dev for ada", True, False, None)
CONFIRM = errors.ConfirmationRequired(["ada is protected."], {"added": ["run"]})
INVALID = errors.Invalid([errors.Problem(path="agents.ada.tools[1]", message="There is no tool 'x'.")])


@pytest.mark.parametrize(
    ("error", "status", "more"),
    [
        (INVALID, 422, {"errors": [{"path": "agents.ada.tools[1]", "message": "There is no tool 'x'."}]}),
        (errors.NotFound("agent", "adda", ["ada", "bob"]), 404, {"nearest": ["ada"]}),
        (STALE, 409, {"was": True, "now": False, "wanted": None}),
        (CONFIRM, 409, {"reasons": ["ada is protected."], "differences": {"added": ["run"]}}),
        (errors.Refused("Unload something first."), 409, {}),
        (
            errors.ProviderLimit("OpenAI", INVALID.problems),
            409,
            {"errors": [{"path": "agents.ada.tools[1]", "message": "There is no tool 'x'."}]},
        ),
    ],
)
def test_an_error_of_the_core_becomes_a_problem_with_its_code(error, status, more):
    problem = problems.from_error(error)
    document = problem.document()
    assert (problem.status, document["status"]) == (status, status)
    assert (document["code"], document["detail"]) == (error.code, str(error))
    assert {key: document[key] for key in more} == more


def test_every_error_of_the_core_has_a_problem_code():
    classes = [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, errors.ToolbeltError)
    ]
    assert {value.code for value in classes} - {"error"} <= problems.CODES.keys()


def test_the_nearest_names_are_only_sent_to_operators(olga, ada):
    answer = olga.get("/agents/adda/surface")
    assert (answer.status_code, answer.json()["nearest"]) == (404, ["ada"])
    answer = ada.get("/agents/bobb/surface")
    assert (answer.status_code, answer.json()["nearest"]) == (404, [])


@pytest.mark.parametrize(
    ("body", "status", "code", "message"),
    [
        (b"{", 400, "not-json", "line 1 column 2"),
        (b"\xff", 400, "not-json", "UTF-8"),
        (b'{"tool": "a", "tool": "b"}', 400, "not-json", "the key 'tool' is repeated"),
        (b'{"tool": "a", "arguments": {"x": NaN}}', 400, "not-json", "NaN"),
        (b'{"tool": "a", "arguments": {"x": 1e999}}', 400, "not-json", "too large"),
        (b'{"tool": "a", "arguments": {"x": "\\ud800"}}', 400, "not-json", "lone surrogate"),
        (b'{"tool": "a", "arguments": ' + b"[" * 64 + b"]" * 64 + b"}", 400, "too-deep", "64 levels"),
        (b"[" * 100_000, 400, "too-deep", "64 levels"),
        (b"[1]", 422, "invalid", "valid dictionary"),
        (b'{"tool": 7}', 422, "invalid", "tool: input should be a valid string"),
        (b"{}", 422, "invalid", "tool: field required"),
        (b'{"tool": "a", "argumens": {}}', 422, "invalid", "argumens: extra inputs are not permitted"),
    ],
)
def test_an_invalid_body_is_refused_with_the_reason(ada, body, status, code, message):
    answer = ada.post("/agents/ada/calls", body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert message in answer.json()["detail"]


def test_a_body_of_the_maximum_depth_is_accepted(ada):
    body = b'{"tool": "a", "arguments": ' + b"[" * 63 + b"]" * 63 + b"}"
    assert ada.post("/agents/ada/calls", body).status_code == 200


def test_a_body_without_the_json_media_type_is_refused(ada):
    answer = ada._client.generic(
        "POST", "/api/v1/agents/ada/calls", b"tool=clock", "application/x-www-form-urlencoded"
    )
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported-media-type")
    assert "Content-Type: application/json" in answer.json()["detail"]


def test_a_body_over_the_size_limit_is_refused(ada, settings):
    settings.TOOLBELT_API_BODY_BYTES = 100
    answer = ada.post("/agents/ada/calls", {"tool": "clock", "arguments": {"x": "y" * 100}})
    assert (answer.status_code, answer.json()["code"]) == (413, "too-large")
    assert "at most 100 are allowed" in answer.json()["detail"]


def test_a_body_over_djangos_size_limit_is_refused(ada, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 100
    answer = ada.post("/agents/ada/calls", {"tool": "clock", "arguments": {"x": "y" * 100}})
    assert (answer.status_code, answer.json()["code"]) == (413, "too-large")


def test_a_body_without_a_length_is_refused(ada):
    answer = ada.send("POST", "/agents/ada/calls", None, **{"Transfer-Encoding": "chunked"})
    assert (answer.status_code, answer.json()["code"]) == (411, "length-required")


def test_too_many_requests_are_refused_with_the_time_to_retry(ada, bob, settings):
    settings.TOOLBELT_API_PER_MINUTE = 2
    statuses = [ada.get("/agents/ada/toolkits").status_code for _ in range(3)]
    assert statuses == [200, 200, 429]
    answer = ada.get("/agents/ada/toolkits")
    assert answer.json()["code"] == "too-many-requests"
    assert 0 < int(answer.headers["Retry-After"]) <= 30
    assert bob.get("/agents/bob/toolkits").status_code == 200
    settings.TOOLBELT_API_PER_MINUTE = 0
    assert ada.get("/agents/ada/toolkits").status_code == 200


def test_an_unknown_path_returns_a_problem(ada):
    answer = ada.get("/agents/ada/surfaces")
    assert (answer.status_code, answer.json()["code"]) == (404, "not-found")
    assert "/api/v1/agents/ada/surfaces" in answer.json()["detail"]


def test_a_method_that_is_not_allowed_returns_a_problem(ada):
    answer = ada.delete("/agents/ada/surface")
    assert (answer.status_code, answer.json()["code"]) == (405, "method-not-allowed")
    assert set(answer.headers["Allow"].split(", ")) == {"GET", "POST"}


def test_an_internal_error_returns_only_the_request_id(ada, monkeypatch):
    def broken(*args: Any) -> Any:
        raise RuntimeError("row 7 of the customers")

    monkeypatch.setattr(surfaces, "of", broken)
    ada._client.raise_request_exception = False
    answer = ada.get("/agents/ada/surface")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "customers" not in answer.content.decode()
    assert answer.json()["request_id"] == answer.headers["X-Request-ID"]


def test_errors_of_the_dashboard_stay_html_pages(db):
    assert Client().get("/nowhere").headers["Content-Type"].startswith("text/html")


def test_a_problem_links_to_its_documentation(ada, olga):
    document = ada.get("/nowhere").json()
    where, _, anchor = document["type"].partition("#")
    assert where == "/api/v1/docs"
    assert anchor == "problem-not-found"


def test_every_operation_documents_its_error_responses():
    document = application.api.get_openapi_schema(path_prefix="")
    for _, _, described in application.described_operations(document):
        assert {"401", "403", "429"} <= described["responses"].keys()
        for status, response in described["responses"].items():
            if int(status) >= 400:
                assert list(response["content"]) == [problems.MEDIA_TYPE]


def test_a_request_without_a_token_explains_how_to_get_one(anonymous: Asking, db):
    answer = anonymous.get("/agents/ada/surface")
    assert "manage.py token issue" in answer.json()["detail"]
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="toolbelt"'
