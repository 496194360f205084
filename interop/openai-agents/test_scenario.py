"""Tests an agent of the OpenAI Agents SDK, with and without streaming."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import agents
import documented
import kit
import pytest
import scenario
from local_scenario import *  # noqa: F403 - the tests of local tools that all parts share
from openai.types import responses
from scenario import *  # noqa: F403 - the tests that all parts share

from toolbelt.adapters import openai_agents
from toolbelt.adapters.connection import http

agents.set_tracing_disabled(True)


class Scripted(agents.Model):
    """Replies as the script says, and keeps what it was sent."""

    def __init__(self, script: scenario.Script) -> None:
        self.left, self.steps = list(script), []  # type: tuple[list[Any], list[scenario.Step]]

    async def get_response(
        self,
        system_instructions: Any,
        input: Any,  # noqa: A002 - so the SDK calls it
        model_settings: Any,
        tools: Any,
        *more: Any,
        **yet: Any,
    ) -> agents.ModelResponse:
        told = {tool.name: tool.params_json_schema for tool in tools}
        self.steps.append(scenario.Step(system_instructions or "", told, model_settings.tool_choice))
        reply = await asyncio.to_thread(scenario.next_of, self.left)
        return agents.ModelResponse(output=[_item(reply, len(self.left))], usage=_usage(), response_id=None)

    async def stream_response(self, *given: Any, **more: Any) -> AsyncIterator[Any]:
        done = await self.get_response(*given, **more)
        response = responses.Response(
            id="r",
            created_at=0,
            model="scripted",
            object="response",
            output=done.output,
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
    """Runs an agent in one go."""

    def __init__(self, loads: Any = "step") -> None:
        self.loads = loads
        self.kept = agents.SQLiteSession("kept")
        self.toolbelt: Any = http.Http(kit.ADDRESS, kit.AGENT, kit.TOKEN)

    async def run(self, *given: Any, **more: Any) -> Any:
        return await agents.Runner.run(*given, **more)

    def __call__(self, session: str, message: str, script: scenario.Script, **more: Any) -> scenario.Played:
        model = Scripted(script)
        agent = openai_agents.Agent(
            name="Assistant",
            instructions="Be brief.",
            model=model,
            toolbelt=self.toolbelt,
            session=session,
            loads=self.loads,
            **more,
        )
        kept = agents.SQLiteSession(session)
        done = asyncio.run(self.run(agent, message, session=kept, run_config=openai_agents.run_config()))
        outputs = [item for item in done.new_items if item.type == "tool_call_output_item"]
        names = {i.raw_item.call_id: i.raw_item.name for i in done.new_items if i.type == "tool_call_item"}
        results = [scenario.Result(names[one.raw_item["call_id"]], str(one.output), None) for one in outputs]
        assert agent.model_settings.tool_choice is None, "a directive outlives its turn"
        return scenario.Played(model.steps, results, done.final_output)


class Streaming(Player):
    """Runs an agent and reads what it streams."""

    async def run(self, *given: Any, **more: Any) -> Any:
        done = agents.Runner.run_streamed(*given, **more)
        async for _ in done.stream_events():
            pass
        return done


@pytest.fixture(params=[Player, Streaming])
def play(request: pytest.FixtureRequest) -> Player:
    player: Player = request.param()
    return player


@pytest.fixture
def pinned() -> Player:
    return Player("run")


@pytest.fixture(params=[Player, Streaming])
def start(request: pytest.FixtureRequest) -> Any:
    def start(connection: Any, **more: Any) -> Player:
        player: Player = request.param()
        player.toolbelt = openai_agents.Toolbelt(connection, **more)
        return player

    return start


def test_the_programs_own_tools_stay(play: Player) -> None:
    @agents.function_tool
    def shout(text: str) -> str:
        """Shout."""
        return text.upper()

    script = [scenario.Call("shout", {"text": "hey"}), "Done."]
    played = play(kit.session(), "Shout!", script, tools=[shout])
    assert {"shout", "desk__add"} < set(played.steps[0].tools)
    assert played.results[0].text == "HEY"


def test_a_copy_of_an_agent_asks_as_it_does(play: Player) -> None:
    agent = openai_agents.Agent(name="One", toolbelt=play.toolbelt, model=Scripted(["Done."]))
    copy = agent.clone(name="Other")
    done = asyncio.run(agents.Runner.run(copy, "What is it?"))
    assert done.final_output == "Done."
    assert "desk__add" in copy.model.steps[0].tools


def test_two_tools_of_one_name_are_an_error_that_names_it(play: Player) -> None:
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
