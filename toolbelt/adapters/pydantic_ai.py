"""How does an agent of Pydantic AI get its tools from Toolbelt? By a capability. (pip install 'toolbelt[pydantic-ai]')

::

    from pydantic_ai import Agent
    from toolbelt.adapters import pydantic_ai
    from toolbelt.adapters.connection import http

    toolbelt = pydantic_ai.Toolbelt(http.Http("https://toolbelt.example", "assistant", token))
    agent = Agent(model, capabilities=[toolbelt])
    agent.run_sync("What is 2 + 3?", conversation_id="s1")

``Toolset`` is all of it but the choice of a directive, as ``Agent(toolsets=[...])`` takes it. Each step of a run asks
anew for tools and policy; a refusal is a failed tool result.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from pydantic_ai import capabilities, exceptions, settings, tools, toolsets
from pydantic_core import SchemaValidator, core_schema

from toolbelt.adapters import runs
from toolbelt.adapters.connection import protocol

Context: TypeAlias = tools.RunContext[Any]
Session: TypeAlias = str | Callable[[Context], str | None] | None

# Toolbelt holds arguments against the schema itself, and says where they do not fit.
_ANY = SchemaValidator(core_schema.any_schema())


class Toolset(toolsets.AbstractToolset[Any]):
    """Holds what Toolbelt grants an agent.

    connection: The agent's, over HTTP or in process.
    session: Names the conversation; by default the framework's ``conversation_id``.
    subagent: The kind to ask as, of those that the agent may.
    name: Tells this toolset from others of the same agent: its ``id``.
    """

    def __init__(
        self,
        connection: protocol.Connection,
        *,
        session: Session = None,
        subagent: str | None = None,
        name: str = "toolbelt",
    ) -> None:
        self._connection, self._session, self._subagent, self._id = connection, session, subagent, name
        self._running: weakref.WeakValueDictionary[str | None, _Running] = weakref.WeakValueDictionary()

    @property
    def id(self) -> str:
        """Tell it from others."""
        return self._id

    async def for_run(self, ctx: Context) -> toolsets.AbstractToolset[Any]:
        """Begin a run: one request, which has the framework's own id of the run."""
        self._running[ctx.run_id] = running = self._begin(ctx)
        return running

    async def get_tools(self, ctx: Context) -> dict[str, toolsets.ToolsetTool[Any]]:
        """Give what is granted to a run of its own, for whoever asks outside of one."""
        return await self._begin(ctx).get_tools(ctx)

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: Context, tool: toolsets.ToolsetTool[Any]
    ) -> Any:
        """Call in a run of its own, for whoever calls outside of one."""
        return await self._begin(ctx).call_tool(name, tool_args, ctx, tool)

    def settings(self, ctx: Context) -> settings.ModelSettings:
        """Say that the model must call a tool, where this step's directive does: ``Agent(model_settings=...)``."""
        running = self._running.get(ctx.run_id)
        return {"tool_choice": "required"} if running is not None and running.is_required else {}

    def _begin(self, ctx: Context) -> _Running:
        session = self._session(ctx) if callable(self._session) else self._session
        if self._session is None:
            session = runs.session(ctx.conversation_id)
        return _Running(self._connection, protocol.Run.begin(session, self._subagent, ctx.run_id), self._id)


class _Running(toolsets.AbstractToolset[Any]):
    """One run: what this step of it is given."""

    def __init__(self, connection: protocol.Connection, run: protocol.Run, name: str) -> None:
        self._connection, self._run, self._id = connection, run, name
        self._at, self._step = -1, runs.Step(tools=(), policy="")

    @property
    def id(self) -> str:
        return self._id

    @property
    def is_required(self) -> bool:
        return self._step.required

    async def get_tools(self, ctx: Context) -> dict[str, toolsets.ToolsetTool[Any]]:
        await self._ask(ctx)
        return {
            tool["name"]: toolsets.ToolsetTool(
                toolset=self,
                tool_def=tools.ToolDefinition(
                    name=tool["name"],
                    description=tool["description"] or None,
                    parameters_json_schema=dict(tool["input_schema"]),
                    metadata={"toolkits": tool["toolkits"], "annotations": tool["annotations"]},
                ),
                max_retries=ctx.max_retries,
                args_validator=_ANY,
            )
            for tool in self._step.tools
        }

    async def get_instructions(self, ctx: Context) -> str | None:
        await self._ask(ctx)
        return self._step.policy or None

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: Context, tool: toolsets.ToolsetTool[Any]
    ) -> Any:
        told = await runs.call(self._connection, self._run, name, tool_args)
        if told.is_error:
            raise exceptions.ToolFailed(told.text)
        return told.value

    async def _ask(self, ctx: Context) -> None:
        """Ask once for each step: its tools and its instructions are of one surface."""
        if self._at != ctx.run_step:
            message = _words(ctx.prompt) if ctx.run_step <= 1 else None
            self._step = runs.step(await self._connection.surface(self._run, message=message))
            self._at = ctx.run_step


@dataclass(init=False)
class Toolbelt(capabilities.AbstractCapability[Any]):
    """Gives an agent what Toolbelt grants it: the toolset, and the choice that a directive makes for a first step."""

    def __init__(
        self,
        connection: protocol.Connection,
        *,
        session: Session = None,
        subagent: str | None = None,
        name: str = "toolbelt",
    ) -> None:
        self.id = name
        self._toolset = Toolset(connection, session=session, subagent=subagent, name=name)

    def get_toolset(self) -> toolsets.AbstractToolset[Any]:
        """Give the toolset."""
        return self._toolset

    def get_model_settings(self) -> Callable[[Context], settings.ModelSettings]:
        """Give what says, for each step, whether a tool must be called."""
        return self._toolset.settings


def _words(prompt: Any) -> str | None:
    """Give what stands in a prompt in words; None where there are none, or no prompt."""
    parts = [prompt] if isinstance(prompt, str) else prompt or ()
    texts = (part if isinstance(part, str) else getattr(part, "content", None) for part in parts)
    return "\n".join(text for text in texts if isinstance(text, str)) or None
