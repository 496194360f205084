"""A middleware for LangChain agents. (pip install 'toolbelt-switchboard[langchain]')

::

    from langchain.agents import create_agent
    from toolbelt.adapters import langchain
    from toolbelt.adapters.connection import http

    toolbelt = langchain.Toolbelt(http.Http("https://toolbelt.example", "assistant", token))
    agent = create_agent(model, middleware=[toolbelt])
    agent.invoke({"messages": "What is 2 + 3?"}, {"configurable": {"thread_id": "s1"}})

Each model call requests tools and policy again. Calls of tools that are not the program's own go to Toolbelt, including
tools that the model was not given: the refusal says how to load them. Put the middleware last in the list, so that the
middleware before it sees Toolbelt's tools. The graph runs ``local_tools`` itself, but only those that Toolbelt grants.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, NotRequired, TypeAlias

from langchain.agents.middleware import types
from langchain_core import messages, tools
from langchain_core.utils import function_calling
from langgraph import errors as graph_errors
from langgraph import runtime as graph
from langgraph.types import Command

from toolbelt.adapters import runs
from toolbelt.adapters.connection import local_tools as local
from toolbelt.adapters.connection import protocol
from toolbelt.formats import profiles, surface

ToolResult: TypeAlias = messages.ToolMessage | Command[Any]


class State(types.AgentState[Any]):
    """The current run and its step in the graph's state, so that an interrupted run continues."""

    toolbelt: NotRequired[Annotated[dict[str, str], types.PrivateStateAttr]]  # type: ignore[valid-type]
    toolbelt_step: NotRequired[Annotated[int, types.PrivateStateAttr]]  # type: ignore[valid-type]


class Toolbelt(types.AgentMiddleware[State, Any, Any]):
    """A middleware that gives an agent everything that Toolbelt grants it.

    connection: The agent's connection, over HTTP or in process. ``invoke`` uses its blocking counterpart.
    session: The id of the conversation; by default the graph's ``thread_id``. Without one, nothing can be loaded.
    subagent: The kind of subagent to ask for.
    loads: When loaded tools become available: from the next "step" of the run, or from the next "run".
    local_tools: Tools that the program itself runs, once Toolbelt grants and admits them: LangChain's, or functions.
    plugin, offline, stale_seconds: See local_tools.LocalTools.
    """

    state_schema = State

    def __init__(
        self,
        connection: protocol.Connection,
        *,
        session: str | Callable[[State, graph.Runtime[Any]], str | None] | None = None,
        subagent: str | None = None,
        loads: protocol.Loads = "step",
        local_tools: Iterable[tools.BaseTool | Callable[..., Any]] = (),
        plugin: str = "",
        offline: local.Offline = "refuse",
        stale_seconds: float = local.STALE_SECONDS,
    ) -> None:
        super().__init__()
        self.tools: list[Any] = []
        self._connection, self._session, self._subagent = connection, session, subagent
        self._loads = loads
        self._local = local.LocalTools(
            connection,
            map(_local_tool, local_tools),
            plugin=plugin,
            offline=offline,
            stale_seconds=stale_seconds,
            pauses=(graph_errors.GraphInterrupt,),
        )

    def before_agent(self, state: State, runtime: graph.Runtime[Any]) -> dict[str, Any]:
        """Begin a run."""
        session = self._session(state, runtime) if callable(self._session) else self._session
        if self._session is None and runtime.execution_info is not None:
            session = runs.session(runtime.execution_info.thread_id)
        return {"toolbelt": protocol.Run.begin(session, self._subagent).document(), "toolbelt_step": 0}

    async def abefore_agent(self, state: State, runtime: graph.Runtime[Any]) -> dict[str, Any]:
        """Begin a run."""
        return self.before_agent(state, runtime)

    def before_model(self, state: State, runtime: graph.Runtime[Any]) -> dict[str, Any]:
        """Begin a step of the run."""
        return {"toolbelt_step": state["toolbelt_step"] + 1}

    async def abefore_model(self, state: State, runtime: graph.Runtime[Any]) -> dict[str, Any]:
        """Begin a step of the run."""
        return self.before_model(state, runtime)

    def wrap_model_call(
        self,
        request: types.ModelRequest[Any],
        handler: Callable[[types.ModelRequest[Any]], types.ModelResponse[Any]],
    ) -> types.ModelResponse[Any]:
        """Add the current tools and policy to the model's request."""
        step = runs.step(self._local.blocking_surface(self._run(request.state), message=_message(request)))
        said = _said(request, step)
        return _with_said(handler(_with_step(request, step, said)), said)

    async def awrap_model_call(
        self,
        request: types.ModelRequest[Any],
        handler: Callable[[types.ModelRequest[Any]], Awaitable[types.ModelResponse[Any]]],
    ) -> types.ModelResponse[Any]:
        """Add the current tools and policy to the model's request."""
        step = runs.step(await self._local.surface(self._run(request.state), message=_message(request)))
        said = _said(request, step)
        return _with_said(await handler(_with_step(request, step, said)), said)

    def wrap_tool_call(
        self, request: types.ToolCallRequest, handler: Callable[[types.ToolCallRequest], ToolResult]
    ) -> ToolResult:
        """Have calls of local tools admitted, and let Toolbelt run every tool that is not the program's own."""
        if request.tool is not None:
            return handler(request)
        tool_call, run = request.tool_call, self._run(request.state)
        name, args = tool_call["name"], tool_call["args"]
        if tool := self._local.blocking_find(name):
            try:
                with self._local.admitted(run, name, args) as call:
                    return _with_outcome(call, handler(request.override(tool=tool.native)), name)
            except local.NotAdmittedError as error:
                return _tool_message(tool_call, runs.read(error.document))
        return _tool_message(tool_call, runs.blocking_call(self._connection.blocking(), run, name, args))

    async def awrap_tool_call(
        self,
        request: types.ToolCallRequest,
        handler: Callable[[types.ToolCallRequest], Awaitable[ToolResult]],
    ) -> ToolResult:
        """Have calls of local tools admitted, and let Toolbelt run every tool that is not the program's own."""
        if request.tool is not None:
            return await handler(request)
        tool_call, run = request.tool_call, self._run(request.state)
        name, args = tool_call["name"], tool_call["args"]
        if tool := await self._local.find(name):
            try:
                async with self._local.admitted(run, name, args) as call:
                    return _with_outcome(call, await handler(request.override(tool=tool.native)), name)
            except local.NotAdmittedError as error:
                return _tool_message(tool_call, runs.read(error.document))
        return _tool_message(tool_call, await runs.call(self._connection, run, name, args))

    def _run(self, state: Any) -> protocol.Run:
        return protocol.Run(**state["toolbelt"]).at(state["toolbelt_step"], self._loads)


