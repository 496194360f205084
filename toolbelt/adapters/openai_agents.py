"""An agent class for the OpenAI Agents SDK. (pip install 'toolbelt-switchboard[openai-agents]')

::

    from agents import Runner
    from toolbelt.adapters import openai_agents
    from toolbelt.adapters.connection import http

    toolbelt = http.Http("https://toolbelt.example", "assistant", token)
    agent = openai_agents.Agent(name="Assistant", toolbelt=toolbelt, session="s1")
    await Runner.run(agent, "What is 2 + 3?", run_config=openai_agents.run_config())

In all other respects it is the SDK's agent, with the program's own tools, instructions, handoffs and guardrails. Each
turn requests tools and policy again. With ``run_config``, a run continues if the model calls a tool that it was not
given, which the SDK otherwise treats as an error.

``Toolbelt`` is a connection with tools that the program itself runs, once Toolbelt grants and admits them::

    toolbelt = openai_agents.Toolbelt(connection, local_tools=[refund], plugin="shop")
"""

from __future__ import annotations

import contextvars
import copy
import dataclasses
import inspect
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import agents
from agents import tool as sdk_tools

from toolbelt.adapters import runs
from toolbelt.adapters.connection import local_tools as local
from toolbelt.adapters.connection import protocol
from toolbelt.core import errors
from toolbelt.formats import openai_chat, openai_responses, profiles, surface

Context: TypeAlias = agents.RunContextWrapper[Any]


@dataclass
class _Run:
    """A run, and the step of its current turn; ``turn`` counts from 1."""

    run: protocol.Run
    turn: int
    step: runs.Step


@dataclass(frozen=True)
class _Turn:
    """The turn that the SDK is preparing, after so many ``requests`` to the model."""

    context: weakref.ref[Context]
    requests: int
    choice: Any


_turn: contextvars.ContextVar[_Turn | None] = contextvars.ContextVar("toolbelt_turn", default=None)
# The call of a tool of the program's that is running here.
_running: contextvars.ContextVar[local.Admitted | None] = contextvars.ContextVar(
    "toolbelt_call", default=None
)


class Toolbelt(local.LocalTools):
    """A connection for agents with tools that the program itself runs: the SDK's function tools, or functions.

    plugin, offline, stale_seconds: See local_tools.LocalTools.
    """

    def __init__(
        self,
        connection: protocol.Connection,
        *,
        local_tools: Iterable[agents.FunctionTool | Callable[..., Any]],
        plugin: str,
        offline: local.Offline = "refuse",
        stale_seconds: float = local.STALE_SECONDS,
    ) -> None:
        tools = map(_local_tool, local_tools)
        super().__init__(connection, tools, plugin=plugin, offline=offline, stale_seconds=stale_seconds)


@dataclass
class Agent(agents.Agent[Any]):
    """An agent with everything that Toolbelt grants it.

    toolbelt: The agent's connection, over HTTP or in process, or a Toolbelt with tools of the program's.
    session: The id of the conversation, or a function that returns it. Without one, nothing can be loaded.
    subagent: The kind of subagent to ask for.
    loads: When loaded tools become available: from the next "step" (turn) of the run, or from the next "run".
    """

    toolbelt: protocol.Connection | Toolbelt | None = field(default=None, kw_only=True)
    session: str | Callable[[Context], str | None] | None = field(default=None, kw_only=True)
    subagent: str | None = field(default=None, kw_only=True)
    loads: protocol.Loads = field(default="step", kw_only=True)
    _runs: weakref.WeakKeyDictionary[Context, _Run] = field(
        default_factory=weakref.WeakKeyDictionary, init=False, repr=False, compare=False
    )

    async def get_all_tools(self, run_context: Context) -> list[agents.Tool]:
        """Return the program's own tools and the tools of this turn."""
        own_tools: list[agents.Tool] = await super().get_all_tools(run_context)
        if self.toolbelt is None:
            return own_tools
        local_tools = _as_local_tools(self.toolbelt)
        running = await self._fetch(local_tools, run_context)
        step = runs.check_names(running.step, (tool.name for tool in own_tools))
        _turn.set(None)
        choice = _choice(self.model, step)
        if choice is not None and self.model_settings.tool_choice is None:
            _turn.set(_Turn(weakref.ref(run_context), run_context.usage.requests, choice))
        run = running.run.at(running.turn, self.loads)
        return [*own_tools, *[await _tool(local_tools, run, tool) for tool in step.tools]]

    async def get_system_prompt(self, run_context: Context) -> str | None:
        """Return the instructions, followed by the policy."""
        instructions: str | None = await super().get_system_prompt(run_context)
        if self.toolbelt is None:
            return instructions
        running = self._runs.get(run_context) or await self._fetch(
            _as_local_tools(self.toolbelt), run_context
        )
        return runs.append_policy(instructions, running.step.policy) or None

    async def _fetch(self, local_tools: local.LocalTools, context: Context) -> _Run:
        if previous := self._runs.get(context):
            run, turn, message = previous.run, previous.turn + 1, None
        else:
            session = self.session(context) if callable(self.session) else self.session
            run, turn = protocol.Run.begin(session, self.subagent), 1
            message = _message(context.turn_input)
        document = await local_tools.surface(run.at(turn, self.loads), message=message)
        self._runs[context] = running = _Run(run, turn, runs.step(document))
        return running


