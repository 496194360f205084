"""The tests that the adapters of all four frameworks share.

A part imports them, and provides a fixture ``play``: a function that lets an agent of its framework answer one message
in a session, with a model that replies as the script says. It returns what the framework sent to that model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import kit

LOADERS = {"list_toolkits", "load_tools", "search_tools", "unload_tools"}


@dataclass
class Call:
    """A call of a tool in a reply of the model."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)


Reply = str | Call
Script = Sequence[Reply | Callable[[], Reply]]


@dataclass
class Step:
    """A request to the model: the system prompt, the schema of each tool, the tool choice, and the messages between.

    ``told``: the texts of the conversation that are neither the user's prompt nor the model's.
    """

    system: str
    tools: dict[str, Any]
    choice: Any = None
    told: str = ""


@dataclass
class Result:
    """The result of a call as the model reads it. ``is_error`` is None if the framework does not mark errors."""

    tool: str
    text: str
    is_error: bool | None


@dataclass
class Run:
    """The steps, the results of tools and the answer of a run."""

    steps: list[Step]
    results: list[Result]
    answer: str


Play = Callable[[str, str, Script], Run]


def next_reply(script: list[Any]) -> Reply:
    """Take the next reply from a script. A reply that is a function is called now."""
    reply: Any = script.pop(0)
    return reply() if callable(reply) else reply


def normalized(text: str) -> str:
    """Remove the characters in which ways of writing JSON differ."""
    return re.sub(r"[\s'\"\\]", "", text)


ADD = Call("desk__add", {"a": 2, "b": 3})
NOTE = Call("desk__add_note", {"text": "Milk."})


def test_a_tool_is_called_and_the_model_reads_its_result(play: Play) -> None:
    run = play(kit.session(), "What is it?", [ADD, "Five."])
    (result,) = run.results
    assert "sum:5" in normalized(result.text)
    assert not result.is_error
    assert run.answer == "Five."


def test_what_the_model_loads_is_available_in_the_next_step_of_the_run(play: Play) -> None:
    session = kit.session()
    first = play(session, "Note: milk.", [Call("load_tools", {"toolkit": "desk_notes"}), NOTE, "Noted."])
    loaded, noted = first.results
    assert "status:loaded" in normalized(loaded.text)
    assert noted.text == "Noted: Milk."
    assert ["desk__add_note" in step.tools for step in first.steps] == [False, True, True]
    assert ["Notes are public" in step.system for step in first.steps] == [False, True, True]

    second = play(session, "Go on.", [Call("unload_tools", {"toolkit": "desk_notes"}), "Unloaded."])
    assert ["desk__add_note" in step.tools for step in second.steps] == [True, False]


def test_with_loads_run_a_loaded_tool_is_available_in_the_next_run(pinned: Play) -> None:
    session, play = kit.session(), pinned
    first = play(
        session, "Note: milk.", [Call("load_tools", {"toolkit": "desk_notes"}), NOTE, "It is loaded."]
    )
    loaded, refused = first.results
    assert "status:loaded" in normalized(loaded.text)
    assert not loaded.is_error
    assert "desk__add_note" in refused.text
    assert refused.is_error is not False
    assert all("desk__add_note" not in step.tools for step in first.steps)
    assert first.answer == "It is loaded."

    second = play(session, "Go on.", [NOTE, "Noted."])
    assert "desk__add_note" in second.steps[0].tools
    assert second.results[0].text == "Noted: Milk."
    assert "Notes are public" in second.steps[0].system
    assert "Notes are public" not in first.steps[0].system


def test_a_call_is_refused_after_an_operator_turns_the_tool_off_during_the_run(play: Play) -> None:
    def off_then_call() -> Reply:
        kit.switch("arithmetic", False)
        return ADD

    with kit.switched("arithmetic", True):
        run = play(kit.session(), "What is it?", [off_then_call, ADD, "I cannot."])
    refused, repeated = run.results
    assert "not granted" in refused.text
    assert refused.is_error is not False
    assert "desk__add" in repeated.text, "a call of a removed tool also gets an answer in words"
    before, after, _ = run.steps
    assert "desk__add" in before.tools
    assert "desk__add" not in after.tools
    assert "Never add in your head" in before.system
    assert "You have no tool for sums" in after.system
    assert run.answer == "I cannot."


def test_each_step_is_a_request_of_its_run(play: Play) -> None:
    ids = _requests_of_two_runs(play)
    assert len({*ids}) == 3
    assert len({id_.rpartition(".")[0] for id_ in ids}) == 2


def test_with_loads_run_each_run_is_one_request(pinned: Play) -> None:
    first, second, third = _requests_of_two_runs(pinned)
    assert first == second != third


def recorded_session(play: Play, session: str) -> str:
    """Return the key under which a session is recorded. Some frameworks prefix it with the user."""
    return f"{getattr(play, 'before_session', '')}{session}"


def _requests_of_two_runs(play: Play) -> list[str]:
    """Return the ids of the requests in which two calls of one run and one of the next were made."""
    session = kit.session()
    play(session, "What is it?", [ADD, ADD, "Five."])
    play(session, "And now?", [ADD, "Five."])
    recorded = kit.recorded(3, session=recorded_session(play, session))
    ids = [call["request_id"] for call in reversed(recorded)]
    assert len(ids) == 3
    return ids


def test_the_policy_follows_the_programs_own_instructions(play: Play) -> None:
    run = play(kit.session(), "What is it?", ["Nothing."])
    system = run.steps[0].system
    assert system.startswith("Be brief.")
    assert '<toolkit name="arithmetic">' in system
    assert "desk__add, desk__fail" in system


def test_a_directive_applies_only_to_the_first_step(play: Play) -> None:
    run = play(kit.session(), "Please add 2 and 3.", [ADD, "Five."])
    first, second = run.steps
    assert {"desk__add", "desk__order"} < set(first.tools)
    focus = f"Call one of these tools in your next step: {', '.join(sorted({'desk__add', *LOADERS}))}."
    assert first.choice == "required" or focus in first.told
    assert second.choice is None
    # A model's thinking is bound to everything that it read before: none of it changes in later steps.
    assert (second.system, second.tools) == (first.system, first.tools)
    assert second.told.startswith(first.told)


def test_the_model_receives_schemas_unchanged(play: Play) -> None:
    run = play(kit.session(), "What is it?", ["Nothing."])
    surface = kit.operator("GET", f"agents/{kit.AGENT}/surface")
    granted = {tool["name"]: tool["input_schema"] for tool in surface["tools"]}
    assert "$defs" in granted["desk__order"]
    sent = run.steps[0].tools
    assert {name: sent[name] for name in granted} == granted


def test_the_model_reads_errors_and_the_run_continues(play: Play) -> None:
    script: Script = [Call("desk__fail", {"because": "lunch"}), Call("desk__add", {"a": "two"}), "I give up."]
    run = play(kit.session(), "What is it?", script)
    failed, invalid = run.results
    assert "The desk is closed: lunch." in failed.text
    assert failed.is_error is not False
    assert "invalid-arguments" in invalid.text
    assert invalid.is_error is not False
    assert run.answer == "I give up."


def test_a_load_affects_only_its_own_conversation(play: Play) -> None:
    first, second = kit.session(), kit.session()
    play(first, "Load.", [Call("load_tools", {"toolkit": "desk_notes"}), "Done."])
    assert "desk__add_note" in play(first, "Go on.", ["Yes."]).steps[0].tools
    assert "desk__add_note" not in play(second, "Go on.", ["Yes."]).steps[0].tools