def _message(request: types.ModelRequest[Any]) -> str | None:
    """Return the user's message, if this is the first step after it."""
    last = request.messages[-1] if request.messages else None
    return str(last.text) if isinstance(last, messages.HumanMessage) else None


def _with_step(
    request: types.ModelRequest[Any], step: runs.Step, said: Sequence[messages.BaseMessage]
) -> types.ModelRequest[Any]:
    runs.check_names(step, (name for name in map(_name, request.tools) if name))
    changed: dict[str, Any] = {"tools": [*request.tools, *map(_tool, step.tools)]}
    if step.policy:
        changed["system_message"] = _system(request.system_message, step.policy)
    if said:
        changed["messages"] = [*request.messages, *said]
    if _is_forced(request, step):
        changed["tool_choice"] = "any"
    return request.override(**changed)


def _said(request: types.ModelRequest[Any], step: runs.Step) -> list[messages.BaseMessage]:
    """Return the messages that state the focus, behind the user's."""
    # LangChain's "any" cannot name the tool that must be called.
    is_forced = _is_forced(request, step) and not (step.first and step.first.narrows)
    text = step.said(is_forced=is_forced)
    if not text:
        return []
    accepts_system = (request.model.profile or {}).get("mid_conversation_system_messages")
    kind = messages.SystemMessage if accepts_system else messages.HumanMessage
    return [kind(text, additional_kwargs={"lc_source": "toolbelt"})]


def _with_said(
    response: types.ModelResponse[Any], said: Sequence[messages.BaseMessage]
) -> types.ModelResponse[Any]:
    """Keep the focus in the conversation, with the model's answer: its thinking is bound to both."""
    return dataclasses.replace(response, result=[*said, *response.result]) if said else response


def _is_forced(request: types.ModelRequest[Any], step: runs.Step) -> bool:
    profile = profiles.of(_model_name(request.model))
    return step.required and request.tool_choice is None and profile.can_be_forced(_is_thinking(request))


def _model_name(model: Any) -> str:
    names = (getattr(model, name, None) for name in ("model_name", "model", "model_id"))
    return next((name for name in names if isinstance(name, str)), "")


def _is_thinking(request: types.ModelRequest[Any]) -> bool:
    """Return whether the program lets the model think before it answers."""
    model = request.model
    settings = [
        getattr(model, name, None) or {} for name in ("model_kwargs", "additional_model_request_fields")
    ]
    options = [
        getattr(model, "thinking", None),
        *(model_settings.get("thinking") for model_settings in settings),
    ]
    options.append(request.model_settings.get("thinking"))
    return any(isinstance(option, Mapping) and option.get("type") != "disabled" for option in options)


def _name(tool: Any) -> str | None:
    """Return the name of one of the program's own tools; a provider's built-in tool may have none."""
    if not isinstance(tool, dict):
        return str(tool.name)
    name = tool.get("name") or tool.get("function", {}).get("name")
    return str(name) if name else None


def _tool(tool: Any) -> dict[str, Any]:
    """Return a tool in the form that all of LangChain's chat models accept with its schema unchanged."""
    function = {"name": tool["name"], **surface.description(tool), "parameters": tool["input_schema"]}
    return {"type": "function", "function": function}


def _system(message: messages.SystemMessage | None, policy: str) -> messages.SystemMessage:
    """Append the policy to the system prompt, which may consist of blocks."""
    if message is None or isinstance(message.content, str):
        return messages.SystemMessage(runs.append_policy(message.text if message else None, policy))
    return messages.SystemMessage([*message.content, {"type": "text", "text": policy}])


def _local_tool(tool: tools.BaseTool | Callable[..., Any]) -> local.LocalTool:
    native = tool if isinstance(tool, tools.BaseTool) else tools.tool(tool)
    function = function_calling.convert_to_openai_tool(native)["function"]
    return local.LocalTool(
        name=native.name,
        description=function.get("description", ""),
        input_schema=function.get("parameters", {}),
        native=native,
    )


def _with_outcome(call: local.Admitted, answer: ToolResult, name: str) -> ToolResult:
    """Note what a local tool returned, for the record. Return it under the name by which the model called the tool."""
    if not isinstance(answer, messages.ToolMessage):
        return answer
    call.result(answer.content)
    if answer.status == "error":
        call.failed(answer.text)
    return answer.model_copy(update={"name": name})


def _tool_message(tool_call: messages.ToolCall, result: runs.CallResult) -> messages.ToolMessage:
    return messages.ToolMessage(
        result.text,
        name=tool_call["name"],
        tool_call_id=tool_call["id"],
        status="error" if result.is_error else "success",
        artifact=result.content,
    )
