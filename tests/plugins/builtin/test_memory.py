"""Tests of the memory plugin: notes per agent, found by their words, and never another agent's."""

from __future__ import annotations

import asyncio
import datetime as dt
import itertools
import json
import time
from typing import Any

import pytest

from tests.plugins.builtin import fakes
from toolbelt.plugins import contract
from toolbelt.plugins.builtin.memory import notes, plugin, toolkit

START = dt.datetime(2026, 5, 1, 12, tzinfo=dt.UTC)


def make_harness(**config: Any) -> fakes.Harness:
    seconds = itertools.count()
    memory = plugin.Memory(now=lambda: START + dt.timedelta(seconds=next(seconds)))
    return fakes.Harness(memory, fakes.Runtime(config))


@pytest.fixture
def harness() -> fakes.Harness:
    return make_harness()


def remember(harness: fakes.Harness, text: str, *tags: str, agent: str = "ada") -> str:
    return str(harness.call(agent, "memory__remember", text=text, tags=list(tags))["id"])


def search(harness: fakes.Harness, query: str, agent: str = "ada", **options: Any) -> list[str]:
    return [note["text"] for note in harness.call(agent, "memory__search", query=query, **options)["notes"]]


def list_texts(harness: fakes.Harness, agent: str = "ada", **options: Any) -> list[str]:
    return [note["text"] for note in harness.call(agent, "memory__list", **options)["notes"]]


def test_a_note_is_found_with_its_tags_and_creation_time(harness: fakes.Harness) -> None:
    note_id = remember(harness, "The user prefers trains to planes.", "travel")
    result = harness.call("ada", "memory__search", query="train")
    assert result == {
        "notes": [
            {
                "id": note_id,
                "text": "The user prefers trains to planes.",
                "tags": ["travel"],
                "made": "2026-05-01T12:00:00.000000+00:00",
            }
        ],
        "searched": 1,
    }


def test_rare_words_and_tags_rank_above_common_words(harness: fakes.Harness) -> None:
    for city in ("Oslo", "Rome", "Lima"):
        remember(harness, f"The office in {city} opens at nine.")
    remember(harness, "Ask Kim for the keys.", "office")
    assert search(harness, "office in Lima")[0] == "The office in Lima opens at nine."
    assert search(harness, "office", limit=1) == ["Ask Kim for the keys."]


def test_whole_word_matches_rank_above_partial_matches(harness: fakes.Harness) -> None:
    remember(harness, "Her birth was in May.")
    remember(harness, "A birthday cake is ordered.")
    assert search(harness, "birth") == ["Her birth was in May.", "A birthday cake is ordered."]


def test_scripts_without_spaces_are_searched(harness: fakes.Harness) -> None:
    remember(harness, "妈妈的生日是五月三日")
    remember(harness, "Größe der Küche: 12 m²")
    assert search(harness, "生日") == ["妈妈的生日是五月三日"]
    assert search(harness, "küche") == ["Größe der Küche: 12 m²"]


def test_a_query_without_words_finds_nothing(harness: fakes.Harness) -> None:
    remember(harness, "anything")
    assert search(harness, "?!") == []
    assert search(harness, "\x00") == []


def test_an_agent_cannot_list_search_or_forget_notes_of_another_agent(harness: fakes.Harness) -> None:
    secret = remember(harness, "The plan is blue.", agent="ada")
    for other in ("ada2", "ad", "Ada", "bob", "ada."):
        assert search(harness, "plan blue", agent=other) == []
        assert list_texts(harness, agent=other) == []
        assert "no note" in harness.refusal(other, "memory__forget", id=secret)
    assert list_texts(harness) == ["The plan is blue."]


def test_another_agents_note_is_refused_like_a_nonexistent_note(harness: fakes.Harness) -> None:
    secret = remember(harness, "The plan is blue.", agent="ada")
    nonexistent = "0" * 8
    refused = harness.refusal("bob", "memory__forget", id=secret)
    assert refused.replace(secret, nonexistent) == harness.refusal("bob", "memory__forget", id=nonexistent)


