"""A capability for agents of Pydantic AI. (pip install 'toolbelt-switchboard[pydantic-ai]')

::

    from pydantic_ai import Agent
    from toolbelt.adapters import pydantic_ai
    from toolbelt.adapters.connection import http

    toolbelt = pydantic_ai.Toolbelt(http.Http("https://toolbelt.example", "assistant", token))
    agent = Agent(model, capabilities=[toolbelt])
    agent.run_sync("What is 2 + 3?", conversation_id="s1")

``Toolset`` is the same without directives, for ``Agent(toolsets=[...])``. Each step of a run requests tools and policy
again; a refusal is a failed tool result.
"""

from __future__ import annotations

import dataclasses
import inspect
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from pydantic_ai import capabilities, exceptions, messages, models, settings, tools, toolsets
from pydantic_core import SchemaValidator, ValidationError, core_schema

from toolbelt.adapters import runs
from toolbelt.adapters.connection import conversation, protocol
from toolbelt.adapters.connection import local_tools as local
from toolbelt.formats import profiles
from toolbelt.formats.appending import lines

Context: TypeAlias = tools.RunContext[Any]
Session: TypeAlias = str | Callable[[Context], str | None] | None
LocalTool: TypeAlias = tools.Tool[Any] | Callable[..., Any]

# The key of an answer's metadata that keeps the state of the conversation.
_KEPT = "toolbelt"
# Toolbelt validates the arguments itself, and reports every problem.
_ANY = SchemaValidator(core_schema.any_schema())


class Toolset(toolsets.AbstractToolset[Any]):
    """The toolset of everything that Toolbelt grants an agent.

    connection: The agent's connection, over HTTP or in process.
    session: The id of the conversation; by default the framework's ``conversation_id``.
    subagent: The kind of subagent to ask for.
    loads: When loaded tools become available: from the next "step" of the run, or from the next "run".
    local_tools: Tools that the program itself runs, once Toolbelt grants and admits them: Pydantic AI's, or functions.
    plugin, offline, stale_seconds: See local_tools.LocalTools.
    name: The toolset's ``id``, which must differ from those of the agent's other toolsets.
    approvals: With "pause", a call that people have to approve first is deferred: the run ends with
        ``DeferredToolRequests``, which the agent's ``output_type`` must include.
    """

    def __init__(
        self,
        connection: protocol.Connection,
        *,
        session: Session = None,
        subagent: str | None = None,
        loads: protocol.Loads = "step",
        name: str = "toolbelt",
        local_tools: Sequence[LocalTool] = (),
        plugin: str = "",
        offline: local.Offline = "refuse",
        stale_seconds: float = local.STALE_SECONDS,
        approvals: local.Approvals = "tell",
    ) -> None:
        self._session, self._subagent, self._id = session, subagent, name
        self._loads = loads
        # A toolset alone cannot add to the history.
        self.appends: bool | None = False
        self._own = toolsets.FunctionToolset[Any](local_tools)
        self._local = local.LocalTools(
            connection,
            map(_local_tool, self._own.tools.values()),
            plugin=plugin,
            offline=offline,
            stale_seconds=stale_seconds,
            pauses=(exceptions.ApprovalRequired, exceptions.CallDeferred),
            approvals=approvals,
        )
        self._running: weakref.WeakValueDictionary[str | None, _Running] = weakref.WeakValueDictionary()

    @property
    def id(self) -> str:
        """The toolset's id."""
        return self._id

    async def for_run(self, ctx: Context) -> toolsets.AbstractToolset[Any]:
        """Begin a run, which has the framework's own id."""
        self._running[ctx.run_id] = running = self._begin(ctx)
        return running

    async def get_tools(self, ctx: Context) -> dict[str, toolsets.ToolsetTool[Any]]:
        """Return the tools outside of a run: those of a new run."""
        return await self._begin(ctx).get_tools(ctx)

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: Context, tool: toolsets.ToolsetTool[Any]
    ) -> Any:
        """Call a tool outside of a run: in a new run."""
        return await self._begin(ctx).call_tool(name, tool_args, ctx, tool)

    def settings(self, ctx: Context) -> settings.ModelSettings:
        """Return settings that require a tool call, if this step's directive does and the model can be forced.

        For ``Agent(model_settings=...)``.
        """
        running = self._running.get(ctx.run_id)
        is_forced = running is not None and running.step.required and _can_be_forced(ctx)
        return {"tool_choice": "required"} if is_forced else {}

    def running(self, ctx: Context) -> _Running | None:
        """Return the toolset of the current run."""
        return self._running.get(ctx.run_id)

    def said(self, ctx: Context) -> str:
        """Return what to keep in the history behind the user's prompt: a focus, or changes; empty for nothing.

        What it returned once is not returned again.
        """
        running = self._running.get(ctx.run_id)
        return running.take_said(_can_be_forced(ctx)) if running is not None else ""

    def _begin(self, ctx: Context) -> _Running:
        session = self._session(ctx) if callable(self._session) else self._session
        if self._session is None:
            session = runs.session(ctx.conversation_id)
        run = protocol.Run.begin(session, self._subagent, ctx.run_id)
        return _Running(self._local, self._own, run, self._loads, self._id, self.appends)


