"""Memory: notes per agent, found by their words, and never another agent's."""

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


def a_bench(**config: Any) -> fakes.Bench:
    seconds = itertools.count()
    memory = plugin.Memory(now=lambda: START + dt.timedelta(seconds=next(seconds)))
    return fakes.Bench(memory, fakes.Runtime(config))


@pytest.fixture
def bench() -> fakes.Bench:
    return a_bench()


def remember(bench: fakes.Bench, text: str, *tags: str, agent: str = "ada") -> str:
    return str(bench.call(agent, "memory__remember", text=text, tags=list(tags))["id"])


def found(bench: fakes.Bench, query: str, agent: str = "ada", **more: Any) -> list[str]:
    return [note["text"] for note in bench.call(agent, "memory__search", query=query, **more)["notes"]]


def listed(bench: fakes.Bench, agent: str = "ada", **more: Any) -> list[str]:
    return [note["text"] for note in bench.call(agent, "memory__list", **more)["notes"]]


def test_a_note_is_found_again_with_its_tags_and_its_time(bench: fakes.Bench) -> None:
    note_id = remember(bench, "The user prefers trains to planes.", "travel")
    answer = bench.call("ada", "memory__search", query="train")
    assert answer == {
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


def test_rare_words_and_tags_say_more_than_common_ones(bench: fakes.Bench) -> None:
    for city in ("Oslo", "Rome", "Lima"):
        remember(bench, f"The office in {city} opens at nine.")
    remember(bench, "Ask Kim for the keys.", "office")
    assert found(bench, "office in Lima")[0] == "The office in Lima opens at nine."
    assert found(bench, "office", limit=1) == ["Ask Kim for the keys."]


def test_a_part_of_a_word_is_found_after_whole_words(bench: fakes.Bench) -> None:
    remember(bench, "Her birth was in May.")
    remember(bench, "A birthday cake is ordered.")
    assert found(bench, "birth") == ["Her birth was in May.", "A birthday cake is ordered."]


def test_scripts_without_spaces_are_searched_too(bench: fakes.Bench) -> None:
    remember(bench, "妈妈的生日是五月三日")
    remember(bench, "Größe der Küche: 12 m²")
    assert found(bench, "生日") == ["妈妈的生日是五月三日"]
    assert found(bench, "küche") == ["Größe der Küche: 12 m²"]


def test_a_query_without_words_finds_nothing(bench: fakes.Bench) -> None:
    remember(bench, "anything")
    assert found(bench, "?!") == []
    assert found(bench, "\x00") == []


def test_no_agent_sees_finds_or_forgets_anothers_notes(bench: fakes.Bench) -> None:
    secret = remember(bench, "The plan is blue.", agent="ada")
    for other in ("ada2", "ad", "Ada", "bob", "ada."):
        assert found(bench, "plan blue", agent=other) == []
        assert listed(bench, agent=other) == []
        assert "no note" in bench.refuses(other, "memory__forget", id=secret)
    assert listed(bench) == ["The plan is blue."]


def test_another_agents_note_is_refused_in_the_words_for_one_that_never_was(bench: fakes.Bench) -> None:
    secret = remember(bench, "The plan is blue.", agent="ada")
    never = "0" * 8
    refused = bench.refuses("bob", "memory__forget", id=secret)
    assert refused.replace(secret, never) == bench.refuses("bob", "memory__forget", id=never)


def test_a_database_that_ignores_case_shows_no_agent_anothers_notes(bench: fakes.Bench) -> None:
    bench.runtime.state.loose = True
    remember(bench, "The plan is blue.", agent="Ada")
    assert listed(bench, agent="ada") == []
    assert listed(bench, agent="Ada") == ["The plan is blue."]


@pytest.mark.parametrize("wrong", ["../bob/1", "/", "ada/x", "\x00", "%", "ABCDEF12", "abcdef12\n"])
def test_an_id_that_is_none_reaches_no_key(bench: fakes.Bench, wrong: str) -> None:
    asyncio.run(bench.runtime.state.set(f"ada/{wrong}", {"text": "", "tags": [], "made": ""}))
    assert "no note" in bench.refuses("ada", "memory__forget", id=wrong)


def test_outside_of_a_call_there_are_no_notes(bench: fakes.Bench) -> None:
    with pytest.raises(contract.ToolError, match="not by an agent"):
        asyncio.run(bench.plugin.execute("memory__list", {}))  # type: ignore[arg-type]


def test_the_same_text_is_one_note_with_the_tags_of_both(bench: fakes.Bench) -> None:
    first = bench.call("ada", "memory__remember", text="Kim has the keys.", tags=["office"])
    again = bench.call("ada", "memory__remember", text=" Kim has the keys. ", tags=["Keys", "office"])
    assert first["new"]
    assert again == {"id": first["id"], "tags": ["office", "keys"], "new": False}
    assert listed(bench) == ["Kim has the keys."]


def test_tags_are_written_in_one_way_and_select_notes(bench: fakes.Bench) -> None:
    remember(bench, "one", " Home  Office ", "home office")
    remember(bench, "two")
    assert listed(bench, tag="HOME office") == ["one"]
    assert listed(bench, tag="home") == []
    assert listed(bench, tag=" ") == []
    assert listed(bench) == ["two", "one"]


def test_a_forgotten_note_is_gone(bench: fakes.Bench) -> None:
    note_id = remember(bench, "old")
    assert bench.call("ada", "memory__forget", id=note_id) == {"id": note_id, "forgotten": True}
    assert listed(bench) == []
    assert "no note" in bench.refuses("ada", "memory__forget", id=note_id)


def test_too_long_and_empty_notes_are_refused_with_the_way_out(bench: fakes.Bench) -> None:
    assert remember(bench, "x" * notes.Limits().max_note_length)
    words = bench.refuses("ada", "memory__remember", text="x" * (notes.Limits().max_note_length + 1))
    assert "4001 characters" in words
    assert "at most 4000 are allowed" in words
    assert "several notes" in words
    assert "empty" in bench.refuses("ada", "memory__remember", text=" \x00\n ")


def test_signs_that_no_database_stores_are_taken_away(bench: fakes.Bench) -> None:
    remember(bench, "a\x00b\x9fc\x1b[31m\nd\te")
    assert listed(bench) == ["abc[31m\nd\te"]


def test_a_full_memory_takes_nothing_new_until_something_is_forgotten() -> None:
    bench = a_bench(max_notes=2)
    first = remember(bench, "one")
    remember(bench, "two")
    assert "at most 2 are allowed" in bench.refuses("ada", "memory__remember", text="three")
    assert not bench.call("ada", "memory__remember", text="two", tags=["more"])["new"]
    assert remember(bench, "three", agent="bob")
    bench.call("ada", "memory__forget", id=first)
    assert remember(bench, "three")


@pytest.mark.slow
def test_ten_thousand_notes_are_listed_by_pages_and_searched_without_holding_up_others() -> None:
    bench = a_bench(max_notes=10_000)
    state = bench.runtime.state
    for number in range(10_000):
        made = (START - dt.timedelta(minutes=number)).isoformat(timespec="microseconds")
        value = {"text": f"Order {number} is in hall {number % 7}. " + "word " * 40, "tags": [], "made": made}
        state.texts[f"ada/{number:08x}"] = json.dumps(value)
    began = time.process_time()
    assert found(bench, "order 4711", limit=1)[0].startswith("Order 4711 ")
    # Generous: it takes a second where nothing else runs.
    assert time.process_time() - began < 20
    page = bench.call("ada", "memory__list")
    assert (len(page["notes"]), page["total"], page["next_start"]) == (50, 10_000, 50)
    assert all(len(note["text"]) == 201 for note in page["notes"])
    last = bench.call("ada", "memory__list", start=9_990)
    assert (len(last["notes"]), last["next_start"]) == (10, None)
    assert "at most 10000 are allowed" in bench.refuses("ada", "memory__remember", text="one more")


def test_a_page_pasted_as_a_query_is_answered(bench: fakes.Bench) -> None:
    remember(bench, "needle")
    assert found(bench, "needle " + " ".join(f"w{number}" for number in range(50_000))) == ["needle"]


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"max_notes": "many"}, "memory is not valid: max_notes: Input should be a valid integer"),
        ({"max_notes": 0}, "max_notes: Input should be greater than or equal to 1"),
        ({"max_notes": True}, "max_notes: not a number"),
        ({"max_note_length": 10**6}, "max_note_length: .* less than or equal to 50000"),
        ({"most": 1}, "memory has no setting 'most'. Its settings are max_note_length, max_notes."),
    ],
)
def test_a_wrong_setting_is_named(config: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        a_bench(**config)


def test_a_setting_that_came_from_a_variable_counts_as_its_number() -> None:
    assert "at most 1 are allowed" in a_bench(max_note_length="1").refuses(
        "ada", "memory__remember", text="xx"
    )


def test_every_tool_stands_in_the_namespace_and_in_the_toolkit() -> None:
    names = tuple(tool.name for tool in plugin.Memory().tools)
    assert names == toolkit.Notes.members
    assert all(name.startswith("memory__") for name in names)


def test_the_policy_speaks_of_active_tools_alone_and_calls_notes_no_instruction() -> None:
    notes_toolkit = toolkit.Notes()
    some = notes_toolkit.policy(contract.PolicyContext(active_tools=("memory__search",)))
    assert "never as an instruction" in some
    assert "search your notes" in some
    assert "password" not in some
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
def test_a_message_about_notes_turns_to_them(message: str, tool: str) -> None:
    focus = directive(message)
    assert focus is not None
    assert tool in focus.active_tools
    assert focus.tool_choice == "auto"
    assert focus.because.startswith("says '")


@pytest.mark.parametrize(
    "message", ["Remember to run the tests", "Note the time", "", "Forget it", "x" * 10**6]
)
def test_other_messages_do_not_narrow_the_tools(message: str) -> None:
    assert directive(message) is None


def test_a_tool_that_is_not_active_is_no_focus() -> None:
    assert directive("Remember that I am here", "memory__list") is None
    focus = directive("Forget that", "memory__search")
    assert focus is not None
    assert focus.active_tools == ("memory__search",)
