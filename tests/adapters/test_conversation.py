"""Tests of conversations that a program keeps: what is sent where, and what is left after a failure."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from tests.providers import soak
from toolbelt.adapters import plain
from toolbelt.adapters.connection import conversation, protocol
from toolbelt.core import errors

CLAUDE, GPT = "claude-opus-5-5", "gpt-5.6"
USER = {"role": "user", "content": "hi"}
THINKING = {"type": "thinking", "thinking": "…", "signature": "s"}
ANSWER = {"role": "assistant", "content": [THINKING, {"type": "text", "text": "yes"}]}


@pytest.fixture
def world() -> soak.World:
    return soak.World(random.Random(1))  # noqa: S311


@pytest.fixture
def toolbelt(world: soak.World) -> plain.Toolbelt:
    return plain.Toolbelt(world)  # type: ignore[arg-type]


def flip(world: soak.World, **config: bool) -> None:
    world.config |= config
    entry = {"key": soak.AGENT, "tools_config": world.config}
    world.core.edit({"agents": [entry]}, lenient=False)


def begin(toolbelt: plain.Toolbelt, state: Any = None, form: str = "anthropic", model: str = CLAUDE) -> Any:
    return toolbelt.conversation(form, model=model, system="Be brief.", state=state)


def answered(talk: Any, messages: list[Any], answer: Any = ANSWER) -> dict[str, Any]:
    """Ask for a request of the conversation, have it answered, and return its parameters."""
    step = talk.begin("hi", "s").ask(messages)
    step.answered()
    messages.append(answer)
    parameters: dict[str, Any] = dict(step.parameters)
    return parameters


def roles(parameters: dict[str, Any]) -> list[str]:
    return [message["role"] for message in parameters["messages"]]


def test_what_was_said_stays_where_it_was_said(world: soak.World, toolbelt: plain.Toolbelt) -> None:
    talk, messages = begin(toolbelt), list[Any]([USER])
    first = answered(talk, messages)
    flip(world, kit0=False)
    messages.append(USER)
    second = answered(talk, messages)
    messages += [USER]
    third = answered(talk, messages)
    assert roles(first) == ["user"]
    assert roles(second) == ["user", "assistant", "user", "system"]
    assert roles(third) == ["user", "assistant", "user", "system", "assistant", "user"]
    assert third["messages"][:4] == second["messages"]
    assert first["system"] == second["system"] == third["system"]
    assert first["tools"] == second["tools"] == third["tools"]
    assert first["system"][0]["text"] == "Be brief."
    # The program's own messages are its own.
    assert roles({"messages": messages}) == ["user", "assistant"] * 3


def test_a_request_that_was_not_answered_leaves_no_trace(world: soak.World, toolbelt: plain.Toolbelt) -> None:
    talk, messages = begin(toolbelt), list[Any]([USER])
    answered(talk, messages)
    before = talk.state
    flip(world, kit0=False)
    messages.append(USER)
    lost = talk.begin("hi", "s").ask(messages)
    assert roles(lost.parameters)[-1] == "system"
    assert talk.state == before
    # The user writes again: what is said moves behind that.
    messages.append(USER)
    assert roles(answered(talk, messages)) == ["user", "assistant", "user", "user", "system"]


def test_the_state_is_json_and_a_copy_is_a_fork(world: soak.World, toolbelt: plain.Toolbelt) -> None:
    talk, messages = begin(toolbelt), list[Any]([USER])
    answered(talk, messages)
    stored = json.dumps(talk.state)
    flip(world, kit0=False)
    left, right = begin(toolbelt, json.loads(stored)), begin(toolbelt, json.loads(stored))
    assert roles(answered(left, [*messages, USER]))[-1] == "system"
    flip(world, kit0=True)
    assert roles(answered(right, [*messages, USER]))[-1] == "user"
    assert talk.state == json.loads(stored)


def test_a_state_of_another_version_is_refused(toolbelt: plain.Toolbelt) -> None:
    with pytest.raises(errors.Invalid, match="state"):
        begin(toolbelt, {"v": 9, "lines": {}})


def test_a_conversation_whose_history_was_cut_begins_again(
    world: soak.World, toolbelt: plain.Toolbelt
) -> None:
    talk, messages = begin(toolbelt), list[Any]([USER])
    answered(talk, messages)
    flip(world, kit0=False)
    messages.append(USER)
    answered(talk, messages)
    cut = [USER]
    assert talk.begin("hi", "s").ask(cut).restart["code"] == "cut"
    assert roles(answered(talk, cut)) == ["user"]
    assert talk.begin("hi", "s").ask([*cut, USER]).restart is None


@pytest.mark.parametrize("is_block", [False, True])
def test_a_compaction_is_recognized_once(world: soak.World, toolbelt: plain.Toolbelt, is_block: bool) -> None:
    talk, messages = begin(toolbelt), list[Any]([USER])
    answered(talk, messages)
    flip(world, kit0=False)
    messages.append(USER)
    compaction = {"type": "compaction", "content": "They greeted each other."}
    answer = {"role": "assistant", "content": [compaction, *ANSWER["content"]]}
    said = answered(talk, messages, answer if is_block else ANSWER)["messages"][-1]
    assert said["role"] == "system"
    messages += [USER] if is_block else [USER, compaction, USER]
    again = answered(talk, messages)["messages"]
    # The removal of the tools is kept; the words about them are said again.
    assert [part["type"] for part in again[-1]["content"]] == ["text"]
    assert again[-1]["content"][-1]["text"] in said["content"][-1]["text"]
    messages.append(USER)
    assert answered(talk, messages)["messages"][-1]["role"] == "user"


def test_a_new_start_leaves_out_the_thinking_from_before(world: soak.World, toolbelt: plain.Toolbelt) -> None:
    talk, messages = begin(toolbelt), list[Any]([USER])
    answered(talk, messages)
    state = talk.state
    state["lines"]["anthropic/claude"]["token"] = "tbc1.lost"
    talk = begin(toolbelt, state)
    messages.append(USER)
    step = talk.begin("hi", "s").ask(messages)
    assert step.restart["code"] == "unknown"
    assert step.parameters["messages"][1] == {
        "role": "assistant",
        "content": [{"type": "text", "text": "yes"}],
    }
    step.answered()
    messages.extend([ANSWER, USER])
    later = talk.begin("hi", "s").ask(messages)
    assert later.restart is None
    assert [len(message["content"]) for message in later.parameters["messages"][1::2]] == [1, 2]


def test_each_line_of_models_has_a_prefix_of_its_own_and_continues_it(
    world: soak.World, toolbelt: plain.Toolbelt
) -> None:
    messages: list[Any] = [USER]
    talk = begin(toolbelt)
    first = answered(talk, messages)
    flip(world, kit0=False)
    messages.append(USER)
    other = begin(toolbelt, talk.state, model="claude-haiku-4-5")
    second = answered(other, messages)
    assert roles(second) == ["user", "assistant", "user"]
    assert second["tools"] != first["tools"]
    messages.append(USER)
    back = begin(toolbelt, other.state)
    third = answered(back, messages)
    assert (third["system"], third["tools"]) == (first["system"], first["tools"])
    assert roles(third) == ["user", "assistant", "user", "assistant", "user", "system"]
    messages.append(USER)
    assert roles(answered(begin(toolbelt, back.state, model="claude-fable-5-2"), messages))[-1] == "user"


def test_without_a_models_name_the_line_is_the_one_that_toolbelt_names(world: soak.World) -> None:
    entry = {"key": soak.AGENT, "model": CLAUDE}
    world.core.edit({"agents": [entry]}, lenient=False)
    messages = [USER]
    talk = begin(plain.Toolbelt(world), model="")  # type: ignore[arg-type]
    answered(talk, messages)
    assert [*talk.state["lines"]] == ["anthropic/claude"]
    flip(world, kit0=False)
    messages.append(USER)
    assert roles(answered(talk, messages))[-1] == "system"


def test_an_answer_of_several_items_counts_once(world: soak.World, toolbelt: plain.Toolbelt) -> None:
    talk = begin(toolbelt, form="openai_responses", model=GPT)
    items: list[Any] = [{"role": "user", "content": "hi"}]
    talk.begin("hi", "s").ask(items).answered()
    items += [
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "function_call", "call_id": "c", "name": "p__tool0", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "1"},
    ]
    flip(world, kit0=False)
    step = talk.begin("hi", "s").ask(items)
    step.answered()
    items += [{"type": "reasoning", "id": "r2", "summary": []}, {"role": "assistant", "content": "done"}]
    kinds = [
        item.get("type", item.get("role")) for item in talk.begin("hi", "s").ask(items).parameters["input"]
    ]
    assert kinds == [
        *("user", "reasoning", "function_call", "function_call_output", "developer"),
        *("reasoning", "assistant"),
    ]
    assert step.parameters["instructions"].startswith("Be brief.\n\n")


def test_a_step_that_is_asked_for_again_still_has_the_users_message(
    world: soak.World, toolbelt: plain.Toolbelt
) -> None:
    run = begin(toolbelt).begin("something about kit0", "s")
    assert roles(run.ask([USER]).parameters) == ["user", "system"]
    again = run.ask([USER])
    assert roles(again.parameters) == ["user", "system"]
    again.answered()
    assert roles(run.ask([USER, ANSWER, USER]).parameters)[-1] == "user"


def test_a_call_says_in_which_conversation_it_is_made(world: soak.World, toolbelt: plain.Toolbelt) -> None:
    talk = begin(toolbelt, model="claude-haiku-4-5")
    run = talk.begin("hi", "s")
    run.ask([USER]).answered()
    flip(world, kit5=True)
    arguments = {"tool": "p__tool20", "arguments": {}}
    assert run.call("call_tool", arguments).value == {"ran": "p__tool20"}
    assert toolbelt.begin("hi", "s").call("call_tool", arguments).is_error


def test_a_conversation_goes_on_as_it_was_while_toolbelt_cannot_be_reached(
    world: soak.World, toolbelt: plain.Toolbelt
) -> None:
    talk, messages = begin(toolbelt), list[Any]([USER])
    first = answered(talk, messages)
    kept = conversation.Conversation("anthropic", model=CLAUDE, state=talk.state)
    messages.append(USER)
    request = kept.request(messages, None)
    assert request.parameters["tools"] == first["tools"]
    assert request.parameters["extra_headers"] == first["extra_headers"]
    with pytest.raises(protocol.Unreachable):
        conversation.Conversation("anthropic", model=CLAUDE).request(messages, None)


def test_a_call_through_call_tool_means_the_tool_that_it_names() -> None:
    given = {"tool": "refund", "arguments": {"order": 7}}
    assert conversation.dispatched("call_tool", given) == ("refund", {"order": 7})
    assert conversation.dispatched("call_tool", {"tool": "refund"}) == ("refund", {})
    for name, arguments in (("refund", given), ("call_tool", {}), ("call_tool", {"tool": 7})):
        assert conversation.dispatched(name, arguments) == (name, arguments)


def test_thinking_of_another_lines_models_is_left_out(world: soak.World, toolbelt: plain.Toolbelt) -> None:
    messages: list[Any] = [USER]
    talk = begin(toolbelt)
    answered(talk, messages)
    messages.append(USER)
    elsewhere = toolbelt.conversation(
        "anthropic", model=CLAUDE, platform="bedrock", system="Be brief.", state=talk.state
    )
    there = answered(elsewhere, messages)
    assert [len(message["content"]) for message in there["messages"][1::2]] == [1]
    messages.append(USER)
    back = answered(begin(toolbelt, elsewhere.state), messages)
    assert [len(message["content"]) for message in back["messages"][1::2]] == [2, 1]


def test_an_answer_that_only_thought_is_left_out_of_a_new_start() -> None:
    kept = conversation.Conversation("anthropic", model=CLAUDE)
    append = {"line": "anthropic/claude", "token": "t", "prefix": {}, "messages": [], "request": {}}
    thought = {"role": "assistant", "content": [THINKING]}
    request = kept.request([USER, thought, USER], {**append, "headers": {}, "restart": None})
    assert request.messages == [USER, USER]


def test_a_history_whose_beginning_was_cut_begins_again(toolbelt: plain.Toolbelt) -> None:
    talk, messages = begin(toolbelt), [USER]
    for _ in range(3):
        answered(talk, messages)
        messages.append(USER)
    kept = conversation.Conversation("anthropic", model=CLAUDE, state=talk.state)
    assert kept.question(messages)["token"]
    assert kept.question(messages[2:])["token"] is None


@pytest.mark.parametrize(
    ("form", "before", "joined"),
    [
        (
            "bedrock",
            {"role": "user", "content": [{"toolResult": {}}]},
            {"role": "user", "content": [{"toolResult": {}}, {"text": "n"}]},
        ),
        (
            "mistral",
            {"role": "tool", "tool_call_id": "c", "content": "1"},
            {"role": "tool", "tool_call_id": "c", "content": "1\n\nn"},
        ),
    ],
)
def test_a_notice_is_part_of_the_message_that_no_users_may_follow(
    form: str, before: Any, joined: Any
) -> None:
    notice = {"role": "user", "content": [{"text": "n"}] if form == "bedrock" else "n"}
    append = {"line": "x", "token": "t", "prefix": {}, "messages": [notice], "request": {}}
    request = conversation.Conversation(form).request([before], {**append, "headers": {}, "restart": None})
    assert request.messages == [joined]


def test_outputs_of_all_kinds_and_texts_are_the_programs() -> None:
    kinds = ["function_call_output", "custom_tool_call_output", "shell_call_output", "mcp_approval_response"]
    own: list[Any] = [*({"type": kind} for kind in kinds), "hi", {"parts": [{"text": "hi"}]}]
    for message in own:
        assert not conversation._is_from_model(message)
    models: list[Any] = [{"type": "reasoning"}, {"type": "function_call"}, {"role": "model"}, ANSWER]
    for message in models:
        assert conversation._is_from_model(message)


def test_a_call_of_the_programs_own_tool_is_admitted_in_its_conversation() -> None:
    class Program(soak.World):
        def declare(self, plugin: str, tools: Any) -> Any:
            return {"keys": {"refund": "p__tool0"}}

        def admit(
            self, run: Any, tool: str, arguments: Any, version: str = "", conversation: str = ""
        ) -> Any:
            told.append(conversation)
            return {"is_error": False, "call_id": "c", "options": None}

        def report(self, call_id: str, outcome: Any) -> None:
            assert outcome.code == "ok"

    told: list[str] = []
    definition = {"name": "refund", "input_schema": {"type": "object"}}
    tools = plain.tools([definition], {"refund": lambda: "done"})
    world: Any = Program(random.Random(1))  # noqa: S311
    talk = begin(plain.Toolbelt(world, local_tools=tools, plugin="p"))
    run = talk.begin("hi", "s")
    step = run.ask([USER])
    step.answered()
    assert run.call("p__tool0", {}).value == "done"
    assert told == [talk.state["lines"]["anthropic/claude"]["token"]]


def asked(toolbelt: plain.Toolbelt, state: Any, messages: list[Any]) -> tuple[Any, dict[str, Any]]:
    """Send a request of a conversation, and return its state, and the parameters."""
    talk = toolbelt.conversation("openai_chat", model="qwen3", state=state)
    step = talk.begin("hi", "s").ask(messages)
    step._request.sent()
    return json.loads(json.dumps(talk.state)), dict(step.parameters)


def test_a_request_that_was_sent_is_kept_once_the_messages_have_its_answer(
    world: soak.World, toolbelt: plain.Toolbelt
) -> None:
    messages: list[Any] = [USER]
    state, first = asked(toolbelt, None, messages)
    flip(world, kit0=False)
    # The first request is not answered: the next one begins.
    state, second = asked(toolbelt, state, messages)
    assert "tools" in first
    assert second["messages"][0] != first["messages"][0]
    messages += [{"role": "assistant", "content": "yes"}, USER]
    flip(world, kit1=False)
    lost_state, lost = asked(toolbelt, state, messages)
    state, again = asked(toolbelt, lost_state, messages)
    assert lost == again
    assert again["messages"][: len(second["messages"])] == second["messages"]
    messages += [{"role": "assistant", "content": "yes"}, USER]
    _, last = asked(toolbelt, state, messages)
    assert last["messages"][: len(again["messages"])] == again["messages"]
    assert json.dumps(last["messages"]).count("No longer available") == 1


def test_the_answer_to_a_paused_turn_continues_the_one_before(
    world: soak.World, toolbelt: plain.Toolbelt
) -> None:
    talk, messages = begin(toolbelt), list[Any]([USER])
    first = answered(talk, messages)
    flip(world, kit0=False)
    step = talk.begin("hi", "s").ask(messages, hold=True)
    step.answered()
    assert roles(step.parameters) == ["user", "assistant"]
    messages += [ANSWER, USER]
    later = talk.begin("hi", "s").ask(messages)
    assert later.restart is None
    assert later.parameters["tools"] == first["tools"]
    assert roles(later.parameters) == ["user", "assistant", "assistant", "user", "system"]
    # Its thinking stays.
    assert [len(message["content"]) for message in later.parameters["messages"][1:3]] == [2, 2]


def test_a_compaction_concerns_every_line_of_models(world: soak.World, toolbelt: plain.Toolbelt) -> None:
    talk, messages = begin(toolbelt), list[Any]([USER])
    flip(world, kit1=False)
    answered(talk, messages)
    flip(world, kit1=True)
    messages.append(USER)
    answered(talk, messages)
    other = begin(toolbelt, talk.state, model="claude-haiku-4-5")
    messages.append(USER)
    other.begin("hi", "s").ask(messages, compacted=True).answered()
    messages += [ANSWER, USER]
    back = begin(toolbelt, other.state)
    again = back.begin("hi", "s").ask(messages)
    assert "kit1" in json.dumps(again.parameters["messages"][-1])
    again.answered()
    messages += [ANSWER, USER]
    assert roles(back.begin("hi", "s").ask(messages).parameters)[-1] == "user"


def test_a_compaction_is_not_forgotten_while_toolbelt_cannot_be_reached(
    world: soak.World, toolbelt: plain.Toolbelt
) -> None:
    talk, messages = begin(toolbelt), list[Any]([USER])
    answered(talk, messages)
    kept = conversation.Conversation("anthropic", model=CLAUDE, state=talk.state)
    messages.append(USER)
    assert kept.question(messages, compacted=True)["compacted"]
    kept.request(messages, None).answered()
    assert kept.question([*messages, ANSWER, USER])["compacted"]
