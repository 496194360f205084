"""Tests of a server's question as it is shown to the user, and of the answer that is returned to the server."""

from __future__ import annotations

from typing import Any

import pytest

from toolbelt.plugins.upstream import questions


def form(**fields: Any) -> dict[str, Any]:
    return {"message": "Fill in.", "requestedSchema": {"type": "object", "properties": fields}}


def fields(**given: Any) -> dict[str, Any]:
    properties: dict[str, Any] = questions.cleaned(form(**given), "Files")["requestedSchema"]["properties"]
    return properties


def test_a_message_begins_with_the_name_of_the_server_and_is_cleaned():
    given = {**form(), "message": " Toolbelt asks:\u202e Who\u200b are you?\r\n" + "x" * 5_000}
    message = questions.cleaned(given, "Files\u202e")["message"]
    assert message.startswith("Files asks: Toolbelt asks: Who are you?\nxxx")
    assert len(message) <= len("Files asks: ") + questions.MAX_MESSAGE


def test_fields_keep_only_keywords_of_the_specification():
    given = {
        "name": {
            "type": "string",
            "title": "N\u200bame",
            "minLength": 1,
            "format": "email",
            "pattern": "(a+)+$",
        },
        "age": {"type": "integer", "minimum": 0, "maximum": 9.5, "default": 3, "multipleOf": 2},
        "sure": {"type": "boolean", "default": True, "description": "Really?", "$comment": "x"},
        "size": {"type": "string", "enum": ["s", "m"], "enumNames": ["Small", "Medium"], "default": "s"},
        "color": {"type": "string", "oneOf": [{"const": "r", "title": "Red", "x": 1}, {"const": "g"}]},
        "tags": {
            "type": "array",
            "items": {"type": "string", "enum": ["a", "b"]},
            "maxItems": 2,
            "default": ["a"],
        },
        "more": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}},
    }
    assert fields(**given) == {
        "name": {"type": "string", "title": "Name", "minLength": 1, "format": "email"},
        "age": {"type": "integer", "minimum": 0, "maximum": 9.5, "default": 3},
        "sure": {"type": "boolean", "default": True, "description": "Really?"},
        "size": {"type": "string", "enum": ["s", "m"], "enumNames": ["Small", "Medium"], "default": "s"},
        "color": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "g"}]},
        "tags": {
            "type": "array",
            "items": {"type": "string", "enum": ["a", "b"]},
            "maxItems": 2,
            "default": ["a"],
        },
        "more": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}},
    }


def test_a_default_may_be_an_integer_of_any_size():
    field = {"type": "integer", "default": 10**400}
    assert fields(age=field) == {"age": field}


def test_a_nullable_field_becomes_an_optional_field():
    given = {"anyOf": [{"type": "integer"}, {"type": "null"}], "title": "Age", "default": None}
    assert fields(age=given) == {"age": {"type": "integer", "title": "Age"}}


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"message": 3},
        {**form(), "mode": "screen"},
        {"message": "Fill in."},
        {"message": "Fill in.", "requestedSchema": {"type": "string"}},
        form(**{f"f{number}": {"type": "string"} for number in range(questions.MAX_FIELDS + 1)}),
        form(**{"a\u202eb": {"type": "string"}}),
        form(a={"type": "object", "properties": {}}),
        form(a={"type": "array", "items": {"type": "string"}}),
        form(a={"type": "array", "items": {"type": "object"}}),
        form(a={"type": ["string", "number"]}),
        form(a={"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        form(a={"type": "string", "enum": []}),
        form(a={"type": "string", "enum": [{"a": 1}]}),
        form(a={"type": "string", "enum": ["s"], "enumNames": []}),
        form(a={"type": "string", "oneOf": [{"title": "A"}]}),
        form(a="string"),
    ],
)
def test_a_question_outside_the_specification_is_refused(params: dict[str, Any]):
    with pytest.raises(questions.NotAllowedError):
        questions.cleaned(params, "Files")


@pytest.mark.parametrize(
    "url",
    [
        "https://a.example/x?y=1",
        "https://a.example:8443/",
        "http://127.0.0.1:80/",
        "http://localhost/",
        "http://[::1]/",
    ],
)
def test_pages_with_https_or_local_addresses_are_allowed(url: str):
    assert questions.cleaned({"mode": "url", "message": "Open.", "url": url}, "Files") == {
        "mode": "url",
        "message": "Files asks: Open.",
        "url": url,
    }


@pytest.mark.parametrize(
    "url",
    [
        None,
        "",
        "http://a.example/",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "https:///x",
        "https://user:password@a.example/",
        "https://a.example@b.example/",
        "https://a.example\\@b.example/",
        "https://a.example/ x",
        "https://ex\u0430mple.com/",
        "https://a.example:port/",
        "https://[::1/",
        "https://a.example/" + "x" * questions.MAX_URL,
    ],
)
def test_pages_with_other_addresses_are_refused(url: Any):
    with pytest.raises(questions.NotAllowedError):
        questions.cleaned({"mode": "url", "message": "Open.", "url": url}, "Files")


@pytest.mark.parametrize(
    ("given", "returned"),
    [
        ({"action": "accept", "content": {"a": "x", "z": 1}}, {"action": "accept", "content": {"a": "x"}}),
        (
            {"action": "accept", "content": {"a": ["x"]}, "_meta": {}},
            {"action": "accept", "content": {"a": ["x"]}},
        ),
        ({"action": "decline", "content": {"a": "x"}}, {"action": "decline"}),
        ({"action": "accept", "content": {"a": {"b": 1}}}, {"action": "cancel"}),
        ({"action": "accept", "content": {"a": float("nan")}}, {"action": "cancel"}),
        ({"action": "accept", "content": {"a": "x" * (questions.MAX_ANSWER + 1)}}, {"action": "cancel"}),
        ({"action": "accept"}, {"action": "cancel"}),
        ({"action": "maybe"}, {"action": "cancel"}),
        (None, {"action": "cancel"}),
    ],
)
def test_an_answer_contains_only_the_requested_fields(given: Any, returned: dict[str, Any]):
    assert questions.answer(given, questions.cleaned(form(a={"type": "string"}), "Files")) == returned


def test_the_answer_to_a_page_has_no_content():
    question = questions.cleaned({"mode": "url", "message": "Open.", "url": "https://a.example/"}, "Files")
    assert questions.answer({"action": "accept", "content": {"a": 1}}, question) == {"action": "accept"}


def test_questions_are_converted_for_clients_of_the_first_revision():
    color = {"type": "string", "default": "r", "oneOf": [{"const": "r", "title": "Red"}]}
    question = questions.cleaned(form(color=color), "Files")
    assert questions.for_revision(question, "2025-06-18") == {
        "message": "Files asks: Fill in.",
        "requestedSchema": {
            "type": "object",
            "properties": {"color": {"type": "string", "enum": ["r"], "enumNames": ["Red"]}},
        },
    }
    many = questions.cleaned(form(tags={"type": "array", "items": {"enum": ["a"]}}), "Files")
    page = questions.cleaned({"mode": "url", "message": "Open.", "url": "https://a.example/"}, "Files")
    assert questions.for_revision(many, "2025-06-18") is None
    assert questions.for_revision(page, "2025-06-18") is None
    assert questions.for_revision(page, "2025-11-25") == page
