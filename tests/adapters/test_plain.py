"""Tests of the adapter for plain loops: the parameters of each step, and a readable result for every call."""

from __future__ import annotations

import asyncio
import datetime as dt
from typing import Any

import pytest

from tests.adapters.connection.in_memory import KEY, AsyncToolbelt, Toolbelt
from toolbelt.adapters import plain, runs
from toolbelt.adapters.connection import protocol

SCHEMA = {"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]}
DEFINITION = {"name": "refund", "description": "Refund an order.", "input_schema": SCHEMA}
OPENAI = {"name": "refund", "description": "Refund an order.", "parameters": SCHEMA}


def refund(order: int) -> Any:
    if order < 0:
        raise ValueError("There is no such order.")
    return {"order": order, "at": dt.date(2026, 1, 2)}


async def async_refund(order: int) -> Any:
    return refund(order)


class Loop:
    """A blocking loop with one run of the program."""

    def __init__(self, toolbelt: Toolbelt, function: Any = refund) -> None:
        self.toolbelt = toolbelt
        connection: Any = toolbelt
        tools = plain.tools([DEFINITION], {"refund": function})
        self.run = plain.Toolbelt(connection, local_tools=tools, plugin="shop").begin("Refund it.", "s1")

    def step(self, form: str = "openai_chat") -> plain.Step:
        return self.run.step(form)

    def call(self, name: str, arguments: Any) -> runs.CallResult:
        return self.run.call(name, arguments)

    def check(self, name: str, arguments: Any) -> Any:
        return self.run.check(name, arguments)


class AsyncLoop(Loop):
    """The same loop on an event loop."""

    def step(self, form: str = "openai_chat") -> plain.Step:
        return asyncio.run(self.run.astep(form))

    def call(self, name: str, arguments: Any) -> runs.CallResult:
        return asyncio.run(self.run.acall(name, arguments))

    def check(self, name: str, arguments: Any) -> Any:
        return asyncio.run(self.run.acheck(name, arguments))


@pytest.fixture(params=["thread", "event loop"])
def loop(request: pytest.FixtureRequest) -> Loop:
    return Loop(Toolbelt()) if request.param == "thread" else AsyncLoop(AsyncToolbelt())


@pytest.mark.parametrize(
    "definition",
    [
        DEFINITION,
        OPENAI,
        {"type": "function", "function": OPENAI},
        {"name": "refund", "description": "Refund an order.", "inputSchema": SCHEMA},
    ],
)
def test_definitions_are_read_in_every_common_shape(definition: Any) -> None:
    [tool] = plain.tools([definition], [refund])
    assert (tool.name, tool.description, tool.input_schema) == ("refund", "Refund an order.", SCHEMA)
    assert tool.native is refund


def test_a_definition_without_a_function_is_reported_by_name() -> None:
    with pytest.raises(ValueError, match="no function for the tool 'refund'"):
        plain.tools([DEFINITION], {})


def test_each_step_has_the_current_tools_in_the_providers_format(loop: Loop) -> None:
    first = loop.step()
    assert [tool["function"]["name"] for tool in first.parameters["tools"]] == ["clock", KEY]
    loop.toolbelt.active = ["clock"]
    second = loop.step()
    assert [tool["function"]["name"] for tool in second.parameters["tools"]] == ["clock"]


def test_only_the_first_step_focuses_on_the_tools_of_the_message(loop: Loop) -> None:
    first, second = loop.step("openai_responses"), loop.step("openai_responses")
    assert first.parameters["tool_choice"]["type"] == "allowed_tools"
    assert second.parameters["tool_choice"] == "auto"


@pytest.mark.parametrize(
    "form", ["openai_chat", "openai_responses", "anthropic", "gemini", "bedrock", "mistral"]
)
def test_the_policy_follows_the_programs_own_prompt_in_every_format(form: str, loop: Loop) -> None:
    loop.toolbelt.policy = "Refund once."
    step = loop.step(form)
    assert step.system("Be kind.").startswith("Be kind.\n\nRefund once.")
    assert not {"messages", "system", "instructions", "system_instruction"} & step.parameters.keys()


@pytest.mark.parametrize("form", ["openai_chat", "anthropic"])
def test_a_focus_is_a_message_beside_the_parameters_and_the_system_prompt(form: str, loop: Loop) -> None:
    first, second = loop.step(form), loop.step(form)
    [message] = first.messages
    assert "in your next step" in str(message["content"])
    assert (first.system(), first.parameters) == (second.system(), second.parameters)
    assert second.messages == ()


def test_a_step_from_a_stale_surface_is_marked_stale(loop: Loop) -> None:
    assert not loop.step().is_stale
    loop.toolbelt.error = protocol.Unreachable("Toolbelt could not be reached.")
    assert loop.step().is_stale


@pytest.mark.parametrize("arguments", ['{"order": 7}', {"order": 7}])
def test_an_admitted_call_runs_and_its_result_is_json(arguments: Any, loop: Loop) -> None:
    loop.step()
    result = loop.call(KEY, arguments)
    assert (result.is_error, result.text) == (False, '{"order": 7, "at": "2026-01-02"}')
    assert [name for name, *_ in loop.toolbelt.requests_named("admit", "report")] == ["admit", "report"]


def test_an_async_function_runs_in_both_kinds_of_loop() -> None:
    for loop in (Loop(Toolbelt(), async_refund), AsyncLoop(AsyncToolbelt(), async_refund)):
        loop.step()
        assert loop.call(KEY, {"order": 7}).is_error is False


def test_an_exception_becomes_an_error_result_and_is_reported_as_a_failure(loop: Loop) -> None:
    loop.step()
    result = loop.call(KEY, {"order": -1})
    assert (result.is_error, result.text) == (True, "tool-failed: There is no such order.")
    [(_, _, outcome, *_)] = loop.toolbelt.requests_named("report")
    assert outcome == "tool-failed"


def test_a_refused_call_becomes_an_error_result_for_the_model(loop: Loop) -> None:
    loop.step()
    loop.toolbelt.admission = {"is_error": True, "code": "tool-denied", "message": "It is off."}
    assert loop.call(KEY, {"order": 7}).text == "tool-denied: It is off."


def test_arguments_that_are_not_json_become_an_error_result_for_the_model(loop: Loop) -> None:
    loop.step()
    result = loop.call(KEY, "{")
    assert result.is_error
    assert "not JSON" in result.text


def test_tools_that_are_not_local_are_run_by_toolbelt(loop: Loop) -> None:
    loop.step()
    assert loop.call("clock", {}).text == "noon"
    assert loop.toolbelt.requests_named("call") == [("call", "clock", {})]


def test_a_call_is_checked_in_the_version_that_the_program_has_and_does_not_run(loop: Loop) -> None:
    loop.toolbelt.declared = {"versions": {"refund": "v2"}}
    loop.step()
    loop.toolbelt.checked = {"would": "wait"}
    assert loop.check(KEY, '{"order": 7}')["would"] == loop.check("clock", {})["would"] == "wait"
    assert loop.toolbelt.requests_named("check", "admit", "call") == [
        ("check", KEY, {"order": 7}, "v2", False),
        ("check", "clock", {}, "", False),
    ]


def test_a_decorated_function_becomes_a_tool_and_can_still_be_called() -> None:
    def given(order: int) -> Any:
        """Refund an order."""
        return refund(order)

    decorated = plain.tool(SCHEMA, name="refund")(given)
    assert decorated is given
    connection: Any = Toolbelt()
    run = plain.Toolbelt(connection, local_tools=[decorated], plugin="shop").begin("Refund it.", "s1")
    run.step("openai_chat")
    assert connection.requests_named("declare") == [("declare", "shop", ["refund"])]
    assert run.call(KEY, {"order": 7}).content["order"] == 7
    assert decorated(7)["order"] == 7


def test_an_undecorated_function_is_an_error_that_suggests_the_decorator() -> None:
    connection: Any = Toolbelt()
    with pytest.raises(TypeError, match=r"@plain\.tool"):
        plain.Toolbelt(connection, local_tools=[refund], plugin="shop")
