"""How does an agent of the OpenAI Agents SDK get its tools from Toolbelt? (pip install 'toolbelt[openai-agents]')

::

    from agents import Runner
    from toolbelt.adapters import openai_agents
    from toolbelt.adapters.connection import http

    toolbelt = http.Http("https://toolbelt.example", "assistant", token)
    agent = openai_agents.Agent(name="Assistant", toolbelt=toolbelt, session="s1")
    await Runner.run(agent, "What is 2 + 3?", run_config=openai_agents.run_config())

The agent is the SDK's own in all else: tools of the program's, instructions, handoffs, guardrails. Each turn asks anew.
``run_config`` lets a run go on where the model calls what it was not given, which the SDK else makes an error.
"""

from __future__ import annotations

import contextvars
import dataclasses
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import agents

from toolbelt.adapters import runs, surface
from toolbelt.adapters.connection import protocol
from toolbelt.core import errors

Context: TypeAlias = agents.RunContextWrapper[Any]


@dataclass
class _Run:
    """A run that is under way, and what its present turn is given."""

    run: protocol.Run
    step: runs.Step


@dataclass(frozen=True)
class _Turn:
    """The turn that the SDK prepares now: ``requests`` were made to the model before it."""

    context: weakref.ref[Context]
    requests: int
    choice: str


_turn: contextvars.ContextVar[_Turn | None] = contextvars.ContextVar("toolbelt_turn", default=None)


@dataclass
class Agent(agents.Agent[Any]):
    """An agent that gets what Toolbelt grants it.

    toolbelt: The connection of the agent, over HTTP or in process.
    session: Names the conversation, without which nothing can be loaded: a name, or what gives one for a run.
    subagent: The kind to ask as, of those that the agent may.
    """

    toolbelt: protocol.Connection | None = field(default=None, kw_only=True)
    session: str | Callable[[Context], str | None] | None = field(default=None, kw_only=True)
    subagent: str | None = field(default=None, kw_only=True)
    _runs: weakref.WeakKeyDictionary[Context, _Run] = field(
        default_factory=weakref.WeakKeyDictionary, init=False, repr=False, compare=False
    )

    async def get_all_tools(self, run_context: Context) -> list[agents.Tool]:
        """Give the program's own tools, and what is granted to this turn."""
        own: list[agents.Tool] = await super().get_all_tools(run_context)
        if self.toolbelt is None:
            return own
        running = await self._ask(self.toolbelt, run_context)
        step = runs.beside(running.step, (tool.name for tool in own))
        _turn.set(None)
        if step.required and self.model_settings.tool_choice is None:
            made = run_context.usage.requests
            _turn.set(_Turn(weakref.ref(run_context), made, step.one or "required"))
        return [*own, *(_tool(self.toolbelt, running.run, tool) for tool in step.tools)]

    async def get_system_prompt(self, run_context: Context) -> str | None:
        """Give the instructions, with the policy behind them."""
        own: str | None = await super().get_system_prompt(run_context)
        if self.toolbelt is None:
            return own
        running = self._runs.get(run_context) or await self._ask(self.toolbelt, run_context)
        return runs.joined(own, running.step.policy) or None

    async def _ask(self, connection: protocol.Connection, context: Context) -> _Run:
        if known := self._runs.get(context):
            run, message = known.run, None
        else:
            session = self.session(context) if callable(self.session) else self.session
            run, message = protocol.Run.begin(session, self.subagent), _message(context.turn_input)
        document = await connection.surface(run, message=message)
        self._runs[context] = running = _Run(run, runs.step(document))
        return running


def _settings(agent: Agent) -> agents.ModelSettings:
    """Give the agent's settings, with the choice of this turn's directive: the SDK reads them once for each turn."""
    own: agents.ModelSettings = agent.__dict__["model_settings"]
    turn = _turn.get()
    context = turn.context() if turn else None
    if turn and context and context in agent._runs and context.usage.requests == turn.requests:
        return dataclasses.replace(own, tool_choice=turn.choice)
    return own


def _set_settings(agent: Agent, settings: agents.ModelSettings) -> None:
    agent.__dict__["model_settings"] = settings


# Not in the class's body: there it would be the field's default.
Agent.model_settings = property(_settings, _set_settings)  # type: ignore[assignment]


def run_config(**more: Any) -> agents.RunConfig:
    """Make the configuration of a run that tells the model, and goes on, where it calls what it was not given.

    more: What else to configure, as agents.RunConfig takes it.
    """
    more.setdefault("tool_not_found_behavior", "return_error_to_model")
    more.setdefault("tool_error_formatter", _explained)
    return agents.RunConfig(**more)


def _explained(failed: Any) -> str | None:
    if failed.kind != "tool_not_found":
        return None
    return (
        f"unknown-tool: You have no tool named {failed.tool_name!r} in this request. What you load can be called from "
        "the next request on, and what you are not granted cannot be called."
    )


def _tool(connection: protocol.Connection, run: protocol.Run, tool: Any) -> agents.FunctionTool:
    name = str(tool["name"])

    async def invoke(context: Any, given: str) -> str:
        try:
            arguments = runs.arguments(given)
        except errors.Invalid as error:
            return runs.lost(error).text
        return (await runs.call(connection, run, name, arguments)).text

    return agents.FunctionTool(
        name=name,
        description=surface.described(tool).get("description", ""),
        params_json_schema=dict(tool["input_schema"]),
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )


def _message(given: Any) -> str | None:
    """Give what the user said last in a turn's input."""
    for item in reversed(given):
        if isinstance(item, dict) and item.get("role") == "user":
            content = item.get("content")
            parts = [content] if isinstance(content, str) else content or ()
            texts = (part if isinstance(part, str) else part.get("text") for part in parts)
            return "\n".join(text for text in texts if isinstance(text, str)) or None
    return None
