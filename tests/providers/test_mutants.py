"""Mistakes that are planted in the core, its renderers and its client: each must be found by a named property."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import hypothesis
import pytest
from django.core import signing

from tests.providers import machine, promises, reading, soak
from toolbelt.adapters import plain
from toolbelt.adapters.connection import conversation
from toolbelt.core import admitting, conversations, dispatch, tool_deltas
from toolbelt.formats import surface as documents
from toolbelt.formats.appending import lines, rendering, words
from toolbelt.runtime.surfaces import appending, conversation_tokens

pytestmark = pytest.mark.slow

Plant = Callable[[pytest.MonkeyPatch], None]
MUTANTS: list[Any] = []


def mutant(form: str, *found_by: Any) -> Callable[[Plant], Plant]:
    """Add a mistake, which one of these properties must find in conversations with models of a form."""

    def add(plant: Plant) -> Plant:
        name = plant.__name__.replace("_", " ")
        MUTANTS.append(pytest.param(form, plant, [each.__name__ for each in found_by], id=name))
        return plant

    return add


def _after_comparing(monkeypatch: pytest.MonkeyPatch, change: Callable[..., Any]) -> None:
    compare = conversations.compare
    monkeypatch.setattr(conversations, "compare", lambda view, *rest: change(view, *compare(view, *rest)))


def _without(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    def change(view: Any, changes: Any, after: Any) -> Any:
        return dataclasses.replace(changes, **{kind: ()}), after

    _after_comparing(monkeypatch, change)


def _after_told_again(monkeypatch: pytest.MonkeyPatch, change: Callable[[Any, Any], Any]) -> None:
    told_again = conversations._told_again
    monkeypatch.setattr(
        conversations, "_told_again", lambda told, *rest: change(told, told_again(told, *rest))
    )


# What is said.


@mutant("anthropic", reading.the_model_knows_which_tools_it_may_call, reading.the_model_sees_no_other_tools)
def a_removal_is_not_said(monkeypatch: pytest.MonkeyPatch) -> None:
    _without(monkeypatch, "removed")


@mutant("openai_responses", reading.the_model_knows_which_tools_it_may_call)
def a_tool_that_comes_back_is_not_said(monkeypatch: pytest.MonkeyPatch) -> None:
    _without(monkeypatch, "offered")


@mutant("openai_chat", reading.the_model_knows_which_tools_it_may_call)
def a_tool_to_call_through_call_tool_is_not_said(monkeypatch: pytest.MonkeyPatch) -> None:
    _without(monkeypatch, "through")


@mutant("gemini", reading.the_toolkits_that_were_said_last_are_those_to_load)
def a_toolkit_to_load_is_not_said(monkeypatch: pytest.MonkeyPatch) -> None:
    _without(monkeypatch, "loadable")


@mutant("gemini", reading.the_policy_that_was_said_last_is_the_current_one)
def the_end_of_a_section_is_not_said(monkeypatch: pytest.MonkeyPatch) -> None:
    _without(monkeypatch, "ended")


@mutant("anthropic", reading.the_policy_that_was_said_last_is_the_current_one)
def a_new_text_of_a_section_is_not_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    content_of = conversations.content_of

    def by_name(*args: Any, **more: Any) -> Any:
        content = content_of(*args, **more)
        return dataclasses.replace(content, sections=dict.fromkeys(content.sections, "same"))

    monkeypatch.setattr(conversations, "content_of", by_name)


@mutant("anthropic", reading.the_model_has_the_current_definitions)
def a_new_definition_is_not_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_deltas, "_hash", lambda definition: definition.name)


@mutant("openai_responses", promises.the_provider_accepts_every_request)
def a_definition_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    def change(told: Any, again: Any) -> Any:
        return ("added", "offered") if told.how == "withdrawn" else again

    _after_told_again(monkeypatch, change)


@mutant("openai_responses", promises.nothing_is_said_while_nothing_changes)
def what_was_said_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    _after_comparing(monkeypatch, lambda view, changes, after: (changes, view))


@mutant("openai_chat", reading.nothing_from_outside_is_said_in_the_operators_name)
def descriptions_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    of = words.of

    def with_descriptions(changes: Any, *rest: Any) -> str:
        return "\n".join([of(changes, *rest), *(f"{name}: Does {name}." for name in changes.through)])

    monkeypatch.setattr(words, "of", with_descriptions)


@mutant("gemini", reading.the_model_sees_no_other_tools)
def what_was_withdrawn_may_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "request", lambda *_: rendering.Request(parameters={}))


# How it is said.


@mutant("anthropic", promises.the_provider_accepts_every_request)
def a_focus_forces_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    of = lines.of

    def forced(*args: Any) -> Any:
        line = of(*args)
        return dataclasses.replace(line, profile=dataclasses.replace(line.profile, forcing="yes"))

    monkeypatch.setattr(lines, "of", forced)


@mutant("anthropic", promises.the_provider_accepts_every_request)
def every_claude_is_taken_for_a_current_one(monkeypatch: pytest.MonkeyPatch) -> None:
    of = lines.of
    monkeypatch.setattr(
        lines, "of", lambda form, model, platform="api": of(form, "claude-opus-5-5", platform)
    )


@mutant("anthropic", promises.the_provider_accepts_every_request)
def headers_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines.Line, "headers", {})


@mutant("openai_chat", promises.a_focus_concerns_one_step)
def a_focus_is_asked_for_in_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    question = plain.ConversationRun._question

    def with_message(self: Any, *rest: Any) -> Any:
        return {**question(self, *rest), "message": self._message}

    monkeypatch.setattr(plain.ConversationRun, "_question", with_message)


@mutant("openai_chat", promises.a_run_without_a_conversation_keeps_its_prefix)
def a_focus_hides_the_other_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    read = documents.read

    def narrowed(*args: Any) -> Any:
        content = read(*args)
        names = content.first_step.names if content.first_step else content.names
        return dataclasses.replace(
            content, tools=tuple(tool for tool in content.tools if tool["name"] in names)
        )

    monkeypatch.setattr(documents, "read", narrowed)


@mutant("anthropic", promises.nothing_is_said_to_a_paused_turn)
def a_paused_turn_is_told_what_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    of = appending.of
    monkeypatch.setattr(appending, "of", lambda asked, *rest: of(asked._replace(hold=False), *rest))


# What the program keeps.


def _after_keeping(monkeypatch: pytest.MonkeyPatch, change: Callable[[Any, Any], Any]) -> None:
    after = conversation.Conversation._after
    monkeypatch.setattr(
        conversation.Conversation, "_after", lambda self, sent: change(after(self, sent), sent)
    )


@mutant("anthropic", promises.a_request_that_is_not_answered_leaves_no_trace)
def what_was_said_is_kept_before_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = conversation.Request.__init__

    def kept(self: Any, *args: Any, **more: Any) -> None:
        begin(self, *args, **more)
        self.answered()

    monkeypatch.setattr(conversation.Request, "__init__", kept)


@mutant("gemini", promises.what_was_sent_stays_as_it_was)
def what_was_said_before_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    _after_keeping(monkeypatch, lambda line, sent: {**line, "appended": line["appended"][-1:]})


@mutant("openai_responses", promises.what_was_sent_stays_as_it_was)
def what_was_said_moves_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def moved(line: Any, sent: Any) -> Any:
        return {
            **line,
            "appended": [{**entry, "before_answer": sent["number"]} for entry in line["appended"]],
        }

    _after_keeping(monkeypatch, moved)


@mutant("anthropic", promises.the_prefix_stays_the_same, promises.the_provider_accepts_every_request)
def the_system_prompt_has_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    count = itertools.count()

    def dated(line: Any, sent: Any) -> Any:
        system = [*line["prefix"].get("system", ()), {"type": "text", "text": f"It is {next(count)}."}]
        return {**line, "prefix": {**line["prefix"], "system": system}}

    _after_keeping(monkeypatch, dated)


@mutant("anthropic", promises.the_provider_accepts_every_request)
def thinking_of_another_lines_models_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "_without_thinking", list)


@mutant("anthropic", promises.only_a_purge_begins_a_conversation_again)
def what_was_purged_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversations, "purged", lambda *_: ())


@mutant(
    "gemini",
    promises.only_a_purge_begins_a_conversation_again,
    promises.nothing_is_said_while_nothing_changes,
)
def a_purge_before_the_conversation_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    purged = conversations.purged
    monkeypatch.setattr(conversations, "purged", lambda view, purges, _: purged(view, purges, 0))


@mutant(
    "anthropic", promises.only_a_purge_begins_a_conversation_again, promises.what_was_sent_stays_as_it_was
)
def the_answer_to_a_paused_turn_is_taken_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = conversation.Request.__init__

    def counted(self: Any, kept: Any, messages: Any, append: Any, **more: Any) -> None:
        begin(self, kept, messages, append, **more)
        self._sent["number"] = len(conversation._beginnings(messages))
        self._line = kept._after(self._sent)

    monkeypatch.setattr(conversation.Request, "__init__", counted)


@mutant(
    "openai_responses",
    reading.the_model_knows_which_tools_it_may_call,
    reading.the_policy_that_was_said_last_is_the_current_one,
    reading.the_model_sees_no_other_tools,
    reading.the_toolkits_that_were_said_last_are_those_to_load,
    promises.nothing_is_said_while_nothing_changes,
)
def a_compaction_is_not_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversations, "compacted", lambda view, *_: view)


# The token, and the gate.


@mutant("gemini", promises.the_token_does_not_grow_with_the_history)
def the_token_has_what_was_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(appending, "_digest", lambda text: text)


@mutant("gemini", soak.the_same_question_has_the_same_answer, promises.turning_off_and_on_again_says_nothing)
def the_token_has_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    seal, count = conversation_tokens.seal, itertools.count()
    monkeypatch.setattr(
        conversation_tokens,
        "seal",
        lambda agent, token: seal(agent, dataclasses.replace(token, chain=str(next(count)))),
    )


@mutant("gemini", promises.a_foreign_token_begins_a_new_conversation)
def a_token_is_read_for_every_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation_tokens, "_signer", lambda agent: signing.Signer(salt="conversation"))


@mutant("gemini", promises.what_is_not_granted_is_not_run)
def what_the_model_sees_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        admitting, "admit", lambda _, tool, *rest, **more: admitting.Admission(tool=tool, options={})
    )


@mutant("openai_chat", promises.what_is_not_granted_is_not_run)
def call_tool_runs_what_is_denied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        dispatch, "admit", lambda _, snapshot, tool, *rest, **more: admitting.Admission(tool=tool, options={})
    )


@pytest.mark.parametrize(("form", "plant", "found_by"), MUTANTS)
def test_a_planted_mistake_is_found(
    form: str, plant: Plant, found_by: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError) as failure:
        machine.run(
            form, max_examples=80, derandomize=True, database=None, phases=[hypothesis.Phase.generate]
        )
    assert {entry.name for entry in failure.traceback} & {*found_by}
