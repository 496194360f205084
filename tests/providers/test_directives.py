"""Tests that a directive breaks no run: the providers' own SDKs against strict fakes of their services.

The system prompt and the tools must be the same in all steps, because the thinking of Claude's models is bound to them,
and a call may be forced only where the model accepts it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import anthropic
import httpx
import openai
import pytest

from tests.adapters import served
from tests.docs import pages
from tests.providers import anthropic_server, chat_server, models, openai_server
from toolbelt import testing
from toolbelt.adapters import plain
from toolbelt.adapters.connection import http
from toolbelt.control.config import belts
from toolbelt.control.people import tokens

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

BELT: dict[str, Any] = {
    "tools": [{"key": "clock", "description": "Tells the time."}, {"key": "calc"}, {"key": "spare_tool"}],
    "toolkits": [
        {
            "key": "desk",
            "members": ["clock", "calc"],
            "policy": "Use {active_tools}.",
            "triggers": [
                {"name": "must", "any": ["must"], "focus": ["clock"], "tool_choice": "required"},
                {"name": "all", "any": ["anything"], "tool_choice": "required"},
                {"name": "may", "any": ["may"], "focus": ["clock"]},
            ],
        },
        {"key": "spare", "members": ["spare_tool"]},
    ],
    "agents": [{"key": "assistant", "tools_config": {"desk": True}, "allowed_toolkits": ["spare"]}],
}
# What the scripted model does in a turn: one step, two and three, with results of tools between them.
TURNS = [
    "{0}, please.",
    'call search_tools {{"query": "{0}"}}',
    'call search_tools {{"query": "{0}"}} then call list_toolkits {{}} + clock {{}}',
]
# A focus, a required call of some tools, and one of any tool.
DIRECTIVES = ["may", "must", "anything"]
CLAUDES = tuple(models.CLAUDE)
OPENAIS = tuple(models.OPENAI)
# The documented loop joins no messages, which a model that demands alternation needs: see test_conversations.
CHATS = tuple(name for name, model in chat_server.MODELS.items() if not model.alternates)


@pytest.fixture
def token(db: None) -> str:
    """Store the belt, and return the agent's token."""
    belts.import_(testing.OPERATOR, BELT)
    return tokens.issue(testing.OPERATOR, agent="assistant").text


@pytest.fixture
def client(token: str) -> Iterator[httpx.Client]:
    """Yield a client of the API, without a socket, as the documented programs take it."""
    with httpx.Client(
        transport=served.transport(),
        base_url="http://testserver/api/v1/agents/assistant/",
        headers={"Authorization": f"Bearer {token}"},
    ) as client:
        yield client


@pytest.fixture
def connection(token: str) -> http.Http:
    """Return the agent's connection, without a socket."""
    address = "http://testserver"
    blocking = http.BlockingHttp(address, "assistant", token, transport=served.transport())
    return http.Http(address, "assistant", token, blocking=blocking)


@pytest.fixture(scope="module")
def documented() -> dict[str, Any]:
    """Return the programs of the page on providers."""
    namespace: dict[str, Any] = {}
    page = pages.ROOT / "docs/how-to/give-a-surface-to-a-provider.md"
    for block in pages.blocks(page, "py"):
        exec(compile(block, str(page), "exec"), namespace)  # noqa: S102 (our own page)
    return namespace


@pytest.fixture(scope="module")
def anthropic_service() -> Iterator[anthropic_server.Server]:
    with anthropic_server.Server() as server:
        yield server


@pytest.fixture(scope="module")
def openai_service() -> Iterator[openai_server.Server]:
    with openai_server.Server() as server:
        yield server


@pytest.fixture(scope="module")
def chat_service() -> Iterator[chat_server.Server]:
    with chat_server.Server() as server:
        yield server


@pytest.fixture
def claude(anthropic_service: anthropic_server.Server) -> anthropic_server.Server:
    anthropic_service.log.clear()
    return anthropic_service


@pytest.fixture
def gpt(openai_service: openai_server.Server) -> openai_server.Server:
    openai_service.log.clear()
    return openai_service


@pytest.fixture
def chat(chat_service: chat_server.Server) -> chat_server.Server:
    chat_service.log.clear()
    return chat_service


@cache
def messages_of(server: Any) -> anthropic.Anthropic:
    return anthropic.Anthropic(api_key="k", base_url=server.address, max_retries=0)


@cache
def openai_of(server: Any) -> openai.OpenAI:
    return openai.OpenAI(api_key="k", base_url=f"{server.address}/v1", max_retries=0)


def check(server: Any, steps: int) -> None:
    """Check that the provider accepted all steps, with the same system prompt and tools in each."""
    assert [entry.get("message", "") for entry in server.log if entry["status"] != 200] == []
    assert len(server.log) == steps
    assert len({entry["head"] for entry in server.log}) == 1


def texts(messages: list[Any]) -> str:
    return json.dumps([message for message in messages if message["role"] != "assistant"])


@pytest.mark.parametrize("model", CLAUDES)
def test_the_documented_anthropic_loop_answers_every_directive_on_every_model(
    model: str, documented: dict[str, Any], client: httpx.Client, claude: anthropic_server.Server
) -> None:
    for directive in DIRECTIVES:
        for steps, turn in enumerate(TURNS, 1):
            claude.log.clear()
            talk = documented["Conversation"](client, "s", "anthropic", model)
            documented["message"](messages_of(claude), talk, turn.format(directive))
            check(claude, steps)


