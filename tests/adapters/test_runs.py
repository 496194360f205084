"""Each step gets the content of its surface, and every outcome of a call is readable for the model."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from tests.adapters import documents
from toolbelt.adapters import runs
from toolbelt.adapters.connection import protocol
from toolbelt.core import errors

RUN = protocol.Run(session="s1", request_id="r1")


class Answering:
    """Answers each call with one thing, from an event loop and from a thread."""

    def __init__(self, answer: Mapping[str, Any] | errors.ToolbeltError) -> None:
        self.answer = answer

    def surface(self, run: protocol.Run, **asked: Any) -> Any:
        raise AssertionError("nobody asked for a surface")

    def call(self, run: protocol.Run, tool: str, arguments: Any) -> Mapping[str, Any]:
        if isinstance(self.answer, errors.ToolbeltError):
            raise self.answer
        return self.answer


class AnsweringLater(Answering):
    async def call(self, run: protocol.Run, tool: str, arguments: Any) -> Any:  # type: ignore[override]
        return super().call(run, tool, arguments)


def both(answer: Mapping[str, Any] | errors.ToolbeltError) -> list[runs.CallResult]:
    """Call from a thread and from an event loop."""
    now: Any = Answering(answer)
    later: Any = AnsweringLater(answer)
    return [
        runs.blocking_call(now, RUN, "add", {}),
        asyncio.run(runs.call(later, RUN, "add", {})),
    ]


def test_a_step_is_sent_the_active_tools_by_name_and_the_policy() -> None:
    step = runs.step(documents.document("b", "a", policy="Be kind."))
    assert (step.names, step.policy, step.required) == (("a", "b"), "Be kind.", False)


def test_a_first_step_keeps_every_definition_and_states_its_focus_behind_the_policy() -> None:
    directive = documents.focus("b", required=True)
    step = runs.step(documents.document("a", "b", "load_tools", policy="Be kind.", directive=directive))
    assert step.names == ("a", "b", "load_tools")
    assert step.policy == "Be kind.\n\nCall one of these tools in your next step: b, load_tools."
    assert (step.focus, step.required, step.only_tool) == (("b", "load_tools"), True, None)


def test_a_focus_on_every_tool_needs_no_words() -> None:
    step = runs.step(documents.document("a", "b", directive=documents.focus("a", "b", required=True)))
    assert (step.policy, step.focus, step.required) == ("", ("a", "b"), True)


def test_the_only_tool_that_must_be_called_is_named() -> None:
    step = runs.step(documents.document("a", "b", directive=documents.focus("b", required=True)))
    assert step.only_tool == "b"
    assert runs.step(documents.document("b", directive=documents.focus("b"))).only_tool is None


def test_where_nothing_may_be_called_no_tool_is_sent() -> None:
    step = runs.step(documents.document("a", tool_choice="none", policy="Talk."))
    assert (step.tools, step.policy) == ((), "Talk.")


def test_a_tool_of_the_programs_own_is_never_hidden_by_another() -> None:
    step = runs.step(documents.document("a", "b"))
    assert runs.check_names(step, ["c"]) is step
    with pytest.raises(errors.Invalid, match=r"tools\.b: Two tools have this name"):
        runs.check_names(step, ["b", "c"])


@pytest.mark.parametrize(
    ("own", "policy", "said"),
    [("Hi.", "Be.", "Hi.\n\nBe."), (None, "Be.", "Be."), ("Hi.", "", "Hi."), ("", "", "")],
)
def test_the_policy_stands_last(own: str | None, policy: str, said: str) -> None:
    assert runs.append_policy(own, policy) == said


def test_a_session_has_the_frameworks_own_ids() -> None:
    assert runs.session("u1", "s1") == "u1/s1"
    assert runs.session("s1") == "s1"


@pytest.mark.parametrize("parts", [(), (None,), ("",), ("u1", None)])
def test_without_an_id_there_is_no_session(parts: tuple[str | None, ...]) -> None:
    assert runs.session(*parts) is None


@pytest.mark.parametrize("name", ["s" * 201, "s\n1", "\x00"])
def test_an_id_that_the_api_does_not_take_is_hashed_and_stays_its_own(name: str) -> None:
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
def test_a_text_is_read_as_it_is_and_all_else_as_json(content: Any, text: str) -> None:
    for told in both({"is_error": False, "content": content}):
        assert (told.is_error, told.text) == (False, text)


def test_a_refusal_is_read_with_every_place() -> None:
    refused = {
        "is_error": True,
        "code": "invalid-arguments",
        "message": "The arguments do not fit.",
        "errors": [{"path": "a", "message": "is no number"}],
    }
    for told in both(refused):
        assert told.is_error
        assert told.text == "invalid-arguments: The arguments do not fit.\n- a: is no number"
        assert told.content == {key: refused[key] for key in ("code", "message", "errors")}


@pytest.mark.parametrize(
    "error",
    [
        protocol.Unreachable("The call of add failed: cut. It may have run."),
        protocol.TooMany("Too often.", 7),
        errors.Invalid([errors.Problem(path="arguments", message="not JSON: NaN")]),
    ],
)
def test_a_call_that_is_not_answered_is_read_as_a_refusal(error: errors.ToolbeltError) -> None:
    for told in both(error):
        assert told.is_error
        assert told.text == f"{error.code}: {error}"


def test_arguments_are_json_or_none_at_all() -> None:
    assert runs.arguments('{"a": 1}') == {"a": 1}
    assert runs.arguments(" ") == {}
    for text in ("{", "[" * 100_000):
        with pytest.raises(errors.Invalid, match="arguments: not JSON"):
            runs.arguments(text)
