"""A toolset for agents of Google's ADK. (pip install 'toolbelt-switchboard[google-adk]')

::

    from google.adk.agents import LlmAgent
    from toolbelt.adapters import google_adk
    from toolbelt.adapters.connection import http

    toolbelt = google_adk.Toolbelt(http.Http("https://toolbelt.example", "assistant", token))
    agent = LlmAgent(
        name="assistant",
        model=model,
        tools=[toolbelt],
        before_model_callback=toolbelt.before_model_callback,
        before_tool_callback=toolbelt.before_tool_callback,
    )

Each step of an invocation asks for tools and policy again. With the first callback, the tools and the policy of the
session's first request stay, and what an operator or the model changes is said in the conversation; tools that are
added are called through ``call_tool``. What the model was told is in the session's state, which ADK stores with the
model's answer. With the second one, an invocation continues if the model calls a tool that it was not given, which ADK
otherwise treats as an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from google.adk import events
from google.adk.agents import callback_context as callbacks
from google.adk.agents import readonly_context
from google.adk.models import llm_request as models
from google.adk.tools import base_tool, base_toolset, function_tool, tool_context
from google.genai import types

from toolbelt.adapters import runs
from toolbelt.adapters.connection import conversation, protocol
from toolbelt.adapters.connection import local_tools as local
from toolbelt.core import caches
from toolbelt.formats import profiles, surface

Context: TypeAlias = readonly_context.ReadonlyContext

# How many steps to cache between ADK's requests for tools and for instructions.
MAX_CACHED = 256
# The key of a session's state that says what the model of an agent was told, and the one of its prefixes: they are
# large, and change only when a conversation begins.
_KEPT, _PREFIXES = "_toolbelt_{agent}", "_toolbelt_{agent}_prefixes"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A request in a conversation: what is to be said, and the names of Toolbelt's tools in it."""

    kept: conversation.Conversation
    append: Mapping[str, Any] | None
    names: frozenset[str]
    has_focus: bool


