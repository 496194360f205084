"""Tests an agent of LangChain, invoked from a thread and from an event loop."""

from __future__ import annotations

import asyncio
from typing import Any

import approval_scenario
import documented
import kit
import pytest
import scenario
from approval_scenario import *  # noqa: F403 - the tests of runs that pause that all parts share
from langchain import agents
from langchain_core import language_models, messages, outputs, tools
from langchain_core.utils import function_calling
from langgraph import types
from langgraph.checkpoint import memory
from local_scenario import *  # noqa: F403 - the tests of local tools that all parts share
from scenario import *  # noqa: F403 - the tests that all parts share

from toolbelt.adapters import langchain
from toolbelt.adapters.connection import http


class Scripted(language_models.BaseChatModel):
    """A model that replies as the script says, and records its requests."""

    script: list[Any]
    steps: list[Any]
    bound: dict[str, Any] = {}
    thinking: dict[str, Any] | None = None
    model_name: str = "gpt-5.6"

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, bound_tools: Any, *, tool_choice: Any = None, **options: Any) -> Any:
        functions = [function_calling.convert_to_openai_tool(tool)["function"] for tool in bound_tools]
        return self.model_copy(update={"bound": {"tools": functions, "choice": tool_choice}})

    def _generate(
        self, received: list[Any], stop: Any = None, run_manager: Any = None, **options: Any
    ) -> Any:
        system, *others = received
        told = "\n".join(message.text for message in others if message.type in ("human", "system"))
        schemas = {function["name"]: function["parameters"] for function in self.bound.get("tools", ())}
        choice = {"any": "required"}.get(self.bound.get("choice"), self.bound.get("choice"))
        self.steps.append(scenario.Step(system.text, schemas, choice, told))
        reply = scenario.next_reply(self.script)
        if isinstance(reply, str):
            return _generation(messages.AIMessage(reply))
        call = {"name": reply.name, "args": reply.arguments, "id": f"c{len(self.script)}"}
        return _generation(messages.AIMessage("", tool_calls=[call]))


def _generation(message: messages.AIMessage) -> outputs.ChatResult:
    return outputs.ChatResult(generations=[outputs.ChatGeneration(message=message)])


class Blocking:
    """A player that invokes the agent from a thread."""

    def __init__(self, loads: Any = "step") -> None:
        self.toolbelt = langchain.Toolbelt(http.Http(kit.ADDRESS, kit.AGENT, kit.TOKEN), loads=loads)
        self.checkpointer = memory.InMemorySaver()

    def invoke(self, agent: Any, *arguments: Any) -> Any:
        return agent.invoke(*arguments)

    def __call__(self, session: str, message: str, script: scenario.Script, **options: Any) -> scenario.Run:
        model = Scripted(script=list(script), steps=[])
        agent = agents.create_agent(
            model,
            system_prompt="Be brief.",
            middleware=[self.toolbelt],
            checkpointer=self.checkpointer,
            **options,
        )
        config: Any = {"configurable": {"thread_id": session}}
        before = len(agent.get_state(config).values.get("messages", ()))
        added = self.invoke(agent, {"messages": [("user", message)]}, config)["messages"][before:]
        results = [
            scenario.Result(message.name, message.text, message.status == "error")
            for message in added
            if message.type == "tool"
        ]
        return scenario.Run(model.steps, results, added[-1].text)


class Looping(Blocking):
    """A player that invokes the agent from a new event loop each time."""

    def invoke(self, agent: Any, *arguments: Any) -> Any:
        return asyncio.run(agent.ainvoke(*arguments))


@pytest.fixture(params=[Blocking, Looping])
def play(request: pytest.FixtureRequest) -> Any:
    return request.param()


@pytest.fixture
def pinned() -> Any:
    return Blocking("run")


@pytest.fixture(params=[Blocking, Looping])
def start(request: pytest.FixtureRequest) -> Any:
    def start(connection: Any, **options: Any) -> Any:
        player = request.param()
        player.toolbelt = langchain.Toolbelt(connection, **options)
        return player

    return start