class _Running(toolsets.AbstractToolset[Any]):
    """The toolset of one run."""

    def __init__(
        self,
        local_tools: local.LocalTools,
        own_toolset: toolsets.FunctionToolset[Any],
        run: protocol.Run,
        loads: protocol.Loads,
        name: str,
        appends: bool | None,
    ) -> None:
        self._local, self._own, self._run, self._loads, self._id = local_tools, own_toolset, run, loads, name
        self._appending = appends
        self._step_number, self.step = -1, runs.Step(tools=(), policy="")
        self._has_said = False
        # The conversation before and after this step, and what to say in it; None if changes are not appended.
        self.before: conversation.InWords | None = None
        self.after: conversation.InWords | None = None
        self.texts: tuple[str, ...] = ()
        self.begins_again = False

    @property
    def id(self) -> str:
        return self._id

    def take_said(self, can_be_forced: bool) -> str:
        if self.after is not None:
            texts, self.texts = self.texts, ()
            return "\n\n".join(texts)
        # The framework's "required" cannot name the tool that must be called.
        is_forced = can_be_forced and not (self.step.first and self.step.first.narrows)
        text = "" if self._has_said else self.step.said(is_forced=is_forced)
        self._has_said = self._has_said or bool(text)
        return text

    async def get_tools(self, ctx: Context) -> dict[str, toolsets.ToolsetTool[Any]]:
        await self._fetch(ctx)
        own_tools = await self._own.get_tools(ctx)
        offered: dict[str, toolsets.ToolsetTool[Any]] = {}
        for tool in self.step.tools:
            fields: dict[str, Any] = {
                "name": tool["name"],
                "description": tool["description"] or None,
                "parameters_json_schema": dict(tool["input_schema"]),
                "metadata": {"toolkits": tool["toolkits"], "annotations": tool["annotations"]},
            }
            definition, retries = tools.ToolDefinition(**fields), ctx.max_retries
            if local_tool := await self._local.find(tool["name"]):
                native = own_tools.get(local_tool.name)
                if native is None and self.after is None:
                    continue  # the function that prepares it leaves it out
                if native is not None:
                    definition = dataclasses.replace(native.tool_def, **fields)
                    retries = native.max_retries
            offered[tool["name"]] = toolsets.ToolsetTool(
                toolset=self, tool_def=definition, max_retries=retries, args_validator=_ANY
            )
        return offered

    async def get_instructions(self, ctx: Context) -> str | None:
        await self._fetch(ctx)
        return self.step.policy or None

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: Context, tool: toolsets.ToolsetTool[Any]
    ) -> Any:
        called, given = conversation.dispatched(name, tool_args) if self.after else (name, tool_args)
        local_tool = await self._local.find(called)
        spoken, run = self._spoken(), self._at_step(ctx)
        asked_about = (called, given) if local_tool else (name, tool_args)
        if question := await self._local.waiting(run, *asked_about, **spoken):
            # Also if the program says that it was approved: Toolbelt knows.
            raise exceptions.ApprovalRequired(question)
        if local_tool:
            return await self._call_own(local_tool.name, called, dict(given), ctx)
        result = await runs.call(self._local.connection, run, name, tool_args, **spoken)
        if result.is_error:
            raise exceptions.ToolFailed(result.text)
        return result.text if result.notice else result.value

    def _spoken(self) -> dict[str, str]:
        """Return what a call says about its conversation."""
        token = self.after.token if self.after is not None else None
        return {"conversation": token} if token else {}

    async def _call_own(self, own_name: str, key: str, tool_args: dict[str, Any], ctx: Context) -> Any:
        """Run a tool of the program's as the framework does, once the call is admitted."""
        try:
            async with self._local.admitted(self._at_step(ctx), key, tool_args, **self._spoken()) as call:
                tool = (await self._own.get_tools(ctx))[own_name]
                args = await _validated(tool, tool_args, ctx)
                return call.result(await self._own.call_tool(own_name, args, ctx, tool))
        except local.NotAdmittedError as error:
            raise exceptions.ToolFailed(runs.read(error.document).text) from None

    async def _fetch(self, ctx: Context) -> None:
        """Fetch the surface once per step, so that its tools and instructions match."""
        if self._step_number != ctx.run_step:
            message = _text(ctx.prompt) if ctx.run_step <= 1 else None
            talk = _conversation(ctx) if self._appends(ctx) else None
            question = talk.question() if talk is not None else {}
            document = await self._local.surface(self._at_step(ctx), message=message, **question)
            self.step = runs.step(document)
            self.before, self.after = talk, None
            if talk is not None:
                self.after, self.texts, self.begins_again = talk.after(document)
                self.step = runs.Step(tools=self.after.tools, policy=self.after.policy)
            self._step_number = ctx.run_step

    def _appends(self, ctx: Context) -> bool:
        if self._appending is not None:
            return self._appending
        return profiles.of(ctx.model.model_name).binds_thinking

    def _at_step(self, ctx: Context) -> protocol.Run:
        return self._run.at(ctx.run_step, self._loads)


