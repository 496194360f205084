"""A toolset for agents of Google's ADK. (pip install 'toolbelt-switchboard[google-adk]')

::

    from google.adk.agents import LlmAgent
    from toolbelt.adapters import google_adk
    from toolbelt.adapters.connection import http

    toolbelt = google_adk.Toolbelt(http.Http("https://toolbelt.example", "assistant", token))
    agent = LlmAgent(
        name="assistant", model=model, tools=[toolbelt], before_tool_callback=toolbelt.before_tool_callback
    )

Each step of an invocation requests tools and policy again. With the callback, an invocation continues if the model
calls a tool that it was not given, which ADK otherwise treats as an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from google.adk import events
from google.adk.agents import readonly_context
from google.adk.models import llm_request as models
from google.adk.tools import base_tool, base_toolset, function_tool, tool_context
from google.genai import types

from toolbelt.adapters import runs
from toolbelt.adapters.connection import local_tools as local
from toolbelt.adapters.connection import protocol
from toolbelt.core import caches
from toolbelt.formats import profiles, surface

Context: TypeAlias = readonly_context.ReadonlyContext

# How many steps to cache between ADK's requests for tools and for instructions.
MAX_CACHED = 256


class Toolbelt(base_toolset.BaseToolset):
    """A toolset of everything that Toolbelt grants an agent.

    connection: The agent's connection, over HTTP or in process.
    session: The id of the conversation; by default ADK's user and session.
    subagent: The kind of subagent to ask for.
    loads: When loaded tools become available: from the next "step" of the run, or from the next "run".
    local_tools: Tools that the program itself runs, once Toolbelt grants and admits them: ADK's, or functions.
    plugin, offline, stale_seconds: See local_tools.LocalTools.
    """

    def __init__(
        self,
        connection: protocol.Connection,
        *,
        session: str | Callable[[Context], str | None] | None = None,
        subagent: str | None = None,
        loads: protocol.Loads = "step",
        local_tools: Iterable[base_tool.BaseTool | Callable[..., Any]] = (),
        plugin: str = "",
        offline: local.Offline = "refuse",
        stale_seconds: float = local.STALE_SECONDS,
    ) -> None:
        super().__init__()
        # Tools may change between two steps of an invocation.
        self._use_invocation_cache = False
        self._connection, self._session, self._subagent = connection, session, subagent
        self._loads = loads
        self._local = local.LocalTools(
            connection,
            map(_local_tool, local_tools),
            plugin=plugin,
            offline=offline,
            stale_seconds=stale_seconds,
        )
        self._steps: caches.LruCache[tuple[str, str], runs.Step] = caches.LruCache(MAX_CACHED)
        # The request of the last step.
        self._requests: caches.LruCache[tuple[str, str], protocol.Run] = caches.LruCache(MAX_CACHED)

    async def get_tools(self, readonly_context: Context | None = None) -> list[base_tool.BaseTool]:
        """Return the tools of this step; without a context, those of a new run."""
        if readonly_context is None:
            run = protocol.Run.begin(subagent=self._subagent)
            step = runs.step(await self._local.surface(run))
        else:
            step = await self._fetch(readonly_context)
            self._steps.put(_step_key(readonly_context), step)
        return [await self._tool(tool) for tool in step.tools]

    async def process_llm_request(
        self, *, tool_context: tool_context.ToolContext, llm_request: models.LlmRequest
    ) -> None:
        """Append the policy to the instructions, and restrict the model to a directive's tools, or tell it."""
        step = self._steps.pop(_step_key(tool_context)) or await self._fetch(tool_context)
        if step.policy:
            llm_request.append_instructions([step.policy])
        if step.first is None:
            return
        if profiles.of(llm_request.model or "") == profiles.FORMATS["gemini"]:
            if not llm_request.config.tool_config:
                llm_request.config.tool_config = _tool_config(step.first)
        else:
            await _say(step.said(), tool_context, llm_request)

    async def before_tool_callback(
        self, tool: base_tool.BaseTool, args: dict[str, Any], tool_context: tool_context.ToolContext
    ) -> dict[str, Any] | None:
        """Answer a call of a tool that the model was not given, with Toolbelt's refusal. Leave other calls alone."""
        # ADK uses an instance of this very class for an unknown tool.
        return await self.call(tool.name, args, tool_context) if type(tool) is base_tool.BaseTool else None

    async def call(self, name: str, args: dict[str, Any], context: Context) -> dict[str, Any]:
        """Call a tool. A refusal or failure is returned under ``error``, where models expect it."""
        result = await runs.call(self._connection, self._request(context), name, args)
        return _refused(result) if result.is_error else dict(result.content)

    async def call_own(
        self, native: base_tool.BaseTool, name: str, args: dict[str, Any], context: tool_context.ToolContext
    ) -> Any:
        """Run a tool of the program's as the framework does, once the call is admitted."""
        try:
            async with self._local.admitted(self._request(context), name, args) as call:
                result = call.result(await native.run_async(args=args, tool_context=context))
                if isinstance(result, dict) and result.get("error"):
                    call.failed(str(result["error"]))
                return result
        except local.NotAdmittedError as error:
            return _refused(runs.read(error.document))

    async def _tool(self, tool: Any) -> _Tool:
        local_tool = await self._local.find(tool["name"])
        return _Tool(self, tool, local_tool.native if local_tool else None)

    def _request(self, context: Context) -> protocol.Run:
        return self._requests.get(_step_key(context)) or self._run(context)

    def _run(self, context: Context) -> protocol.Run:
        session = self._session(context) if callable(self._session) else self._session
        if self._session is None:
            session = runs.session(context.user_id, context.session.id)
        return protocol.Run.begin(session, self._subagent, context.invocation_id)

    async def _fetch(self, context: Context) -> runs.Step:
        message = _text(context.user_content) if _is_first(context) else None
        run = self._run(context).at(_events(context), self._loads)
        self._requests.put(_step_key(context), run)
        return runs.step(await self._local.surface(run, message=message))


