"""Tests an agent of Google's ADK in a conversation, with Gemini, and with a model that is told everything in words."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Iterator
from typing import Any

import kit
import pytest
from google import genai
from google.adk import agents, models, runners, sessions
from google.genai import types

from tests.providers import gemini_server
from toolbelt.adapters import google_adk
from toolbelt.adapters.connection import http

MODEL = "gemini-3.5-flash"
USER = "u"


class Other(models.Gemini):
    """A model that has Gemini's form, but not its name."""

    async def generate_content_async(
        self, llm_request: models.LlmRequest, stream: bool = False
    ) -> AsyncIterator[models.LlmResponse]:
        assert llm_request.config.tool_config is None
        llm_request.model = MODEL
        async for response in super().generate_content_async(llm_request, stream):
            yield response


class Failing(models.Gemini):
    """A model that cannot be reached."""

    async def generate_content_async(
        self, llm_request: models.LlmRequest, stream: bool = False
    ) -> AsyncIterator[models.LlmResponse]:
        raise ConnectionError("The model is away.")
        yield


class Chatting:
    """A conversation with one model. Each message is answered by a new agent, from the stored session."""

    def __init__(self, name: str, server: gemini_server.Server) -> None:
        self.name, self.server, self.session = name, server, kit.session()
        self.stored = sessions.InMemorySessionService()
        asyncio.run(self.stored.create_session(app_name="interop", user_id=USER, session_id=self.session))

    def say(self, text: str, kind: type[models.Gemini] | None = None, **more: Any) -> list[str]:
        """Return the results of the tools that the model called."""
        return asyncio.run(self._say(text, kind, more))

    async def _say(self, text: str, kind: type[models.Gemini] | None, more: Any) -> list[str]:
        options = types.HttpOptions(base_url=self.server.address)
        client = genai.Client(api_key="k", vertexai=False, http_options=options)
        model = (kind or (Other if self.name == "other" else models.Gemini))(
            model=self.name if self.name == "other" else MODEL
        )
        vars(model)["api_client"] = client
        async with http.Http(kit.ADDRESS, kit.AGENT, kit.TOKEN) as connection:
            toolbelt = google_adk.Toolbelt(connection)
            agent = agents.LlmAgent(
                name="assistant",
                model=model,
                instruction="Be brief.",
                tools=[*more.pop("own", ()), toolbelt],
                before_model_callback=toolbelt.before_model_callback,
                before_tool_callback=toolbelt.before_tool_callback,
                **more,
            )
            runner = runners.Runner(app_name="interop", agent=agent, session_service=self.stored)
            content = types.UserContent(text)
            run = runner.run_async(user_id=USER, session_id=self.session, new_message=content)
            events = [event async for event in run]
        return [str(each.response) for event in events for each in event.get_function_responses()]

    @property
    def sent(self) -> str:
        """Return the texts of the last request."""
        contents = self.server.log[-1]["messages"]
        return "\n".join(part["text"] for each in contents for part in each["parts"] if "text" in part)

    def check(self) -> None:
        """Check that the provider accepted everything, with one prefix."""
        assert [entry["message"] for entry in self.server.log if entry["status"] != 200] == []
        assert len({entry["head"] for entry in self.server.log}) == 1


@pytest.fixture(params=["gemini", "other"])
def chatting(request: pytest.FixtureRequest) -> Iterator[Chatting]:
    with gemini_server.Server() as server:
        yield Chatting(request.param, server)


def policy(text: str) -> None:
    kit.operator("PATCH", "toolkits/arithmetic", {"changes": {"policy": text}, "confirm": True})


def test_no_change_breaks_a_conversation(chatting: Chatting) -> None:
    before = kit.operator("GET", "toolkits/arithmetic")["policy"]
    chatting.say("Hello.")
    chatting.say("Please add.")
    # For Gemini, the focus is the choice of tools.
    allowed = {"call_tool", "desk__add", "list_toolkits", "load_tools", "search_tools", "unload_tools"}
    is_said = "Call one of these tools in your next step" in chatting.sent
    assert is_said or {*chatting.server.log[-1]["allowed"]} == allowed
    try:
        with kit.switched("arithmetic", False):
            refused = chatting.say('insist desk__add {"a": 2, "b": 3}')
            assert "No longer available: desk__add" in chatting.sent
            # Gemini cannot even call it.
            assert all("no longer available" in result for result in refused)
            assert bool(refused) == (chatting.name == "other")
        policy("Add with care: you have {active_tools}.")
        added = chatting.say('call desk__add {"a": 2, "b": 3}')
        assert "Add with care" in chatting.sent
        assert "Available from now on: desk__add" in chatting.sent
        assert added == ["{'sum': 5}"]
    finally:
        policy(before)
    load = 'call load_tools {"toolkit": "desk_notes"}'
    note = {"tool": "desk__add_note", "arguments": {"text": "Milk."}}
    _, noted, _ = chatting.say(f"{load} then call_tool {json.dumps(note)} + list_toolkits {{}}")
    assert "Noted: Milk." in noted
    with kit.switched("desk_notes", False):
        chatting.say("Goodbye.")
    chatting.check()
    assert len(chatting.server.log) >= 9


def test_what_a_failed_request_said_is_said_behind_the_next_message(chatting: Chatting) -> None:
    chatting.say("Hello.")
    with kit.switched("arithmetic", False):
        with pytest.raises(ConnectionError):
            chatting.say("Are you there?", kind=Failing)
        chatting.say("Hello again.")
        assert chatting.sent.count("No longer available: desk__add") == 1
        assert chatting.sent.index("Hello again.") < chatting.sent.index("No longer available")
    chatting.check()
    assert len(chatting.server.log) == 2


def test_the_programs_own_tools_stay_callable(chatting: Chatting) -> None:
    def shout(text: str) -> str:
        """Shout."""
        return text.upper()

    chatting.say("Hello.", own=[shout])
    with kit.switched("arithmetic", False):
        (shouted,) = chatting.say('call shout {"text": "hey"}', own=[shout])
    assert "HEY" in shouted
    chatting.check()


def test_an_agent_that_does_not_read_the_history_reads_what_is_true(chatting: Chatting) -> None:
    chatting.say("Hello.", include_contents="none")
    with kit.switched("arithmetic", False):
        chatting.say("Hello.", include_contents="none")
        assert "desk__add" not in chatting.server.log[-1]["shown"]
        assert "No longer available" not in chatting.sent
    assert {entry["status"] for entry in chatting.server.log} == {200}


def test_two_agents_of_a_session_keep_conversations_of_their_own(chatting: Chatting) -> None:
    chatting.say("Hello.")
    with kit.switched("arithmetic", False):
        chatting.say("Hello.")
    stored = asyncio.run(
        chatting.stored.get_session(app_name="interop", user_id=USER, session_id=chatting.session)
    )
    assert {*stored.state} == {"_toolbelt_assistant", "_toolbelt_assistant_prefixes"}
    assert "No longer available" not in str([event.content for event in stored.events])


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
    try:
        for _ in range(15):
            for toolkit in rng.sample(["arithmetic", "orders", "desk_notes"], rng.randrange(3)):
                kit.switch(toolkit, rng.choice([True, False]))
            chatting.say(rng.choice(says))
    finally:
        kit.switch("arithmetic", True)
        kit.switch("orders", True)
        kit.switch("desk_notes", None)
    chatting.check()