@dataclass(init=False)
class Toolbelt(capabilities.AbstractCapability[Any]):
    """A capability with everything that Toolbelt grants an agent: the toolset, and the tool choice of directives.

    appends: Whether tools and instructions never change in a conversation, and changes are said in its messages; tools
        that are added are then called through ``call_tool``. By default, with models that refuse their earlier thinking
        after a change. The history must be passed to later runs as it is.
    """

    def __init__(
        self,
        connection: protocol.Connection,
        *,
        session: Session = None,
        subagent: str | None = None,
        loads: protocol.Loads = "step",
        name: str = "toolbelt",
        local_tools: Sequence[LocalTool] = (),
        plugin: str = "",
        offline: local.Offline = "refuse",
        stale_seconds: float = local.STALE_SECONDS,
        appends: bool | None = None,
        approvals: local.Approvals = "tell",
    ) -> None:
        self.id = name
        self._toolset = Toolset(
            connection,
            session=session,
            subagent=subagent,
            loads=loads,
            name=name,
            local_tools=local_tools,
            plugin=plugin,
            offline=offline,
            stale_seconds=stale_seconds,
            approvals=approvals,
        )
        self._toolset.appends = appends

    def get_toolset(self) -> toolsets.AbstractToolset[Any]:
        """Return the toolset."""
        return self._toolset

    def get_model_settings(self) -> Callable[[Context], settings.ModelSettings]:
        """Return the function that requires a tool call in steps whose directive does."""
        return self._toolset.settings

    async def before_model_request(
        self, ctx: Context, request_context: models.ModelRequestContext
    ) -> models.ModelRequestContext:
        """State the directive's focus, or what has changed, behind the user's prompt, where it stays in the history."""
        running = self._toolset.running(ctx)
        if running is not None and running.after is not None:
            past = _past(request_context.messages, running.begins_again)
            request_context.messages = [
                *map(_without_past, request_context.messages[:past]),
                *request_context.messages[past:],
            ]
        text = self._toolset.said(ctx)
        if not text:
            return request_context
        kind = messages.SystemPromptPart if _takes_system_messages(ctx) else messages.UserPromptPart
        part = kind(text)
        # The history may have another object for the message than the request has.
        requests = {id(message): message for message in (request_context.messages[-1], ctx.messages[-1])}
        for request in requests.values():
            if isinstance(request, messages.ModelRequest):
                request.parts = [*request.parts, part]
        return request_context

    async def after_model_request(
        self,
        ctx: Context,
        *,
        request_context: models.ModelRequestContext,
        response: messages.ModelResponse,
    ) -> messages.ModelResponse:
        """Keep the state of the conversation with the model's answer."""
        running = self._toolset.running(ctx)
        if running is None or running.after is None or running.before is None:
            return response
        kept: dict[str, Any] = {"token": running.after.token}
        if running.after.tools is not running.before.tools:
            kept |= {"tools": list(running.after.tools), "policy": running.after.policy}
        return dataclasses.replace(response, metadata={**(response.metadata or {}), _KEPT: kept})


