"""Tests an agent of Google's ADK, from an event loop and from a thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import approval_scenario
import documented
import kit
import pytest
import scenario
from approval_scenario import *  # noqa: F403 - the tests of runs that pause that all parts share
from google.adk import agents, models, runners, sessions
from google.genai import types
from local_scenario import *  # noqa: F403 - the tests of local tools that all parts share
from scenario import *  # noqa: F403 - the tests that all parts share

from toolbelt.adapters import google_adk
from toolbelt.adapters.connection import http


class Scripted(models.BaseLlm):
    """A model that replies as the script says, and records its requests."""

    replies: list[Any]
    steps: list[Any]

    async def generate_content_async(
        self, llm_request: models.LlmRequest, stream: bool = False
    ) -> AsyncIterator[models.LlmResponse]:
        config = llm_request.config
        functions = [function for tool in config.tools or () for function in tool.function_declarations or ()]
        schemas = {
            function.name: function.parameters_json_schema or function.parameters for function in functions
        }
        calling = config.tool_config.function_calling_config if config.tool_config else None
        choice = "required" if calling and calling.mode == types.FunctionCallingConfigMode.ANY else None
        contents = [content for content in llm_request.contents if content.role == "user"]
        told = [part.text for content in contents for part in content.parts or () if part.text]
        self.steps.append(scenario.Step(str(config.system_instruction), schemas, choice, "\n".join(told)))
        reply = await asyncio.to_thread(scenario.next_reply, self.replies)
        if isinstance(reply, str):
            part = types.Part(text=reply)
        else:
            part = types.Part(function_call=types.FunctionCall(name=reply.name, args=reply.arguments))
        yield models.LlmResponse(content=types.Content(role="model", parts=[part]))


class Player:
    """A player that runs the agent from a new event loop each time."""

    # ADK's sessions belong to a user, so the recorded key contains the user.
    before_session = "u/"

    def __init__(self, loads: Any = "step") -> None:
        self.toolbelt = google_adk.Toolbelt(http.Http(kit.ADDRESS, kit.AGENT, kit.TOKEN), loads=loads)
        self.session_service = sessions.InMemorySessionService()

    def events(self, runner: runners.Runner, **arguments: Any) -> list[Any]:
        async def collected() -> list[Any]:
            return [event async for event in runner.run_async(**arguments)]

        return asyncio.run(collected())

    def __call__(self, session: str, message: str, script: scenario.Script, *own: Any) -> scenario.Run:
        model = Scripted(model="scripted", replies=list(script), steps=[])
        agent = agents.LlmAgent(
            name="assistant",
            model=model,
            instruction="Be brief.",
            tools=[*own, self.toolbelt],
            before_tool_callback=self.toolbelt.before_tool_callback,
        )
        runner = runners.Runner(app_name="interop", agent=agent, session_service=self.session_service)
        existing = asyncio.run(
            self.session_service.get_session(app_name="interop", user_id="u", session_id=session)
        )
        if existing is None:
            asyncio.run(
                self.session_service.create_session(app_name="interop", user_id="u", session_id=session)
            )
        content = types.Content(role="user", parts=[types.Part(text=message)])
        events = self.events(runner, user_id="u", session_id=session, new_message=content)
        responses = [response for event in events for response in event.get_function_responses()]
        results = [
            scenario.Result(str(response.name), _text(response.response), "error" in response.response)
            for response in responses
        ]
        assert not self.toolbelt._steps, "the state of a step must not outlive the step"
        return scenario.Run(model.steps, results, events[-1].content.parts[0].text)


def _text(response: dict[str, Any]) -> str:
    return str(response.get("result") if response.keys() == {"result"} else response)


class Blocking(Player):
    """A player that runs the agent from a thread."""

    def events(self, runner: runners.Runner, **arguments: Any) -> list[Any]:
        return list(runner.run(**arguments))


@pytest.fixture(params=[Player, Blocking])
def play(request: pytest.FixtureRequest) -> Player:
    player: Player = request.param()
    return player


@pytest.fixture
def pinned() -> Player:
    return Player("run")


@pytest.fixture(params=[Player, Blocking])
def start(request: pytest.FixtureRequest) -> Any:
    def start(connection: Any, **options: Any) -> Player:
        player: Player = request.param()
        player.toolbelt = google_adk.Toolbelt(connection, **options)
        return player

    return start


class Pausing:
    """A program that confirms what it is asked to confirm, in a conversation or not."""

    # ADK asks for one confirmation of a call.
    pauses_again = False

    def __init__(self, connection: Any, is_conversation: bool, **options: Any) -> None:
        self.toolbelt = google_adk.Toolbelt(connection, **{"approvals": "pause", **options})
        self.callback = self.toolbelt.before_model_callback if is_conversation else None

    def begin(self, session: str, call: scenario.Call) -> Any:
        agent = agents.LlmAgent(
            name="assistant",
            model=Scripted(model="scripted", replies=[call, "Done."], steps=[]),
            tools=[self.toolbelt],
            before_model_callback=self.callback,
            before_tool_callback=self.toolbelt.before_tool_callback,
        )
        service = sessions.InMemorySessionService()
        self.runner = runners.Runner(
            app_name="interop", agent=agent, session_service=service, auto_create_session=True
        )
        self.session = session
        return self._after(types.Part(text="Do it."))

    def resume(self) -> Any:
        response = types.FunctionResponse(
            id=self.request.id, name=self.request.name, response={"confirmed": True}
        )
        return self._after(types.Part(function_response=response))

    def _after(self, part: types.Part) -> Any:
        message = types.Content(role="user", parts=[part])
        events = [*self.runner.run(user_id="u", session_id=self.session, new_message=message)]
        calls = [call for event in events for call in event.get_function_calls()]
        requests = [call for call in calls if call.name == "adk_request_confirmation"]
        if requests:
            [self.request] = requests
            return approval_scenario.Paused([self.request.args["toolConfirmation"]["payload"]])
        responses = [response for event in events for response in event.get_function_responses()]
        return str(responses[-1].response)


@pytest.fixture(params=[False, True])
def pausing(request: pytest.FixtureRequest) -> Any:
    return lambda connection, **options: Pausing(connection, request.param, **options)


def test_the_program_keeps_its_own_tools(play: Player) -> None:
    def shout(text: str) -> str:
        """Shout."""
        return text.upper()

    run = play(kit.session(), "Shout!", [scenario.Call("shout", {"text": "hey"}), "Done."], shout)
    assert {"shout", "desk__add"} < set(run.steps[0].tools)
    assert "HEY" in run.results[0].text


def test_the_documented_program_runs() -> None:
    model = Scripted(model="scripted", replies=[scenario.ADD, "Five."], steps=[])
    answer = documented.program("Google ADK", model=model)["answer"]
    assert answer("What is it?", kit.session()) == "Five."
    assert "desk__add" in model.steps[0].tools


def test_the_documented_program_with_its_own_tools_runs() -> None:
    documented.check_own_tools(
        "Google ADK", lambda script: Scripted(model="scripted", replies=script, steps=[])
    )
