"""Tests an agent of Google's ADK, from an event loop and from a thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import documented
import kit
import pytest
import scenario
from google.adk import agents, models, runners, sessions
from google.genai import types
from local_scenario import *  # noqa: F403 - the tests of local tools that all parts share
from scenario import *  # noqa: F403 - the tests that all parts share

from toolbelt.adapters import google_adk
from toolbelt.adapters.connection import http


class Scripted(models.BaseLlm):
    """Replies as the script says, and keeps what it was sent."""

    left: list[Any]
    steps: list[Any]

    async def generate_content_async(
        self, llm_request: models.LlmRequest, stream: bool = False
    ) -> AsyncIterator[models.LlmResponse]:
        config = llm_request.config
        declared = [one for tool in config.tools or () for one in tool.function_declarations or ()]
        told = {one.name: one.parameters_json_schema or one.parameters for one in declared}
        calling = config.tool_config.function_calling_config if config.tool_config else None
        choice = "required" if calling and calling.mode == types.FunctionCallingConfigMode.ANY else None
        self.steps.append(scenario.Step(str(config.system_instruction), told, choice))
        reply = await asyncio.to_thread(scenario.next_of, self.left)
        if isinstance(reply, str):
            part = types.Part(text=reply)
        else:
            part = types.Part(function_call=types.FunctionCall(name=reply.name, args=reply.arguments))
        yield models.LlmResponse(content=types.Content(role="model", parts=[part]))


class Player:
    """Runs an agent from an event loop, another one each time."""

    # A session of ADK's is one of a user's, and so it is here.
    before_session = "u/"

    def __init__(self, loads: Any = "step") -> None:
        self.toolbelt = google_adk.Toolbelt(http.Http(kit.ADDRESS, kit.AGENT, kit.TOKEN), loads=loads)
        self.kept = sessions.InMemorySessionService()

    def events(self, runner: runners.Runner, **given: Any) -> list[Any]:
        async def collected() -> list[Any]:
            return [event async for event in runner.run_async(**given)]

        return asyncio.run(collected())

    def __call__(self, session: str, message: str, script: scenario.Script, *own: Any) -> scenario.Played:
        model = Scripted(model="scripted", left=list(script), steps=[])
        agent = agents.LlmAgent(
            name="assistant",
            model=model,
            instruction="Be brief.",
            tools=[*own, self.toolbelt],
            before_tool_callback=self.toolbelt.before_tool_callback,
        )
        runner = runners.Runner(app_name="interop", agent=agent, session_service=self.kept)
        known = asyncio.run(self.kept.get_session(app_name="interop", user_id="u", session_id=session))
        if known is None:
            asyncio.run(self.kept.create_session(app_name="interop", user_id="u", session_id=session))
        content = types.Content(role="user", parts=[types.Part(text=message)])
        events = self.events(runner, user_id="u", session_id=session, new_message=content)
        answers = [answer for event in events for answer in event.get_function_responses()]
        results = [
            scenario.Result(str(one.name), _text(one.response), "error" in one.response) for one in answers
        ]
        assert not self.toolbelt._steps, "what was asked is kept for longer than a step"
        return scenario.Played(model.steps, results, events[-1].content.parts[0].text)


def _text(response: dict[str, Any]) -> str:
    return str(response.get("result") if response.keys() == {"result"} else response)


class Blocking(Player):
    """Runs an agent from a thread."""

    def events(self, runner: runners.Runner, **given: Any) -> list[Any]:
        return list(runner.run(**given))


@pytest.fixture(params=[Player, Blocking])
def play(request: pytest.FixtureRequest) -> Player:
    player: Player = request.param()
    return player


@pytest.fixture
def pinned() -> Player:
    return Player("run")


@pytest.fixture(params=[Player, Blocking])
def start(request: pytest.FixtureRequest) -> Any:
    def start(connection: Any, **more: Any) -> Player:
        player: Player = request.param()
        player.toolbelt = google_adk.Toolbelt(connection, **more)
        return player

    return start


def test_the_programs_own_tools_stay(play: Player) -> None:
    def shout(text: str) -> str:
        """Shout."""
        return text.upper()

    played = play(kit.session(), "Shout!", [scenario.Call("shout", {"text": "hey"}), "Done."], shout)
    assert {"shout", "desk__add"} < set(played.steps[0].tools)
    assert "HEY" in played.results[0].text


def test_the_documented_program_runs() -> None:
    model = Scripted(model="scripted", left=[scenario.ADD, "Five."], steps=[])
    answer = documented.program("Google ADK", model=model)["answer"]
    assert answer("What is it?", kit.session()) == "Five."
    assert "desk__add" in model.steps[0].tools


def test_the_documented_program_with_its_own_tools_runs() -> None:
    documented.check_own_tools("Google ADK", lambda script: Scripted(model="scripted", left=script, steps=[]))