def _settings(agent: Agent) -> agents.ModelSettings:
    """Return the agent's settings with the tool choice of this turn. The SDK reads them once per turn."""
    settings: agents.ModelSettings = agent.__dict__["model_settings"]
    turn = _turn.get()
    context = turn.context() if turn else None
    if turn and context and context in agent._runs and context.usage.requests == turn.requests:
        if isinstance(turn.choice, str):
            return dataclasses.replace(settings, tool_choice=turn.choice)
        # The SDK has no form for a choice among some of the tools.
        body = {**(settings.extra_body or {}), "tool_choice": turn.choice}
        return dataclasses.replace(settings, extra_body=body)
    return settings


def _set_settings(agent: Agent, settings: agents.ModelSettings) -> None:
    agent.__dict__["model_settings"] = settings


# Outside of the class body, where it would become the field's default.
Agent.model_settings = property(_settings, _set_settings)  # type: ignore[assignment]


def _choice(model: Any, step: runs.Step) -> Any:
    """Return the tool choice of a first step: the name of a tool, "required", or some of the tools; None for any.

    Only OpenAI's models have one. The SDK has no place where a text would stay in the conversation, and a model such as
    Claude must find there later what it read before: so others get no text.
    """
    first = step.first
    profile = profiles.of(_model_name(model), "openai_responses")
    if first is None or not profile.allowed_tools:
        return None
    if first.narrows and not first.only_tool:
        # Only an object says which of OpenAI's APIs will be asked.
        if isinstance(model, agents.OpenAIResponsesModel):
            return openai_responses.allowed(first)
        if isinstance(model, agents.OpenAIChatCompletionsModel):
            return openai_chat.allowed(first)
    return (first.only_tool or "required") if first.required else None


def _model_name(model: Any) -> str:
    name = model if isinstance(model, str) else getattr(model, "model", "")
    return name if isinstance(name, str) else ""


def run_config(**more: Any) -> agents.RunConfig:
    """Return the configuration of a run that continues if the model calls a tool that it was not given.

    more: Further arguments of agents.RunConfig.
    """
    more.setdefault("tool_not_found_behavior", "return_error_to_model")
    more.setdefault("tool_error_formatter", _format_error)
    return agents.RunConfig(**more)


def _format_error(error: Any) -> str | None:
    if error.kind != "tool_not_found":
        return None
    return (
        f"unknown-tool: You have no tool named {error.tool_name!r} in this request. Tools that you load can be called "
        "from the next request. Tools that you are not granted cannot be called."
    )


def _as_local_tools(toolbelt: protocol.Connection | Toolbelt) -> local.LocalTools:
    return toolbelt if isinstance(toolbelt, local.LocalTools) else local.LocalTools(toolbelt)


async def _tool(local_tools: local.LocalTools, run: protocol.Run, tool: Any) -> agents.FunctionTool:
    name, schema = str(tool["name"]), dict(tool["input_schema"])
    local_tool = await local_tools.find(name)
    native: agents.FunctionTool | None = local_tool.native if local_tool else None

    async def invoke(context: Any, args: str) -> Any:
        try:
            arguments = runs.arguments(args)
        except errors.Invalid as error:
            return runs.failure(error).text
        if native is None:
            return (await runs.call(local_tools.connection, run, name, arguments)).text
        try:
            async with local_tools.admitted(run, name, arguments) as call:
                token = _running.set(call)
                try:
                    return call.result(await native.on_invoke_tool(context, args))
                finally:
                    _running.reset(token)
        except local.NotAdmittedError as error:
            return runs.read(error.document).text

    fields: dict[str, Any] = {
        "name": name,
        "description": surface.description(tool).get("description", ""),
        "params_json_schema": schema,
        "on_invoke_tool": invoke,
    }
    if native is None:
        return agents.FunctionTool(**fields, strict_json_schema=False)
    is_strict = native.strict_json_schema and schema == native.params_json_schema
    return dataclasses.replace(native, **fields, strict_json_schema=is_strict)


def _local_tool(tool: agents.FunctionTool | Callable[..., Any]) -> local.LocalTool:
    native = tool if isinstance(tool, agents.FunctionTool) else agents.function_tool(tool)
    return local.LocalTool(
        name=native.name,
        description=native.description,
        input_schema=native.params_json_schema,
        native=_reporting_failures(native),
    )


def _reporting_failures(tool: agents.FunctionTool) -> agents.FunctionTool:
    """Return a copy of the tool that notes an exception which the SDK turns into text for the model."""
    describe = sdk_tools.resolve_function_tool_failure_error_function(tool)
    if describe is None:
        return tool

    async def note(context: Any, error: Exception) -> str:
        if call := _running.get():
            call.failed(f"{type(error).__name__}: {error}")
        text = describe(context, error)
        return str(await text if inspect.isawaitable(text) else text)

    return sdk_tools.set_function_tool_failure_error_function(copy.copy(tool), note)


def _message(turn_input: Any) -> str | None:
    """Return the user's last message in a turn's input."""
    for item in reversed(turn_input):
        if isinstance(item, dict) and item.get("role") == "user":
            content = item.get("content")
            parts = [content] if isinstance(content, str) else content or ()
            texts = (part if isinstance(part, str) else part.get("text") for part in parts)
            return "\n".join(text for text in texts if isinstance(text, str)) or None
    return None
