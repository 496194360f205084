"""How does an agent of Google's ADK get its tools from Toolbelt? By a toolset. (pip install 'toolbelt[google-adk]')

::

    from google.adk.agents import LlmAgent
    from toolbelt.adapters import google_adk
    from toolbelt.adapters.connection import http

    toolbelt = google_adk.Toolbelt(http.Http("https://toolbelt.example", "assistant", token))
    agent = LlmAgent(
        name="assistant", model=model, tools=[toolbelt], before_tool_callback=toolbelt.before_tool_callback
    )

Each step of an invocation asks anew for tools and policy. The callback lets an invocation go on where the model calls
what it was not given, which ADK else makes an error.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeAlias

from google.adk.agents import readonly_context
from google.adk.models import llm_request as models
from google.adk.tools import base_tool, base_toolset, tool_context
from google.genai import types

from toolbelt.adapters import runs
from toolbelt.adapters.connection import protocol

Context: TypeAlias = readonly_context.ReadonlyContext

# Of how many steps to keep what was asked until their request is made.
MOST_KEPT = 256


class Toolbelt(base_toolset.BaseToolset):
    """Gives an agent what Toolbelt grants it.

    connection: The agent's, over HTTP or in process.
    session: Names the conversation; by default ADK's user and session.
    subagent: The kind to ask as, of those that the agent may.
    """

    def __init__(
        self,
        connection: protocol.Connection,
        *,
        session: str | Callable[[Context], str | None] | None = None,
        subagent: str | None = None,
    ) -> None:
        super().__init__()
        # What is granted may change between two steps of an invocation.
        self._use_invocation_cache = False
        self._connection, self._session, self._subagent = connection, session, subagent
        self._asked: OrderedDict[tuple[str, str], runs.Step] = OrderedDict()

    async def get_tools(self, readonly_context: Context | None = None) -> list[base_tool.BaseTool]:
        """Give what is granted to this step; without a context, to a run of its own."""
        if readonly_context is None:
            run = protocol.Run.begin(subagent=self._subagent)
            step = runs.step(await self._connection.surface(run))
        else:
            run = self._run(readonly_context)
            step = await self._ask(readonly_context)
            self._asked[_place(readonly_context)] = step
            while len(self._asked) > MOST_KEPT:
                self._asked.popitem(last=False)
        return [_Tool(self, tool) for tool in step.tools]

    async def process_llm_request(
        self, *, tool_context: tool_context.ToolContext, llm_request: models.LlmRequest
    ) -> None:
        """Put the policy behind the instructions, and say whether a tool must be called."""
        step = self._asked.pop(_place(tool_context), None) or await self._ask(tool_context)
        if step.policy:
            llm_request.append_instructions([step.policy])
        if step.required and not llm_request.config.tool_config:
            calling = types.FunctionCallingConfig(
                mode=types.FunctionCallingConfigMode.ANY, allowed_function_names=list(step.names)
            )
            llm_request.config.tool_config = types.ToolConfig(function_calling_config=calling)

    async def before_tool_callback(
        self, tool: base_tool.BaseTool, args: dict[str, Any], tool_context: tool_context.ToolContext
    ) -> dict[str, Any] | None:
        """Answer a call of what the model was not given, as Toolbelt does; leave all other calls alone."""
        # ADK stands this very class in for a tool that it does not find.
        return await self.call(tool.name, args, tool_context) if type(tool) is base_tool.BaseTool else None

    async def call(self, name: str, args: dict[str, Any], context: Context) -> dict[str, Any]:
        """Call a tool. What is refused or fails stands under ``error``, where models look for it."""
        told = await runs.call(self._connection, self._run(context), name, args)
        if not told.is_error:
            return dict(told.content)
        return {**told.content, "error": told.text}

    def _run(self, context: Context) -> protocol.Run:
        session = self._session(context) if callable(self._session) else self._session
        if self._session is None:
            session = runs.session(context.user_id, context.session.id)
        return protocol.Run.begin(session, self._subagent, context.invocation_id)

    async def _ask(self, context: Context) -> runs.Step:
        message = _words(context.user_content) if _is_first(context) else None
        return runs.step(await self._connection.surface(self._run(context), message=message))


class _Tool(base_tool.BaseTool):
    """A tool that is called through Toolbelt."""

    def __init__(self, toolset: Toolbelt, tool: Any) -> None:
        super().__init__(name=tool["name"], description=tool["description"])
        self._toolset, self._schema = toolset, dict(tool["input_schema"])

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name, description=self.description or None, parameters_json_schema=self._schema
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: tool_context.ToolContext) -> Any:
        return await self._toolset.call(self.name, args, tool_context)


def _place(context: Context) -> tuple[str, str]:
    return context.invocation_id, context.agent_name


def _is_first(context: Context) -> bool:
    """Say whether the agent has not said anything yet in this invocation."""
    said = ((event.invocation_id, event.author) for event in context.session.events)
    return _place(context) not in said


def _words(content: types.Content | None) -> str | None:
    """Give what the user said in words."""
    parts = (content.parts if content else None) or ()
    return "\n".join(part.text for part in parts if part.text) or None
