"""Tests an agent of the OpenAI Agents SDK, with and without streaming."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import agents
import approval_scenario
import documented
import kit
import pytest
import scenario
from approval_scenario import *  # noqa: F403 - the tests of runs that pause that all parts share
from local_scenario import *  # noqa: F403 - the tests of local tools that all parts share
from openai.types import responses
from scenario import *  # noqa: F403 - the tests that all parts share

from toolbelt.adapters import openai_agents
from toolbelt.adapters.connection import http

agents.set_tracing_disabled(True)


class Scripted(agents.Model):
    """A model that replies as the script says, and records its requests."""

    def __init__(self, script: scenario.Script) -> None:
        self.replies, self.steps = list(script), []  # type: tuple[list[Any], list[scenario.Step]]
        # OpenAI's models alone are forced to call a tool.
        self.model = "gpt-5.6"

    async def get_response(
        self,
        system_instructions: Any,
        input: Any,  # noqa: A002 - the SDK's name
        model_settings: Any,
        tools: Any,
        *arguments: Any,
        **options: Any,
    ) -> agents.ModelResponse:
        schemas = {tool.name: tool.params_json_schema for tool in tools}
        self.steps.append(scenario.Step(system_instructions or "", schemas, model_settings.tool_choice))
        reply = await asyncio.to_thread(scenario.next_reply, self.replies)
        return agents.ModelResponse(
            output=[_item(reply, len(self.replies))], usage=_usage(), response_id=None
        )

    async def stream_response(self, *arguments: Any, **options: Any) -> AsyncIterator[Any]:
        result = await self.get_response(*arguments, **options)
        response = responses.Response(
            id="r",
            created_at=0,
            model="scripted",
            object="response",
            output=result.output,
            tool_choice="auto",
            tools=[],
            parallel_tool_calls=False,
        )
        yield responses.ResponseCompletedEvent(
            type="response.completed", response=response, sequence_number=0
        )


def _usage() -> agents.Usage:
    return agents.Usage(requests=1)


def _item(reply: scenario.Reply, number: int) -> Any:
    if isinstance(reply, scenario.Call):
        return responses.ResponseFunctionToolCall(
            arguments=json.dumps(reply.arguments), call_id=f"c{number}", name=reply.name, type="function_call"
        )
    text = responses.ResponseOutputText(text=reply, type="output_text", annotations=[])
    return responses.ResponseOutputMessage(
        id=f"m{number}", content=[text], role="assistant", status="completed", type="message"
    )


class Player:
    """A player that runs the agent without streaming."""

    def __init__(self, loads: Any = "step") -> None:
        self.loads = loads
        self.toolbelt: Any = http.Http(kit.ADDRESS, kit.AGENT, kit.TOKEN)

    async def run(self, *arguments: Any, **options: Any) -> Any:
        return await agents.Runner.run(*arguments, **options)

    def __call__(self, session: str, message: str, script: scenario.Script, **options: Any) -> scenario.Run:
        model = Scripted(script)
        agent = openai_agents.Agent(
            name="Assistant",
            instructions="Be brief.",
            model=model,
            toolbelt=self.toolbelt,
            session=session,
            loads=self.loads,
            **options,
        )
        history = agents.SQLiteSession(session)
        result = asyncio.run(self.run(agent, message, session=history, run_config=openai_agents.run_config()))
        outputs = [item for item in result.new_items if item.type == "tool_call_output_item"]
        names = {i.raw_item.call_id: i.raw_item.name for i in result.new_items if i.type == "tool_call_item"}
        results = [
            scenario.Result(names[item.raw_item["call_id"]], str(item.output), None) for item in outputs
        ]
        assert agent.model_settings.tool_choice is None, "a directive must not outlive its turn"
        return scenario.Run(model.steps, results, result.final_output)


class Streaming(Player):
    """A player that runs the agent with streaming."""

    async def run(self, *arguments: Any, **options: Any) -> Any:
        result = agents.Runner.run_streamed(*arguments, **options)
        async for _ in result.stream_events():
            pass
        return result


@pytest.fixture(params=[Player, Streaming])
def play(request: pytest.FixtureRequest) -> Player:
    player: Player = request.param()
    return player


@pytest.fixture
def pinned() -> Player:
    return Player("run")


@pytest.fixture(params=[Player, Streaming])
def start(request: pytest.FixtureRequest) -> Any:
    def start(connection: Any, **options: Any) -> Player:
        player: Player = request.param()
        player.toolbelt = openai_agents.Toolbelt(connection, **options)
        return player

    return start


class Pausing:
    """A program whose run is interrupted, and resumed from its state as JSON."""

    # What the program has approved is not asked about again.
    pauses_again = False

    def __init__(self, connection: Any, **options: Any) -> None:
        self.toolbelt = openai_agents.Toolbelt(connection, **{"approvals": "pause", **options})

    def begin(self, session: str, call: scenario.Call) -> Any:
        self.agent = openai_agents.Agent(
            name="Assistant", model=Scripted([call, "Done."]), toolbelt=self.toolbelt, session=session
        )
        return self._after("Do it.")

    def resume(self) -> Any:
        async def restored() -> Any:
            return await agents.RunState.from_json(self.agent, self.result.to_state().to_json())

        state = asyncio.run(restored())
        for item in state.get_interruptions():
            state.approve(item)
        return self._after(state)

    def _after(self, given: Any) -> Any:
        config = openai_agents.run_config()
        self.result = asyncio.run(agents.Runner.run(self.agent, given, run_config=config))
        if self.result.interruptions:
            return approval_scenario.Paused([])
        outputs = [item for item in self.result.new_items if item.type == "tool_call_output_item"]
        return str(outputs[-1].output)


@pytest.fixture
def pausing() -> Any:
    return Pausing


def test_the_program_keeps_its_own_tools(play: Player) -> None:
    @agents.function_tool
    def shout(text: str) -> str:
        """Shout."""
        return text.upper()

    script = [scenario.Call("shout", {"text": "hey"}), "Done."]
    run = play(kit.session(), "Shout!", script, tools=[shout])
    assert {"shout", "desk__add"} < set(run.steps[0].tools)
    assert run.results[0].text == "HEY"


def test_a_copy_of_an_agent_gets_the_same_tools(play: Player) -> None:
    agent = openai_agents.Agent(name="One", toolbelt=play.toolbelt, model=Scripted(["Done."]))
    copy = agent.clone(name="Other")
    result = asyncio.run(agents.Runner.run(copy, "What is it?"))
    assert result.final_output == "Done."
    assert "desk__add" in copy.model.steps[0].tools


def test_two_tools_with_the_same_name_are_an_error_that_names_it(play: Player) -> None:
    @agents.function_tool
    def desk__add(text: str) -> str:
        """Add."""
        return text

    with pytest.raises(Exception, match="desk__add: Two tools have this name"):
        play(kit.session(), "What is it?", ["Five."], tools=[desk__add])


def test_the_documented_program_runs() -> None:
    model = Scripted([scenario.ADD, "Five."])
    answer = documented.program("OpenAI Agents SDK", model=model)["answer"]
    assert answer("What is it?", kit.session()) == "Five."
    assert "desk__add" in model.steps[0].tools


def test_the_documented_program_with_its_own_tools_runs() -> None:
    documented.check_own_tools("OpenAI Agents SDK", Scripted)
