"""Tests an agent of the OpenAI Agents SDK in a conversation, with both of OpenAI's APIs and with local models."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import agents
import documented
import kit
import openai
import pytest

from tests.providers import chat_server, openai_server
from toolbelt.adapters import openai_agents
from toolbelt.adapters.connection import http

agents.set_tracing_disabled(True)

MODELS = [
    ("responses", "gpt-5.6"),
    ("responses", "gpt-5.4"),
    ("chat", "gpt-5.6"),
    ("chat", "qwen3-coder"),
    ("chat", "gemma-3"),
    ("chat", "kimi-k3"),
]


class Chatting:
    """A conversation with one model. Its history and its state are JSON between two messages."""

    def __init__(self, api: str, model: str, server: Any) -> None:
        self.api, self.name, self.server = api, model, server
        self.session, self.history, self.state = kit.session(), "[]", "null"

    def say(self, text: str, **more: Any) -> str:
        return asyncio.run(self._say(text, **more))

    async def _say(
        self, text: str, model: Callable[[openai.AsyncOpenAI], agents.Model | str] | None = None, **more: Any
    ) -> str:
        async with (
            http.Http(kit.ADDRESS, kit.AGENT, kit.TOKEN) as toolbelt,
            openai.AsyncOpenAI(api_key="k", base_url=f"{self.server.address}/v1", max_retries=0) as client,
        ):
            return await self._run(text, (model or self.model)(client), toolbelt, more)

    def model(self, client: openai.AsyncOpenAI) -> agents.Model:
        kind = agents.OpenAIResponsesModel if self.api == "responses" else agents.OpenAIChatCompletionsModel
        return kind(self.name, openai_client=client)

    async def _run(self, text: str, model: agents.Model | str, toolbelt: http.Http, more: Any) -> str:
        told = openai_agents.Conversation(json.loads(self.state))
        agent = openai_agents.Agent(
            name="Assistant",
            instructions="Be brief.",
            model=model,
            toolbelt=toolbelt,
            session=self.session,
            conversation=told,
        )
        items = [*json.loads(self.history), {"role": "user", "content": text}]
        self.history = json.dumps(items)
        try:
            result = await agents.Runner.run(
                agent, items, **{"run_config": openai_agents.run_config(), **more}
            )
        finally:
            self.state = json.dumps(told.state)
        self.history = json.dumps(result.to_input_list())
        return str(result.final_output)

    def results(self) -> list[str]:
        """Return the results of tools since the user's last message."""
        items = json.loads(self.history)
        last = max(index for index, item in enumerate(items) if item.get("role") == "user")
        return [str(item["output"]) for item in items[last:] if item.get("type") == "function_call_output"]

    @property
    def sent(self) -> str:
        """Return the last request's messages, or what the model saw of it."""
        entry = self.server.log[-1]
        return json.dumps(entry.get("messages") or entry["texts"])

    def check(self) -> None:
        """Check that the provider accepted everything, with one prefix."""
        assert [entry["message"] for entry in self.server.log if entry["status"] != 200] == []
        assert len({entry["head"] for entry in self.server.log}) == 1


@pytest.fixture(params=MODELS, ids=lambda each: "-".join(each))
def chatting(request: pytest.FixtureRequest) -> Iterator[Chatting]:
    api, model = request.param
    with openai_server.Server() if api == "responses" else chat_server.Server() as server:
        yield Chatting(api, model, server)


def policy(text: str) -> None:
    kit.operator("PATCH", "toolkits/arithmetic", {"changes": {"policy": text}, "confirm": True})


def test_no_change_breaks_a_conversation(chatting: Chatting) -> None:
    before = kit.operator("GET", "toolkits/arithmetic")["policy"]
    chatting.say("Hello.")
    chatting.say("Please add.")
    # For others, the focus is a tool choice.
    assert "Call one of these tools in your next step" in chatting.sent or chatting.name.startswith("gpt")
    try:
        with kit.switched("arithmetic", False):
            chatting.say('insist desk__add {"a": 2, "b": 3}')
            assert "No longer available: desk__add" in chatting.sent
            # OpenAI's models cannot even call it.
            for refused in chatting.results():
                assert "no longer available" in refused
        policy("Add with care: you have {active_tools}.")
        chatting.say('call desk__add {"a": 2, "b": 3}')
        assert "Add with care" in chatting.sent
        assert "Available from now on: desk__add" in chatting.sent
        assert '"sum": 5' in chatting.results()[0]
    finally:
        policy(before)
    load = 'call load_tools {"toolkit": "desk_notes"}'
    note = {"tool": "desk__add_note", "arguments": {"text": "Milk."}}
    chatting.say(f"{load} then call_tool {json.dumps(note)} + list_toolkits {{}}")
    assert "Noted: Milk." in chatting.results()[1]
    with kit.switched("desk_notes", False):
        chatting.say("Goodbye.")
    chatting.check()
    assert len(chatting.server.log) >= 9