class Pausing:
    """A program whose graph is interrupted, and resumed with a yes."""

    pauses_again = True

    def __init__(self, connection: Any, is_looping: bool, **options: Any) -> None:
        self.toolbelt = langchain.Toolbelt(connection, **{"approvals": "pause", **options})
        self.invoke = Looping.invoke if is_looping else Blocking.invoke

    def begin(self, session: str, call: scenario.Call) -> Any:
        model = Scripted(script=[call, "Done."], steps=[])
        self.agent = agents.create_agent(
            model, middleware=[self.toolbelt], checkpointer=memory.InMemorySaver()
        )
        self.config = {"configurable": {"thread_id": session}}
        return self._after({"messages": [("user", "Do it.")]})

    def resume(self) -> Any:
        return self._after(types.Command(resume=True))

    def _after(self, given: Any) -> Any:
        state = self.invoke(self, self.agent, given, self.config)  # type: ignore[arg-type]
        if interrupts := state.get("__interrupt__"):
            return approval_scenario.Paused([interrupt.value for interrupt in interrupts])
        return next(message.text for message in reversed(state["messages"]) if message.type == "tool")


@pytest.fixture(params=[False, True])
def pausing(request: pytest.FixtureRequest) -> Any:
    return lambda connection, **options: Pausing(connection, request.param, **options)


def test_the_program_keeps_and_runs_its_own_tools(play: Any) -> None:
    @tools.tool
    def shout(text: str) -> str:
        """Shout."""
        return text.upper()

    script = [scenario.Call("shout", {"text": "hey"}), "Done."]
    run = play(kit.session(), "Shout!", script, tools=[shout])
    assert {"shout", "desk__add"} < set(run.steps[0].tools)
    assert run.results[0].text == "HEY"


@pytest.mark.parametrize(
    ("name", "kind", "choice"),
    [
        ("claude-haiku-4-5", "enabled", None),
        ("claude-haiku-4-5", "disabled", "required"),
        # In a conversation, none of its line is.
        ("claude-haiku-5-5", "enabled", None),
        ("claude-opus-5-5", "disabled", None),
        ("unknown-1", "disabled", None),
    ],
)
def test_a_model_is_forced_to_call_a_tool_only_where_it_accepts_that(
    name: str, kind: str, choice: str | None
) -> None:
    toolbelt = langchain.Toolbelt(http.Http(kit.ADDRESS, kit.AGENT, kit.TOKEN))
    model = Scripted(script=["Five."], steps=[], thinking={"type": kind}, model_name=name)
    agent = agents.create_agent(model, middleware=[toolbelt])
    config: Any = {"configurable": {"thread_id": kit.session()}}
    agent.invoke({"messages": [("user", "Please add 2 and 3.")]}, config)
    (step,) = model.steps
    assert step.choice == choice
    assert "Call one of these tools" in step.told


def test_two_tools_with_the_same_name_are_an_error_that_names_it(play: Any) -> None:
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


def test_an_interrupted_run_continues_as_the_same_run(play: Any) -> None:
    session = kit.session()
    config: Any = {"configurable": {"thread_id": session}}
    agent = agents.create_agent(
        Scripted(script=[scenario.ADD, scenario.ADD, "Five."], steps=[]),
        middleware=[play.toolbelt],
        checkpointer=play.checkpointer,
        interrupt_before=["tools"],
    )
    play.invoke(agent, {"messages": [("user", "What is it?")]}, config)
    for _ in range(2):
        state = play.invoke(agent, None, config)
    assert state["messages"][-1].text == "Five."
    first, second = (call["request_id"] for call in kit.recorded(2, session=session))
    assert first != second
    assert first.rpartition(".")[0] == second.rpartition(".")[0]


def test_the_documented_program_with_its_own_tools_runs() -> None:
    documented.check_own_tools("LangChain", lambda script: Scripted(script=script, steps=[]))