class Toolbelt(base_toolset.BaseToolset):
    """A toolset of everything that Toolbelt grants an agent.

    connection: The agent's connection, over HTTP or in process.
    session: The id of the conversation; by default ADK's user and session.
    subagent: The kind of subagent to ask for.
    loads: When loaded tools become available: from the next "step" of the run, or from the next "run".
    local_tools: Tools that the program itself runs, once Toolbelt grants and admits them: ADK's, or functions.
    plugin, offline, stale_seconds: See local_tools.LocalTools.
    approvals: With "pause", a call that people have to approve first requests a confirmation, as ADK's tools do.
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
        approvals: local.Approvals = "tell",
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
            approvals=approvals,
        )
        self._steps: caches.LruCache[tuple[str, str], runs.Step] = caches.LruCache(MAX_CACHED)
        self._asked: caches.LruCache[tuple[str, str], _Asked] = caches.LruCache(MAX_CACHED)
        # The request of the last step.
        self._requests: caches.LruCache[tuple[str, str], protocol.Run] = caches.LruCache(MAX_CACHED)

    async def get_tools(self, readonly_context: Context | None = None) -> list[base_tool.BaseTool]:
        """Return the tools of this step; without a context, those of a new run.

        In a conversation, there are none: its tools are added to the request, which says what the model has read.
        """
        if readonly_context is not None and self._appends(readonly_context):
            # A confirmed call is of a tool that the model was given before.
            return await self._told(readonly_context) if self._local.has_pauses else []
        if readonly_context is None:
            run = protocol.Run.begin(subagent=self._subagent)
            step = runs.step(await self._local.surface(run))
        else:
            step = await self._fetch(readonly_context)
            self._steps.put(_step_key(readonly_context), step)
        return [await self._tool(tool) for tool in step.tools]

    async def _told(self, context: Context) -> list[base_tool.BaseTool]:
        """Return the tools of the session's conversation, which are in its requests already."""
        lines = (_stored(context) or {"lines": {}})["lines"].values()
        told = {tool["name"]: tool for line in lines for tool in conversation.declared(line["prefix"])[0]}
        return [await self._tool(tool, is_told=True) for tool in told.values()]

    async def process_llm_request(
        self, *, tool_context: tool_context.ToolContext, llm_request: models.LlmRequest
    ) -> None:
        """Append the policy to the instructions, and restrict the model to a directive's tools, or tell it.

        In a conversation, add its tools and its policy.
        """
        if self._appends(tool_context):
            await self._begin_request(tool_context, llm_request)
            return
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

    def before_model_callback(
        self, callback_context: callbacks.CallbackContext, llm_request: models.LlmRequest
    ) -> None:
        """Add what has changed to the contents, and note in the state what the model knows once it has answered."""
        asked = self._asked.pop(_step_key(callback_context))
        if asked is None:
            return
        request = asked.kept.request(llm_request.contents, asked.append)
        llm_request.contents = [*map(_content, request.messages)]
        request.answered()
        _store(callback_context, asked.kept)
        calling = (
            (asked.append or {}).get("request", {}).get("tool_config", {}).get("function_calling_config")
        )
        if calling and not llm_request.config.tool_config:
            tools = [tool for tool in llm_request.config.tools or () if isinstance(tool, types.Tool)]
            declared = [str(each.name) for tool in tools for each in tool.function_declarations or ()]
            names = [*calling["allowed_function_names"]]
            if not asked.has_focus:
                names += [name for name in declared if name not in asked.names]
            if calling["mode"] == "ANY" or {*names} != {*declared}:
                config = types.FunctionCallingConfig(mode=calling["mode"], allowed_function_names=names)
                llm_request.config.tool_config = types.ToolConfig(function_calling_config=config)

    async def _begin_request(self, context: tool_context.ToolContext, llm_request: models.LlmRequest) -> None:
        is_gemini = profiles.of(llm_request.model or "") == profiles.FORMATS["gemini"]
        # Others are told everything in words.
        form, model = ("gemini", str(llm_request.model)) if is_gemini else ("vercel", "")
        kept = conversation.Conversation(form, model=model, state=_stored(context))
        asked = kept.question(llm_request.contents)
        document = await self._surface(context, form=form, model=model, conversation=asked)
        append = document.get("append")
        new = append["prefix"] if append else None
        tools, policy = conversation.declared(kept.prefix if new is None else new)
        self._asked.put(
            _step_key(context),
            _Asked(
                kept=kept,
                append=append,
                names=frozenset(str(tool["name"]) for tool in tools),
                has_focus=document.get("directive") is not None,
            ),
        )
        llm_request.append_tools([await self._tool(tool) for tool in tools])
        if policy:
            llm_request.append_instructions([policy])

    async def before_tool_callback(
        self, tool: base_tool.BaseTool, args: dict[str, Any], tool_context: tool_context.ToolContext
    ) -> dict[str, Any] | None:
        """Answer a call of a tool that the model was not given, with Toolbelt's refusal. Leave other calls alone."""
        # ADK uses an instance of this very class for an unknown tool.
        return await self.call(tool.name, args, tool_context) if type(tool) is base_tool.BaseTool else None

    async def call(
        self, name: str, args: dict[str, Any], context: tool_context.ToolContext
    ) -> dict[str, Any]:
        """Call a tool. A refusal or failure is returned under ``error``, where models expect it."""
        spoken = self._spoken(context)
        if spoken:
            called, given = conversation.dispatched(name, args)
            if called != name and (own := await self._local.find(called)):
                result: dict[str, Any] = await self.call_own(own.native, called, dict(given), context)
                return result
        if (waits := await self._wait(name, args, context)) is not None:
            return waits
        answer = await runs.call(self._connection, self._request(context), name, args, **spoken)
        if answer.is_error:
            return _refused(answer)
        notice = {"notice": answer.notice} if answer.notice else {}
        return {"result": answer.value, **notice} if notice else dict(answer.content)

    async def call_own(
        self, native: base_tool.BaseTool, name: str, args: dict[str, Any], context: tool_context.ToolContext
    ) -> Any:
        """Run a tool of the program's as the framework does, once the call is admitted."""
        if (waits := await self._wait(name, args, context)) is not None:
            return waits
        try:
            spoken = self._spoken(context)
            async with self._local.admitted(self._request(context), name, args, **spoken) as call:
                result = call.result(await native.run_async(args=args, tool_context=context))
                if isinstance(result, dict) and result.get("error"):
                    call.failed(str(result["error"]))
                return result
        except local.NotAdmittedError as error:
            return _refused(runs.read(error.document))

    async def _wait(
        self, name: str, args: dict[str, Any], context: tool_context.ToolContext
    ) -> dict[str, Any] | None:
        """Request a confirmation if the call waits for people; return what the model gets meanwhile, else None.

        ADK asks once. What was confirmed is called, and Toolbelt says whether it was approved.
        """
        if (confirmation := context.tool_confirmation) is not None and self._local.has_pauses:
            return None if confirmation.confirmed else {"error": "This tool call is rejected."}
        question = await self._local.waiting(self._request(context), name, args, **self._spoken(context))
        if question is None:
            return None
        context.request_confirmation(hint=question["message"], payload=question)
        context.actions.skip_summarization = True
        return {"error": question["message"]}

    async def _tool(self, tool: Any, *, is_told: bool = False) -> _Tool:
        local_tool = await self._local.find(tool["name"])
        return _Tool(self, tool, local_tool.native if local_tool else None, is_told)

    def _request(self, context: Context) -> protocol.Run:
        return self._requests.get(_step_key(context)) or self._run(context)

    def _run(self, context: Context) -> protocol.Run:
        session = self._session(context) if callable(self._session) else self._session
        if self._session is None:
            session = runs.session(context.user_id, context.session.id)
        return protocol.Run.begin(session, self._subagent, context.invocation_id)

    def _appends(self, context: Context) -> bool:
        """Return whether the agent has the callback that adds what has changed."""
        # Neither the agent nor its callbacks are in a context's public attributes.
        agent = context._invocation_context.agent
        return self.before_model_callback in getattr(agent, "canonical_before_model_callbacks", ())

    def _spoken(self, context: Context) -> dict[str, str]:
        """Return what a call says about its conversation: the token of the request that the model answered."""
        state = _stored(context) if self._appends(context) else None
        return {"conversation": state["token"]} if state else {}

    async def _fetch(self, context: Context) -> runs.Step:
        return runs.step(await self._surface(context))

    async def _surface(self, context: Context, **question: Any) -> protocol.Document:
        message = _text(context.user_content) if _is_first(context) else None
        run = self._run(context).at(_events(context), self._loads)
        self._requests.put(_step_key(context), run)
        return await self._local.surface(run, message=message, **question)


