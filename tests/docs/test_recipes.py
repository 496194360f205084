"""Tests that each recipe runs with the provider's own SDK against Toolbelt.

The model is a fake: it calls a tool in the first step, and answers in the second.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.adapters import served
from tests.docs import pages
from toolbelt import testing
from toolbelt.control.config import belts
from toolbelt.control.people import tokens

PAGE = pages.ROOT / "docs/how-to/give-a-surface-to-a-provider.md"
QUESTION = "What time is it?"
BELT: dict[str, Any] = {
    "tools": [{"key": "clock", "description": "Tells the time."}, {"key": "calc"}],
    "toolkits": [
        {
            "key": "desk",
            "members": ["clock", "calc"],
            "policy": "Use {active_tools}.",
            "triggers": [
                {"name": "time", "any": ["what time"], "focus": ["clock"], "tool_choice": "required"}
            ],
        }
    ],
    "agents": [{"key": "assistant", "tools_config": {"desk": True}, "allowed_toolkits": ["desk"]}],
}

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@pytest.fixture(scope="module")
def recipes() -> dict[str, Any]:
    namespace: dict[str, Any] = {}
    for block in pages.blocks(PAGE, "py"):
        exec(compile(block, str(PAGE), "exec"), namespace)  # noqa: S102 (our own page)
    return namespace


@pytest.fixture
def toolbelt(db: None) -> Iterator[httpx.Client]:
    """Yield a client of the API, without a socket."""
    belts.import_(testing.OPERATOR, BELT)
    token = tokens.issue(testing.OPERATOR, agent="assistant").text
    with httpx.Client(
        transport=served.transport(),
        base_url="http://testserver/api/v1/agents/assistant/",
        headers={"Authorization": f"Bearer {token}"},
    ) as client:
        yield client


class Model:
    """Answers requests in order and records them."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.requests = list(answers), []  # type: tuple[list[Any], list[Any]]

    def answer(self, request: Any) -> dict[str, Any]:
        self.requests.append(json.loads(request.content))
        return {"status_code": 200, "json": self.answers.pop(0)}

    def transport(self, library: Any) -> Any:
        return library.MockTransport(lambda request: library.Response(**self.answer(request)))


def talk(recipes: dict[str, Any], toolbelt: httpx.Client, form: str, model: str) -> Any:
    return recipes["Conversation"](toolbelt, "s", form, model)


def test_the_chat_completions_recipe_calls_a_tool_and_answers(
    recipes: dict[str, Callable[..., Any]], toolbelt: httpx.Client
) -> None:
    import httpx2
    import openai

    called = {"id": "c1", "type": "function", "function": {"name": "list_toolkits", "arguments": "{}"}}

    def reply(**message: Any) -> dict[str, Any]:
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
        return {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}

    model = Model(reply(content=None, tool_calls=[called]), reply(content="Noon."))
    client = openai.OpenAI(api_key="none", http_client=httpx2.Client(transport=model.transport(httpx2)))
    assert recipes["chat"](client, talk(recipes, toolbelt, "openai_chat", "gpt-5.6"), QUESTION) == "Noon."

    first, second = model.requests
    assert "Use clock, calc.\n</toolkit>" in first["messages"][0]["content"]
    assert first["tool_choice"]["allowed_tools"]["mode"] == "required"
    assert ("tool_choice" in second, second["tools"]) == (False, first["tools"])
    assert [message["role"] for message in second["messages"]] == ["system", "user", "assistant", "tool"]
    assert '"desk"' in second["messages"][-1]["content"]


def test_the_responses_recipe_calls_a_tool_and_answers(
    recipes: dict[str, Callable[..., Any]], toolbelt: httpx.Client
) -> None:
    import httpx2
    import openai

    def reply(**item: Any) -> dict[str, Any]:
        return {"id": "x", "object": "response", "created_at": 0, "model": "m", "output": [item]} | {
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        }

    text = {"type": "output_text", "text": "Noon.", "annotations": []}
    model = Model(
        reply(type="function_call", id="f1", call_id="c1", name="list_toolkits", arguments="{}"),
        reply(type="message", id="m1", role="assistant", status="completed", content=[text]),
    )
    client = openai.OpenAI(api_key="none", http_client=httpx2.Client(transport=model.transport(httpx2)))
    assert (
        recipes["respond"](client, talk(recipes, toolbelt, "openai_responses", "gpt-5.6"), QUESTION)
        == "Noon."
    )

    first, second = model.requests
    assert "Use clock, calc.\n</toolkit>" in first["instructions"]
    assert first["tool_choice"]["mode"] == "required"
    assert ("tool_choice" in second, second["tools"]) == (False, first["tools"])
    assert [item.get("type") for item in second["input"]] == [None, "function_call", "function_call_output"]
    assert '"desk"' in second["input"][-1]["output"]


def test_the_anthropic_recipe_calls_a_tool_and_answers(
    recipes: dict[str, Callable[..., Any]], toolbelt: httpx.Client
) -> None:
    import anthropic
    import httpx2

    def reply(reason: str, **block: Any) -> dict[str, Any]:
        message = {"id": "x", "type": "message", "role": "assistant", "model": "m", "content": [block]}
        usage = {"input_tokens": 1, "output_tokens": 1}
        return {**message, "stop_reason": reason, "stop_sequence": None, "usage": usage}

    model = Model(
        reply("tool_use", type="tool_use", id="t1", name="list_toolkits", input={}),
        reply("end_turn", type="text", text="Noon."),
    )
    client = anthropic.Anthropic(api_key="none", http_client=httpx2.Client(transport=model.transport(httpx2)))
    assert (
        recipes["message"](client, talk(recipes, toolbelt, "anthropic", "claude-haiku-5-5"), QUESTION)
        == "Noon."
    )

    first, second = model.requests
    assert "Use clock, calc.\n</toolkit>" in first["system"][0]["text"]
    assert not {"tool_choice"} & (first.keys() | second.keys())
    focus = first["messages"][1]["content"][0]["text"]
    assert "clock" in focus
    assert "calc" not in focus
    assert (second["tools"], second["system"]) == (first["tools"], first["system"])
    assert second["messages"][:2] == first["messages"]
    (result,) = second["messages"][-1]["content"]
    assert (result["type"], result["is_error"]) == ("tool_result", False)
    assert '"desk"' in result["content"]


def test_the_gemini_recipe_calls_a_tool_and_answers(
    recipes: dict[str, Callable[..., Any]], toolbelt: httpx.Client
) -> None:
    from google import genai
    from google.genai import types

    def reply(**part: Any) -> dict[str, Any]:
        return {"candidates": [{"content": {"role": "model", "parts": [part]}}]}

    called = {"id": "c1", "name": "list_toolkits", "args": {}}
    model = Model(reply(functionCall=called), reply(text="Noon."))
    options = types.HttpOptions(httpx_client=httpx.Client(transport=model.transport(httpx)))
    client = genai.Client(api_key="none", http_options=options)
    assert recipes["generate"](client, talk(recipes, toolbelt, "gemini", "gemini-3-pro"), QUESTION) == "Noon."

    first, second = model.requests
    assert "Use clock, calc.\n</toolkit>" in first["systemInstruction"]["parts"][0]["text"]
    modes = [sent["toolConfig"]["functionCallingConfig"]["mode"] for sent in model.requests]
    assert modes == ["ANY", "VALIDATED"]
    assert "calc" not in json.dumps(first["toolConfig"])
    assert second["tools"] == first["tools"]
    answered = second["contents"][-1]["parts"][0]["functionResponse"]
    assert answered["response"]["content"]["toolkits"][0]["name"] == "desk"
