"""What of a server's question is shown to a user, and what of the answer goes back."""

from __future__ import annotations

from typing import Any

import pytest

from toolbelt.plugins.upstream import questions


def form(**fields: Any) -> dict[str, Any]:
    return {"message": "Fill in.", "requestedSchema": {"type": "object", "properties": fields}}


def fields(**given: Any) -> dict[str, Any]:
    found: dict[str, Any] = questions.cleaned(form(**given), "Files")["requestedSchema"]["properties"]
    return found


def test_a_message_begins_with_the_server_that_asks_and_shows_what_it_says():
    given = {**form(), "message": " Toolbelt asks:\u202e Who\u200b are you?\r\n" + "x" * 5_000}
    message = questions.cleaned(given, "Files\u202e")["message"]
    assert message.startswith("Files asks: Toolbelt asks: Who are you?\nxxx")
    assert len(message) <= len("Files asks: ") + questions.MAX_MESSAGE


def test_of_a_field_there_stays_what_the_specification_has():
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


def test_a_field_that_may_be_null_is_one_that_may_be_left_out():
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
def test_a_question_outside_the_specification_is_not_asked(params: dict[str, Any]):
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
def test_a_page_is_at_an_address_that_nobody_else_reads(url: str):
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
def test_no_other_page_is_opened(url: Any):
    with pytest.raises(questions.NotAllowedError):
        questions.cleaned({"mode": "url", "message": "Open.", "url": url}, "Files")


@pytest.mark.parametrize(
    ("given", "handed_on"),
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
def test_of_an_answer_there_goes_back_what_was_asked_for(given: Any, handed_on: dict[str, Any]):
    assert questions.answer(given, questions.cleaned(form(a={"type": "string"}), "Files")) == handed_on


def test_a_page_is_answered_without_content():
    question = questions.cleaned({"mode": "url", "message": "Open.", "url": "https://a.example/"}, "Files")
    assert questions.answer({"action": "accept", "content": {"a": 1}}, question) == {"action": "accept"}


def test_clients_of_the_first_revision_with_questions_are_asked_in_its_words():
    color = {"type": "string", "default": "r", "oneOf": [{"const": "r", "title": "Red"}]}
    asked = questions.cleaned(form(color=color), "Files")
    assert questions.for_revision(asked, "2025-06-18") == {
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
