"""Tests an agent of Pydantic AI."""

from __future__ import annotations

from typing import Any

import approval_scenario
import documented
import kit
import pydantic_ai
import pytest
import scenario
from approval_scenario import *  # noqa: F403 - the tests of runs that pause that all parts share
from local_scenario import *  # noqa: F403 - the tests of local tools that all parts share
from pydantic_ai import messages
from pydantic_ai.models import function
from scenario import *  # noqa: F403 - the tests that all parts share

from toolbelt.adapters import pydantic_ai as adapter
from toolbelt.adapters.connection import http


class Player:
    """A player that runs the agent from a thread."""

    def __init__(self, loads: Any = "step") -> None:
        self.histories: dict[str, list[Any]] = {}
        connection = http.Http(kit.ADDRESS, kit.AGENT, kit.TOKEN)
        self.agent_options = {"capabilities": [adapter.Toolbelt(connection, loads=loads)]}

    def __call__(self, session: str, message: str, script: scenario.Script, **options: Any) -> scenario.Run:
        steps: list[scenario.Step] = []
        replies = list(script)

        def reply(received: list[messages.ModelMessage], info: function.AgentInfo) -> messages.ModelResponse:
            tools = {tool.name: tool.parameters_json_schema for tool in info.function_tools}
            choice = (info.model_settings or {}).get("tool_choice")
            told = [str(part.content) for message in received for part in message.parts if _is_told(part)]
            steps.append(scenario.Step(info.instructions or "", tools, choice, "\n".join(told)))
            next_reply = scenario.next_reply(replies)
            if isinstance(next_reply, str):
                return messages.ModelResponse([messages.TextPart(next_reply)])
            return messages.ModelResponse([messages.ToolCallPart(next_reply.name, next_reply.arguments)])

        agent: Any = pydantic_ai.Agent(
            function.FunctionModel(reply, model_name="gpt-5.6"),
            instructions="Be brief.",
            **{**self.agent_options, **options},
        )
        history = self.histories.get(session)
        result = agent.run_sync(message, message_history=history, conversation_id=session)
        self.histories[session] = result.all_messages()
        parts = [part for message in result.new_messages() for part in message.parts]
        return scenario.Run(steps, [_result(part) for part in parts if _is_result(part)], result.output)


def _is_told(part: Any) -> bool:
    return isinstance(part, messages.UserPromptPart | messages.SystemPromptPart)


def _is_result(part: Any) -> bool:
    return isinstance(part, messages.ToolReturnPart | messages.RetryPromptPart)


def _result(part: Any) -> scenario.Result:
    is_error = isinstance(part, messages.RetryPromptPart) or part.outcome != "success"
    text = part.model_response() if isinstance(part, messages.RetryPromptPart) else part.model_response_str()
    return scenario.Result(part.tool_name or "", text, is_error)


@pytest.fixture
def play() -> Player:
    return Player()


@pytest.fixture
def pinned() -> Player:
    return Player("run")


@pytest.fixture
def start() -> Any:
    def start(connection: Any, **options: Any) -> Player:
        player = Player()
        player.agent_options = {"capabilities": [adapter.Toolbelt(connection, **options)]}
        return player

    return start


class Pausing:
    """A program whose run ends with requests, and continues with their results."""

    pauses_again = True

    def __init__(self, connection: Any, **options: Any) -> None:
        self.toolbelt = adapter.Toolbelt(connection, **{"approvals": "pause", **options})

    def begin(self, session: str, call: scenario.Call) -> Any:
        def reply(received: list[messages.ModelMessage], info: function.AgentInfo) -> messages.ModelResponse:
            if any(_is_result(part) for message in received for part in message.parts):
                return messages.ModelResponse([messages.TextPart("Done.")])
            return messages.ModelResponse([messages.ToolCallPart(call.name, call.arguments)])

        self.agent: Any = pydantic_ai.Agent(
            function.FunctionModel(reply),
            capabilities=[self.toolbelt],
            output_type=[str, pydantic_ai.DeferredToolRequests],
        )
        self.session = session
        return self._after(self.agent.run_sync("Do it.", conversation_id=session))

    def resume(self) -> Any:
        results = pydantic_ai.DeferredToolResults(
            approvals={call.tool_call_id: True for call in self.requests.approvals}
        )
        history = self.result.all_messages()
        return self._after(
            self.agent.run_sync(
                message_history=history, deferred_tool_results=results, conversation_id=self.session
            )
        )

    def _after(self, result: Any) -> Any:
        self.result, self.requests = result, result.output
        if isinstance(result.output, pydantic_ai.DeferredToolRequests):
            return approval_scenario.Paused([*result.output.metadata.values()])
        parts = [part for message in result.all_messages() for part in message.parts]
        return next(str(part.content) for part in reversed(parts) if _is_result(part))


@pytest.fixture
def pausing() -> Any:
    return Pausing


def test_the_toolset_alone_provides_tools_and_policy(play: Player) -> None:
    play.agent_options = {"toolsets": [adapter.Toolset(http.Http(kit.ADDRESS, kit.AGENT, kit.TOKEN))]}
    run = play(kit.session(), "Please add 2 and 3.", [scenario.ADD, "Five."])
    assert set(run.steps[0].tools) >= {"desk__add", *scenario.LOADERS}
    assert "Never add in your head" in run.steps[0].system


def test_the_program_keeps_its_own_tools(play: Player) -> None:
    def shout(text: str) -> str:
        """Shout."""
        return text.upper()

    script = [scenario.Call("shout", {"text": "hey"}), "Done."]
    run = play(kit.session(), "Shout!", script, tools=[shout])
    assert {"shout", "desk__add"} < set(run.steps[0].tools)
    assert run.results[0].text == "HEY"


def test_the_documented_program_runs() -> None:
    def reply(received: list[messages.ModelMessage], info: function.AgentInfo) -> messages.ModelResponse:
        if len(received) > 1:
            return messages.ModelResponse([messages.TextPart("Five.")])
        return messages.ModelResponse([messages.ToolCallPart(scenario.ADD.name, scenario.ADD.arguments)])

    answer = documented.program("Pydantic AI", model=function.FunctionModel(reply))["answer"]
    assert answer("What is it?", kit.session()) == "Five."


def test_the_documented_program_with_its_own_tools_runs() -> None:
    def scripted(script: list[Any]) -> function.FunctionModel:
        def reply(received: list[messages.ModelMessage], info: function.AgentInfo) -> messages.ModelResponse:
            next_reply = scenario.next_reply(script)
            if isinstance(next_reply, str):
                return messages.ModelResponse([messages.TextPart(next_reply)])
            return messages.ModelResponse([messages.ToolCallPart(next_reply.name, next_reply.arguments)])

        return function.FunctionModel(reply)

    documented.check_own_tools("Pydantic AI", scripted)