class _Tool(base_tool.BaseTool):
    """A tool that Toolbelt runs, or the program's ``native`` one."""

    def __init__(
        self, toolset: Toolbelt, tool: Any, native: base_tool.BaseTool | None, is_told: bool
    ) -> None:
        is_long_running = native is not None and native.is_long_running
        super().__init__(name=tool["name"], description=tool["description"], is_long_running=is_long_running)
        self._toolset, self._schema, self._native = toolset, dict(tool["input_schema"]), native
        self._is_told = is_told

    async def process_llm_request(
        self, *, tool_context: tool_context.ToolContext, llm_request: models.LlmRequest
    ) -> None:
        if not self._is_told:
            await super().process_llm_request(tool_context=tool_context, llm_request=llm_request)

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name, description=self.description or None, parameters_json_schema=self._schema
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: tool_context.ToolContext) -> Any:
        if self._native is not None:
            return await self._toolset.call_own(self._native, self.name, args, tool_context)
        return await self._toolset.call(self.name, args, tool_context)


def _stored(context: Context) -> dict[str, Any] | None:
    """Return what the session's state says about the agent's conversation; None for a new one."""
    state, agent = context.state, context.agent_name
    kept = state.get(_KEPT.format(agent=agent))
    if kept is None:
        return None
    prefixes = state.get(_PREFIXES.format(agent=agent)) or {}
    lines = {line: {**entry, "prefix": prefixes[line]} for line, entry in kept["lines"].items()}
    return {**kept, "lines": lines}


def _store(context: callbacks.CallbackContext, kept: conversation.Conversation) -> None:
    """Have ADK store a conversation with the model's answer: it is the event that the context writes to."""
    document, agent = kept.state, context.agent_name
    prefixes = {line: entry.pop("prefix") for line, entry in document["lines"].items()}
    if context.state.get(_PREFIXES.format(agent=agent)) != prefixes:
        context.state[_PREFIXES.format(agent=agent)] = prefixes
    context.state[_KEPT.format(agent=agent)] = {**document, "token": kept.token}


def _content(message: Any) -> types.Content:
    """Return a message of the conversation as ADK has it."""
    if isinstance(message, types.Content):
        return message
    text = message["content"] if "content" in message else message["parts"][0]["text"]
    return types.UserContent(text)


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
