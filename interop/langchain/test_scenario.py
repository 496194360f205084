"""Tests an agent of LangChain, invoked from a thread and from an event loop."""

from __future__ import annotations

import asyncio
from typing import Any

import documented
import kit
import pytest
import scenario
from langchain import agents
from langchain_core import language_models, messages, outputs, tools
from langchain_core.utils import function_calling
from langgraph.checkpoint import memory
from local_scenario import *  # noqa: F403 - the tests of local tools that all parts share
from scenario import *  # noqa: F403 - the tests that all parts share

from toolbelt.adapters import langchain
from toolbelt.adapters.connection import http


class Scripted(language_models.BaseChatModel):
    """Replies as the script says, and keeps what it was sent."""

    script: list[Any]
    steps: list[Any]
    bound: dict[str, Any] = {}
    thinking: dict[str, Any] | None = None

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, given: Any, *, tool_choice: Any = None, **more: Any) -> Any:
        told = [function_calling.convert_to_openai_tool(one)["function"] for one in given]
        return self.model_copy(update={"bound": {"tools": told, "choice": tool_choice}})

    def _generate(self, given: list[Any], stop: Any = None, run_manager: Any = None, **more: Any) -> Any:
        system = "".join(one.text for one in given if one.type == "system")
        told = {one["name"]: one["parameters"] for one in self.bound.get("tools", ())}
        choice = {"any": "required"}.get(self.bound.get("choice"), self.bound.get("choice"))
        self.steps.append(scenario.Step(system, told, choice))
        reply = scenario.next_of(self.script)
        if isinstance(reply, str):
            return _generation(messages.AIMessage(reply))
        call = {"name": reply.name, "args": reply.arguments, "id": f"c{len(self.script)}"}
        return _generation(messages.AIMessage("", tool_calls=[call]))


def _generation(message: messages.AIMessage) -> outputs.ChatResult:
    return outputs.ChatResult(generations=[outputs.ChatGeneration(message=message)])


class Blocking:
    """Invokes from a thread."""

    def __init__(self, loads: Any = "step") -> None:
        self.toolbelt = langchain.Toolbelt(http.Http(kit.ADDRESS, kit.AGENT, kit.TOKEN), loads=loads)
        self.kept = memory.InMemorySaver()

    def invoke(self, agent: Any, *given: Any) -> Any:
        return agent.invoke(*given)

    def __call__(self, session: str, message: str, script: scenario.Script, **more: Any) -> scenario.Played:
        model = Scripted(script=list(script), steps=[])
        agent = agents.create_agent(
            model, system_prompt="Be brief.", middleware=[self.toolbelt], checkpointer=self.kept, **more
        )
        config: Any = {"configurable": {"thread_id": session}}
        before = len(agent.get_state(config).values.get("messages", ()))
        said = self.invoke(agent, {"messages": [("user", message)]}, config)["messages"][before:]
        results = [
            scenario.Result(one.name, one.text, one.status == "error") for one in said if one.type == "tool"
        ]
        return scenario.Played(model.steps, results, said[-1].text)


class Looping(Blocking):
    """Invokes from an event loop, another one each time."""

    def invoke(self, agent: Any, *given: Any) -> Any:
        return asyncio.run(agent.ainvoke(*given))


@pytest.fixture(params=[Blocking, Looping])
def play(request: pytest.FixtureRequest) -> Any:
    return request.param()


@pytest.fixture
def pinned() -> Any:
    return Blocking("run")


@pytest.fixture(params=[Blocking, Looping])
def start(request: pytest.FixtureRequest) -> Any:
    def start(connection: Any, **more: Any) -> Any:
        player = request.param()
        player.toolbelt = langchain.Toolbelt(connection, **more)
        return player

    return start


def test_the_programs_own_tools_stay_and_are_its_own_to_run(play: Any) -> None:
    @tools.tool
    def shout(text: str) -> str:
        """Shout."""
        return text.upper()

    script = [scenario.Call("shout", {"text": "hey"}), "Done."]
    played = play(kit.session(), "Shout!", script, tools=[shout])
    assert {"shout", "desk__add"} < set(played.steps[0].tools)
    assert played.results[0].text == "HEY"


@pytest.mark.parametrize(("kind", "choice"), [("enabled", None), ("disabled", "required")])
def test_a_model_that_thinks_is_not_forced_to_call_a_tool(kind: str, choice: str | None) -> None:
    toolbelt = langchain.Toolbelt(http.Http(kit.ADDRESS, kit.AGENT, kit.TOKEN))
    model = Scripted(script=["Five."], steps=[], thinking={"type": kind})
    agent = agents.create_agent(model, middleware=[toolbelt])
    config: Any = {"configurable": {"thread_id": kit.session()}}
    agent.invoke({"messages": [("user", "Please add 2 and 3.")]}, config)
    (step,) = model.steps
    assert step.choice == choice
    assert "Call one of these tools" in step.system


def test_two_tools_of_one_name_are_an_error_that_names_it(play: Any) -> None:
    @tools.tool
    def desk__add(text: str) -> str:
        """Add."""
        return text

    with pytest.raises(Exception, match="desk__add: Two tools have this name"):
        play(kit.session(), "What is it?", ["Five."], tools=[desk__add])


def test_the_documented_program_runs() -> None:
    model = Scripted(script=[scenario.ADD, "Five."], steps=[])
    answer = documented.program("LangChain", model=model)["answer"]
    assert answer("What is it?", kit.session()) == "Five."
    assert "desk__add" in model.steps[0].tools


def test_a_run_that_was_interrupted_goes_on_as_the_same_run(play: Any) -> None:
    session = kit.session()
    config: Any = {"configurable": {"thread_id": session}}
    agent = agents.create_agent(
        Scripted(script=[scenario.ADD, scenario.ADD, "Five."], steps=[]),
        middleware=[play.toolbelt],
        checkpointer=play.kept,
        interrupt_before=["tools"],
    )
    play.invoke(agent, {"messages": [("user", "What is it?")]}, config)
    for _ in range(2):
        done = play.invoke(agent, None, config)
    assert done["messages"][-1].text == "Five."
    one, other = (call["request_id"] for call in kit.recorded(2, session=session))
    assert one != other
    assert one.rpartition(".")[0] == other.rpartition(".")[0]


def test_the_documented_program_with_its_own_tools_runs() -> None:
    documented.check_own_tools("LangChain", lambda script: Scripted(script=script, steps=[]))