def test_openais_models_are_restricted_to_what_is_granted(chatting: Chatting) -> None:
    chatting.say("Hello.")
    with kit.switched("arithmetic", False):
        chatting.say('insist desk__add {"a": 2, "b": 3}')
    entry = chatting.server.log[1]
    if not chatting.name.startswith("gpt"):
        assert entry["choice"] == "auto"
        return
    choice = entry.get("choice") or {"allowed_tools": {"tools": [{"name": n} for n in entry["allowed"]]}}
    allowed = {(tool.get("function") or tool)["name"] for tool in choice["allowed_tools"]["tools"]}
    assert {"call_tool", "desk__order", "search_tools"} <= allowed
    assert "desk__add" not in allowed
    # The fake of Chat lets a model insist, and Toolbelt refuses.
    assert all("no longer available" in refused for refused in chatting.results())


def test_what_a_failed_request_said_is_said_behind_the_next_message(chatting: Chatting) -> None:
    def failing(client: openai.AsyncOpenAI) -> agents.Model:
        model = chatting.model(client)

        async def fail(*arguments: Any, **options: Any) -> Any:
            raise openai.APIConnectionError(request=None)  # type: ignore[arg-type]

        model.get_response = fail  # type: ignore[method-assign]
        return model

    chatting.say("Hello.")
    with kit.switched("arithmetic", False):
        with pytest.raises(openai.APIConnectionError):
            chatting.say("Are you there?", model=failing)
        chatting.say("Hello again.")
        sent = chatting.sent
        assert sent.count("No longer available: desk__add") == 1
        if chatting.api == "chat":
            assert sent.index("Hello again.") < sent.index("No longer available")
    chatting.check()
    assert len(chatting.server.log) == 2


def test_a_copy_of_the_history_and_the_state_is_a_fork(chatting: Chatting) -> None:
    chatting.say("Hello.")
    forked = chatting.history, chatting.state
    with kit.switched("arithmetic", False):
        chatting.say("Left.")
        assert "No longer available: desk__add" in chatting.sent
    chatting.history, chatting.state = forked
    chatting.say("Right.")
    assert "No longer available" not in chatting.sent
    chatting.check()


def test_random_changes_break_no_conversation(chatting: Chatting) -> None:
    rng = random.Random(7)  # noqa: S311 - reproducible on purpose
    says = [
        "Hello.",
        "Please add.",
        'insist desk__add {"a": 2, "b": 3}',
        'call load_tools {"toolkit": "desk_notes"} then list_toolkits {}',
        'call unload_tools {"toolkit": "desk_notes"}',
        'call desk__order {"lines": []} + desk__add {"a": 1, "b": 1}',
    ]
    forks = [(chatting.history, chatting.state)]
    try:
        for _ in range(15):
            for toolkit in rng.sample(["arithmetic", "orders", "desk_notes"], rng.randrange(3)):
                kit.switch(toolkit, rng.choice([True, False]))
            if rng.random() < 0.2:
                chatting.history, chatting.state = rng.choice(forks)
            chatting.say(rng.choice(says))
            forks.append((chatting.history, chatting.state))
    finally:
        kit.switch("arithmetic", True)
        kit.switch("orders", True)
        kit.switch("desk_notes", None)
    assert [entry["message"] for entry in chatting.server.log if entry["status"] != 200] == []


def test_a_run_without_the_configuration_is_an_error_that_names_it() -> None:
    with chat_server.Server() as server:
        chatting = Chatting("chat", "gpt-5.6", server)
        with pytest.raises(agents.UserError, match="run_config"):
            chatting.say("call list_toolkits {}", run_config=agents.RunConfig())


def test_without_a_model_object_everything_is_said_in_words() -> None:
    with chat_server.Server() as server:
        chatting = Chatting("chat", "gpt-5.6", server)

        class Provider(agents.ModelProvider):
            def get_model(self, model_name: str | None) -> agents.Model:
                return chatting.model(self.client)

            def named(self, client: openai.AsyncOpenAI) -> str:
                self.client = client
                return chatting.name

        def say_by_name() -> None:
            provider = Provider()
            config = openai_agents.run_config(model_provider=provider)
            chatting.say("Hello.", model=provider.named, run_config=config)

        say_by_name()
        with kit.switched("arithmetic", False):
            say_by_name()
        assert "No longer available: desk__add" in chatting.sent
        assert server.log[-1]["choice"] == "auto"
        chatting.check()


def test_the_documented_program_keeps_a_conversation() -> None:
    with openai_server.Server() as server:
        client = openai.AsyncOpenAI(api_key="k", base_url=f"{server.address}/v1")
        known = documented.program(
            "Conversations of the OpenAI Agents SDK",
            model=agents.OpenAIResponsesModel("gpt-5.6", openai_client=client),
        )
        session = kit.session()
        _, history, state = known["answer"]("Hello.", session, [], None)
        with kit.switched("arithmetic", False):
            answer, _, _ = known["answer"]("Hello again.", session, history, state)
    assert answer == "done 2"
    assert {entry["status"] for entry in server.log} == {200}
    assert len({entry["head"] for entry in server.log}) == 1
    assert "No longer available: desk__add" in server.log[1]["texts"][-1]