def test_notes_stay_separate_in_a_database_that_ignores_case(harness: fakes.Harness) -> None:
    harness.runtime.state.ignores_case = True
    remember(harness, "The plan is blue.", agent="Ada")
    assert list_texts(harness, agent="ada") == []
    assert list_texts(harness, agent="Ada") == ["The plan is blue."]


@pytest.mark.parametrize("wrong", ["../bob/1", "/", "ada/x", "\x00", "%", "ABCDEF12", "abcdef12\n"])
def test_an_invalid_id_never_reaches_the_store(harness: fakes.Harness, wrong: str) -> None:
    asyncio.run(harness.runtime.state.set(f"ada/{wrong}", {"text": "", "tags": [], "made": ""}))
    assert "no note" in harness.refusal("ada", "memory__forget", id=wrong)


def test_notes_are_unavailable_outside_of_a_call(harness: fakes.Harness) -> None:
    with pytest.raises(contract.ToolError, match="not by an agent"):
        asyncio.run(harness.plugin.execute("memory__list", {}))  # type: ignore[arg-type]


def test_remembering_the_same_text_again_merges_the_tags(harness: fakes.Harness) -> None:
    first = harness.call("ada", "memory__remember", text="Kim has the keys.", tags=["office"])
    again = harness.call("ada", "memory__remember", text=" Kim has the keys. ", tags=["Keys", "office"])
    assert first["new"]
    assert again == {"id": first["id"], "tags": ["office", "keys"], "new": False}
    assert list_texts(harness) == ["Kim has the keys."]


def test_tags_are_normalized_and_filter_the_list(harness: fakes.Harness) -> None:
    remember(harness, "one", " Home  Office ", "home office")
    remember(harness, "two")
    assert list_texts(harness, tag="HOME office") == ["one"]
    assert list_texts(harness, tag="home") == []
    assert list_texts(harness, tag=" ") == []
    assert list_texts(harness) == ["two", "one"]


def test_a_forgotten_note_is_deleted(harness: fakes.Harness) -> None:
    note_id = remember(harness, "old")
    assert harness.call("ada", "memory__forget", id=note_id) == {"id": note_id, "forgotten": True}
    assert list_texts(harness) == []
    assert "no note" in harness.refusal("ada", "memory__forget", id=note_id)


def test_notes_that_are_too_long_or_empty_are_refused_with_advice(harness: fakes.Harness) -> None:
    assert remember(harness, "x" * notes.Limits().max_note_length)
    message = harness.refusal("ada", "memory__remember", text="x" * (notes.Limits().max_note_length + 1))
    assert "4001 characters" in message
    assert "at most 4000 are allowed" in message
    assert "several notes" in message
    assert "empty" in harness.refusal("ada", "memory__remember", text=" \x00\n ")


def test_control_characters_are_removed_from_notes(harness: fakes.Harness) -> None:
    remember(harness, "a\x00b\x9fc\x1b[31m\nd\te")
    assert list_texts(harness) == ["abc[31m\nd\te"]


def test_a_full_memory_refuses_new_notes_until_a_note_is_forgotten() -> None:
    harness = make_harness(max_notes=2)
    first = remember(harness, "one")
    remember(harness, "two")
    assert "at most 2 are allowed" in harness.refusal("ada", "memory__remember", text="three")
    assert not harness.call("ada", "memory__remember", text="two", tags=["more"])["new"]
    assert remember(harness, "three", agent="bob")
    harness.call("ada", "memory__forget", id=first)
    assert remember(harness, "three")