class _Tool(base_tool.BaseTool):
    """A tool that Toolbelt runs, or the program's ``native`` one."""

    def __init__(self, toolset: Toolbelt, tool: Any, native: base_tool.BaseTool | None) -> None:
        is_long_running = native is not None and native.is_long_running
        super().__init__(name=tool["name"], description=tool["description"], is_long_running=is_long_running)
        self._toolset, self._schema, self._native = toolset, dict(tool["input_schema"]), native

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name, description=self.description or None, parameters_json_schema=self._schema
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: tool_context.ToolContext) -> Any:
        if self._native is not None:
            return await self._toolset.call_own(self._native, self.name, args, tool_context)
        return await self._toolset.call(self.name, args, tool_context)


def _tool_config(first: surface.FirstStep) -> types.ToolConfig:
    modes = types.FunctionCallingConfigMode
    config = types.FunctionCallingConfig(
        mode=modes.ANY if first.required else modes.VALIDATED, allowed_function_names=list(first.names)
    )
    return types.ToolConfig(function_calling_config=config)


async def _say(text: str, context: tool_context.ToolContext, llm_request: models.LlmRequest) -> None:
    """Add a text behind the user's message: to this request, and to the session, so that later ones have it, too.

    A model's thinking and a provider's cache are bound to everything that stands before them.
    """
    said = types.UserContent(text)
    llm_request.contents.append(said)
    # The toolset's context offers no other way to the session's events.
    invocation = context._invocation_context
    event = events.Event(
        invocation_id=context.invocation_id, author="user", branch=invocation.branch, content=said
    )
    await invocation.session_service.append_event(session=invocation.session, event=event)


def _local_tool(tool: base_tool.BaseTool | Callable[..., Any]) -> local.LocalTool:
    native = tool if isinstance(tool, base_tool.BaseTool) else function_tool.FunctionTool(tool)
    declared = native._get_declaration()
    schema = declared.parameters_json_schema if declared else None
    if declared and not schema and declared.parameters:
        schema = declared.parameters.json_schema.model_dump(mode="json", by_alias=True, exclude_none=True)
    return local.LocalTool(
        name=native.name, description=native.description, input_schema=schema or {}, native=native
    )


def _refused(result: runs.CallResult) -> dict[str, Any]:
    return {**result.content, "error": result.text}


def _step_key(context: Context) -> tuple[str, str]:
    return context.invocation_id, context.agent_name


def _events(context: Context) -> int:
    """Return the number of events in the invocation, which grows with each step."""
    return sum(event.invocation_id == context.invocation_id for event in context.session.events)


def _is_first(context: Context) -> bool:
    """Return whether the agent has not replied yet in this invocation."""
    replied = ((event.invocation_id, event.author) for event in context.session.events)
    return _step_key(context) not in replied


def _text(content: types.Content | None) -> str | None:
    """Return the text of the user's message."""
    parts = (content.parts if content else None) or ()
    return "\n".join(part.text for part in parts if part.text) or None