@pytest.mark.parametrize("model", OPENAIS)
def test_the_documented_responses_loop_answers_every_directive_on_every_model(
    model: str, documented: dict[str, Any], client: httpx.Client, gpt: openai_server.Server
) -> None:
    for directive in DIRECTIVES:
        for steps, turn in enumerate(TURNS, 1):
            gpt.log.clear()
            talk = documented["Conversation"](client, "s", "openai_responses", model)
            documented["respond"](openai_of(gpt), talk, turn.format(directive))
            check(gpt, steps)


@pytest.mark.parametrize("model", CHATS)
def test_the_documented_chat_loop_answers_every_directive_on_every_model(
    model: str, documented: dict[str, Any], client: httpx.Client, chat: chat_server.Server
) -> None:
    for directive in DIRECTIVES:
        for steps, turn in enumerate(TURNS, 1):
            chat.log.clear()
            talk = documented["Conversation"](client, "s", "openai_chat", model)
            documented["chat"](openai_of(chat), talk, turn.format(directive))
            check(chat, steps)


@pytest.mark.parametrize("model", ["", *CLAUDES])
def test_a_loop_of_a_programs_own_keeps_its_conversation_across_turns(
    model: str, connection: http.Http, claude: anthropic_server.Server
) -> None:
    """What a turn added is still there in later ones, to whose prefix it belongs. Without a model's name, too."""
    toolbelt = plain.Toolbelt(connection, model=model)
    history: list[Any] = []
    sdk = messages_of(claude)
    served_by = model or "claude-opus-5-5"
    for text in ["hello", *(turn.format(directive) for directive in DIRECTIVES for turn in TURNS), "bye"]:
        run = toolbelt.begin(text, "s1")
        history.append({"role": "user", "content": text})
        while True:
            step = run.step("anthropic")
            history += step.messages
            answer = sdk.messages.create(
                model=served_by,
                max_tokens=99,
                messages=history,
                system=step.system("Be brief."),
                thinking={"type": "adaptive"},
                **step.parameters,
            )
            history.append({"role": "assistant", "content": answer.content})
            results = [
                {
                    "type": "tool_result",
                    "tool_use_id": block.id,
                    "content": run.call(block.name, block.input).text,
                }
                for block in answer.content
                if block.type == "tool_use"
            ]
            if not results:
                break
            history.append({"role": "user", "content": results})
    check(claude, 2 + len(DIRECTIVES) * (1 + 2 + 3))


@pytest.mark.parametrize("model", CLAUDES)
def test_a_required_call_is_forced_or_put_into_words(
    model: str, connection: http.Http, claude: anthropic_server.Server
) -> None:
    step = plain.Toolbelt(connection, model=model).begin("must", "s").step("anthropic")
    history: list[Any] = [{"role": "user", "content": "must"}, *step.messages]
    messages_of(claude).messages.create(
        model=model, max_tokens=99, messages=history, system=step.system(), **step.parameters
    )
    [entry] = claude.log
    is_forced = model in ("claude-haiku-5-5", "claude-opus-5", "claude-opus-4-8")
    assert entry["choice"] == ("any" if is_forced else "auto")
    role = "system" if models.CLAUDE[model].system == "native" else "user"
    assert [message["role"] for message in entry["messages"]] == ["user", role]
    assert "Call one of these tools in your next step: clock" in texts(entry["messages"])


@pytest.mark.parametrize("model", ["claude-sonnet-4-6", "claude-haiku-4-5", "claude-sonnet-5"])
def test_a_model_that_thinks_is_not_forced_where_thinking_forbids_it(
    model: str, connection: http.Http, claude: anthropic_server.Server
) -> None:
    step = plain.Toolbelt(connection, model=model).begin("must").step("anthropic")
    thinking: Any = {"type": "enabled", "budget_tokens": 1024}
    history: list[Any] = [{"role": "user", "content": "must"}, *step.messages]
    messages_of(claude).messages.create(
        model=model, max_tokens=2000, messages=history, thinking=thinking, **step.parameters
    )
    check(claude, 1)


def test_the_agents_stored_model_counts_if_the_question_names_none(client: httpx.Client, token: str) -> None:
    def first_step(**question: str) -> Any:
        asked = {"format": "anthropic", "message": "must", **question}
        answer = client.post("surface", json=asked).raise_for_status().json()
        return answer["provider"]["first_step"]

    unknown = first_step()
    assert ("tool_choice" in unknown, unknown["messages"][0]["role"]) == (False, "user")
    agent = {**BELT["agents"][0], "model": "claude-haiku-5-5"}
    belts.import_(testing.OPERATOR, {"agents": [agent]})
    assert first_step()["tool_choice"] == {"type": "tool", "name": "clock"}
    assert "tool_choice" not in first_step(model="claude-opus-5-5")
    assert first_step(model="claude-opus-5-5")["messages"][0]["role"] == "system"
    # Equal again, from what is cached.
    assert first_step()["tool_choice"] == {"type": "tool", "name": "clock"}
