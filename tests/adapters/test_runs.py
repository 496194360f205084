"""Tests of the steps of a run, and of the call results that the model reads."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from tests.formats import documents
from toolbelt.adapters import runs
from toolbelt.adapters.connection import protocol
from toolbelt.core import admitting, errors, schema

RUN = protocol.Run(session="s1", request_id="r1")


class Answering:
    """A connection that answers every call with the same answer or error."""

    def __init__(self, answer: Mapping[str, Any] | errors.ToolbeltError) -> None:
        self.answer = answer

    def surface(self, run: protocol.Run, **options: Any) -> Any:
        raise AssertionError("unexpected request for a surface")

    def call(self, run: protocol.Run, tool: str, arguments: Any) -> Mapping[str, Any]:
        if isinstance(self.answer, errors.ToolbeltError):
            raise self.answer
        return self.answer


class AsyncAnswering(Answering):
    async def call(self, run: protocol.Run, tool: str, arguments: Any) -> Any:  # type: ignore[override]
        return super().call(run, tool, arguments)


def call_both_ways(answer: Mapping[str, Any] | errors.ToolbeltError) -> list[runs.CallResult]:
    """Return the results of a call from a thread and from an event loop."""
    blocking: Any = Answering(answer)
    looping: Any = AsyncAnswering(answer)
    return [
        runs.blocking_call(blocking, RUN, "add", {}),
        asyncio.run(runs.call(looping, RUN, "add", {})),
    ]


def test_a_step_has_the_active_tools_sorted_by_name_and_the_policy() -> None:
    step = runs.step(documents.document("b", "a", policy="Be kind."))
    assert (step.names, step.policy, step.required) == (("a", "b"), "Be kind.", False)


def test_a_first_step_keeps_policy_and_definitions_and_says_its_focus_beside_them() -> None:
    directive = documents.focus("b", required=True)
    step = runs.step(documents.document("a", "b", "load_tools", policy="Be kind.", directive=directive))
    assert (step.names, step.policy) == (("a", "b", "load_tools"), "Be kind.")
    assert step.said() == "Call one of these tools in your next step: b, load_tools."
    assert (step.required, step.only_tool) == (True, None)


def test_a_focus_on_every_tool_has_no_text_if_the_call_is_forced() -> None:
    step = runs.step(documents.document("a", "b", directive=documents.focus("a", "b", required=True)))
    assert (step.said(is_forced=True), step.said()) == ("", "Call a tool in your next step.")


def test_a_required_focus_on_a_single_tool_sets_only_tool() -> None:
    step = runs.step(documents.document("a", "b", directive=documents.focus("b", required=True)))
    assert step.only_tool == "b"
    assert runs.step(documents.document("b", directive=documents.focus("b"))).only_tool is None


def test_a_tool_choice_of_none_sends_no_tools() -> None:
    step = runs.step(documents.document("a", tool_choice="none", policy="Talk."))
    assert (step.tools, step.policy) == ((), "Talk.")


def test_a_name_conflict_with_a_tool_of_the_program_is_an_error() -> None:
    step = runs.step(documents.document("a", "b"))
    assert runs.check_names(step, ["c"]) is step
    with pytest.raises(errors.Invalid, match=r"tools\.b: Two tools have this name"):
        runs.check_names(step, ["b", "c"])


@pytest.mark.parametrize(
    ("own", "policy", "joined"),
    [("Hi.", "Be.", "Hi.\n\nBe."), (None, "Be.", "Be."), ("Hi.", "", "Hi."), ("", "", "")],
)
def test_the_policy_follows_the_programs_own_instructions(own: str | None, policy: str, joined: str) -> None:
    assert runs.append_policy(own, policy) == joined


def test_a_session_id_joins_the_frameworks_ids() -> None:
    assert runs.session("u1", "s1") == "u1/s1"
    assert runs.session("s1") == "s1"


@pytest.mark.parametrize("parts", [(), (None,), ("",), ("u1", None)])
def test_a_missing_id_means_no_session(parts: tuple[str | None, ...]) -> None:
    assert runs.session(*parts) is None


@pytest.mark.parametrize("name", ["s" * 201, "s\n1", "\x00"])
def test_an_id_that_the_api_rejects_is_hashed_without_collisions(name: str) -> None:
    hashed = runs.session(name)
    assert hashed is not None
    assert len(hashed) == 64
    assert hashed == runs.session(name) != runs.session(name + "x")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"result": "Sunny."}, "Sunny."),
        ({"result": [1, 2]}, "[1, 2]"),
        ({"sum": 5, "unit": "€"}, '{"sum": 5, "unit": "€"}'),
        ({"result": "x", "more": 1}, '{"result": "x", "more": 1}'),
    ],
)
def test_a_text_result_is_kept_and_any_other_result_becomes_json(content: Any, text: str) -> None:
    for result in call_both_ways({"is_error": False, "content": content}):
        assert (result.is_error, result.text) == (False, text)


def test_what_an_operator_changed_is_said_behind_the_result() -> None:
    notice = "An operator changed this call before it ran: amount is 5 instead of 7."
    for result in call_both_ways({"is_error": False, "content": {"result": "Paid."}, "notice": notice}):
        assert (result.text, result.value) == (f"Paid.\n\n{notice}", "Paid.")
    failed = {"is_error": True, "code": "tool-failed", "message": "No.", "notice": notice}
    for result in call_both_ways(failed):
        assert result.text == f"tool-failed: No.\n\n{notice}"


def test_a_refusal_lists_every_error_with_its_path() -> None:
    refused = {
        "is_error": True,
        "code": "invalid-arguments",
        "message": "The arguments do not fit.",
        "errors": [{"path": "a", "message": "is no number"}],
    }
    for result in call_both_ways(refused):
        assert result.is_error
        assert result.text == "invalid-arguments: The arguments do not fit.\n- a: is no number"
        assert result.content == {key: refused[key] for key in ("code", "message", "errors")}


def test_each_problem_of_the_arguments_is_in_the_text_once() -> None:
    schema_ = {"type": "object", "properties": {name: {"type": "integer"} for name in "abcdefg"}}
    violations = schema.violations(schema.canonical(schema_), dict.fromkeys("abcdefg", "x"))
    refused = admitting.invalid("add", violations).document()
    for result in call_both_ways(refused):
        assert [result.text.count(f"{name}: 'x'") for name in "abcdefg"] == [1] * 7


@pytest.mark.parametrize(
    "error",
    [
        protocol.Unreachable("The call of add failed: cut. It may have run."),
        protocol.TooMany("Too often.", 7),
        errors.Invalid([errors.Problem(path="arguments", message="not JSON: NaN")]),
    ],
)
def test_a_failed_call_becomes_an_error_result(error: errors.ToolbeltError) -> None:
    for result in call_both_ways(error):
        assert result.is_error
        assert result.text == f"{error.code}: {error}"


def test_arguments_are_parsed_as_json_and_blank_means_none() -> None:
    assert runs.arguments('{"a": 1}') == {"a": 1}
    assert runs.arguments(" ") == {}
    for text in ("{", "[" * 100_000):
        with pytest.raises(errors.Invalid, match="arguments: not JSON"):
            runs.arguments(text)