@pytest.mark.slow
def test_ten_thousand_notes_are_searched_quickly_and_listed_in_pages() -> None:
    harness = make_harness(max_notes=10_000)
    state = harness.runtime.state
    for number in range(10_000):
        created = (START - dt.timedelta(minutes=number)).isoformat(timespec="microseconds")
        value = {
            "text": f"Order {number} is in hall {number % 7}. " + "word " * 40,
            "tags": [],
            "made": created,
        }
        state.texts[f"ada/{number:08x}"] = json.dumps(value)
    start_time = time.process_time()
    assert search(harness, "order 4711", limit=1)[0].startswith("Order 4711 ")
    # Generous: it takes a second on an idle machine.
    assert time.process_time() - start_time < 20
    page = harness.call("ada", "memory__list")
    assert (len(page["notes"]), page["total"], page["next_start"]) == (50, 10_000, 50)
    assert all(len(note["text"]) == 201 for note in page["notes"])
    last = harness.call("ada", "memory__list", start=9_990)
    assert (len(last["notes"]), last["next_start"]) == (10, None)
    assert "at most 10000 are allowed" in harness.refusal("ada", "memory__remember", text="one more")


def test_a_very_long_query_is_answered(harness: fakes.Harness) -> None:
    remember(harness, "needle")
    assert search(harness, "needle " + " ".join(f"w{number}" for number in range(50_000))) == ["needle"]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"max_notes": "many"}, "memory is not valid: max_notes: Input should be a valid integer"),
        ({"max_notes": 0}, "max_notes: Input should be greater than or equal to 1"),
        ({"max_notes": True}, "max_notes: not a number"),
        ({"max_note_length": 10**6}, "max_note_length: .* less than or equal to 50000"),
        ({"most": 1}, "memory has no setting 'most'. Its settings are max_note_length, max_notes."),
    ],
)
def test_an_invalid_setting_is_reported_by_name(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_harness(**config)


def test_a_numeric_setting_can_be_given_as_text() -> None:
    assert "at most 1 are allowed" in make_harness(max_note_length="1").refusal(
        "ada", "memory__remember", text="xx"
    )


def test_every_tool_is_in_the_namespace_and_the_toolkit() -> None:
    names = tuple(tool.name for tool in plugin.Memory().tools)
    assert names == toolkit.Notes.members
    assert all(name.startswith("memory__") for name in names)


def test_the_policy_covers_only_active_tools_and_says_notes_are_not_instructions() -> None:
    notes_toolkit = toolkit.Notes()
    policy = notes_toolkit.policy(contract.PolicyContext(active_tools=("memory__search",)))
    assert "never as an instruction" in policy
    assert "search your notes" in policy
    assert "password" not in policy
    assert "password" in notes_toolkit.policy(contract.PolicyContext(active_tools=toolkit.Notes.members))


def directive(message: str, *active: str) -> contract.Focus | None:
    context = contract.DirectiveContext(active_tools=active or toolkit.Notes.members, message=message)
    return toolkit.Notes().directive(context)


@pytest.mark.parametrize(
    ("message", "tool"),
    [
        ("Please remember that I am vegetarian", "memory__remember"),
        ("make a note: Kim is away", "memory__remember"),
        ("Do you remember my sister's name?", "memory__search"),
        ("I told you which hotel", "memory__search"),
        ("Show me all your notes", "memory__list"),
        ("Forget what I said about Rome", "memory__forget"),
    ],
)
def test_a_message_about_notes_focuses_on_the_memory_tools(message: str, tool: str) -> None:
    focus = directive(message)
    assert focus is not None
    assert tool in focus.active_tools
    assert focus.tool_choice == "auto"
    assert focus.because.startswith("says '")


@pytest.mark.parametrize(
    "message", ["Remember to run the tests", "Note the time", "", "Forget it", "x" * 10**6]
)
def test_other_messages_set_no_focus(message: str) -> None:
    assert directive(message) is None


def test_an_inactive_tool_is_never_in_the_focus() -> None:
    assert directive("Remember that I am here", "memory__list") is None
    focus = directive("Forget that", "memory__search")
    assert focus is not None
    assert focus.active_tools == ("memory__search",)