def _conversation(ctx: Context) -> conversation.InWords:
    """Return the conversation, as the answers in the history keep it."""
    kept = [
        message.metadata[_KEPT]
        for message in ctx.messages
        if isinstance(message, messages.ModelResponse) and _KEPT in (message.metadata or {})
    ]
    prefix = next((entry for entry in reversed(kept) if "tools" in entry), None)
    if prefix is None:
        return conversation.InWords()
    return conversation.InWords(
        token=kept[-1]["token"], tools=tuple(prefix["tools"]), policy=prefix["policy"]
    )


def _past(history: Sequence[messages.ModelMessage], begins_again: bool) -> int:
    """Return how many messages belong to an earlier prefix."""
    answers = [index for index, each in enumerate(history) if isinstance(each, messages.ModelResponse)]
    begun = [index for index in answers if "tools" in (history[index].metadata or {}).get(_KEPT, {})]
    if not begins_again and not begun:
        return 0
    end = len(history) if begins_again else begun[-1]
    return next((index + 1 for index in reversed(answers) if index < end), 0)


def _without_past(message: messages.ModelMessage) -> messages.ModelMessage:
    """Return a message without thinking, and without what was said of an earlier prefix."""
    if isinstance(message, messages.ModelResponse):
        thought = [part for part in message.parts if not isinstance(part, messages.ThinkingPart)]
        return dataclasses.replace(message, parts=thought)
    said = [
        part
        for part in message.parts
        if not (
            isinstance(getattr(part, "content", None), str) and part.content.startswith(f"<{lines.NOTICE}>")
        )
    ]
    return dataclasses.replace(message, parts=said)


def _can_be_forced(ctx: Context) -> bool:
    """Return whether the model accepts a forced call: by Toolbelt's table, and by what the framework knows of it."""
    profile = ctx.model.profile
    forces = profile.get("supports_forced_tool_choice", True)
    if _is_thinking(ctx):
        forces = forces and profile.get("supports_forced_tool_choice_with_thinking", True)
    return bool(forces) and profiles.of(ctx.model.model_name).can_be_forced(_is_thinking(ctx))


def _is_thinking(ctx: Context) -> bool:
    given = [value for name, value in (ctx.model_settings or {}).items() if name.endswith("thinking")]
    if not given:
        return bool(ctx.model.profile.get("thinking_enabled_by_default"))
    return any(value and (not isinstance(value, dict) or value.get("type") != "disabled") for value in given)


def _takes_system_messages(ctx: Context) -> bool:
    """Return whether the model takes a system message in the conversation as it is; others read it in other words."""
    is_inline = ctx.model.profile.get("supports_inline_system_prompts", False)
    return bool(is_inline) and profiles.of(ctx.model.model_name).system_messages


def _local_tool(tool: tools.Tool[Any]) -> local.LocalTool:
    schema = tool.function_schema.json_schema
    return local.LocalTool(name=tool.name, description=tool.description or "", input_schema=schema)


async def _validated(
    tool: toolsets.ToolsetTool[Any], tool_args: dict[str, Any], ctx: Context
) -> dict[str, Any]:
    """Return the arguments as the tool's function takes them. Raise ModelRetry if it does not."""
    try:
        args: dict[str, Any] = tool.args_validator.validate_python(tool_args, context=ctx.validation_context)
    except ValidationError as error:
        raise exceptions.ModelRetry(str(error)) from error
    if tool.args_validator_func is not None:
        checked = tool.args_validator_func(ctx, **args)
        if inspect.isawaitable(checked):
            await checked
    return args


def _text(prompt: Any) -> str | None:
    """Return the text of a prompt; None if there is none."""
    parts = [prompt] if isinstance(prompt, str) else prompt or ()
    texts = (part if isinstance(part, str) else getattr(part, "content", None) for part in parts)
    return "\n".join(text for text in texts if isinstance(text, str)) or None
