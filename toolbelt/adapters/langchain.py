"""How does an agent of LangChain get its tools from Toolbelt? By a middleware. (pip install 'toolbelt[langchain]')

::

    from langchain.agents import create_agent
    from toolbelt.adapters import langchain
    from toolbelt.adapters.connection import http

    toolbelt = langchain.Toolbelt(http.Http("https://toolbelt.example", "assistant", token))
    agent = create_agent(model, middleware=[toolbelt])
    agent.invoke({"messages": "What is 2 + 3?"}, {"configurable": {"thread_id": "s1"}})

Each call of the model asks anew for tools and policy. A call of a tool that the program did not bring itself goes to
Toolbelt, also of one that the model was not given: the refusal says how to get it. Put it last in the list, so that the
middleware before it sees Toolbelt's tools, too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, NotRequired, TypeAlias

from langchain.agents.middleware import types
from langchain_core import messages
from langgraph import runtime as graph
from langgraph.types import Command

from toolbelt.adapters import runs, surface
from toolbelt.adapters.connection import protocol

Answer: TypeAlias = messages.ToolMessage | Command[Any]


class State(types.AgentState[Any]):
    """What is kept with the graph's own state: the run that is under way, so that one that was interrupted goes on."""

    toolbelt: NotRequired[Annotated[dict[str, str], types.PrivateStateAttr]]  # type: ignore[valid-type]


class Toolbelt(types.AgentMiddleware[State, Any, Any]):
    """Gives an agent what Toolbelt grants it.

    connection: The agent's, over HTTP or in process. ``invoke`` asks through its blocking twin.
    session: Names the conversation; by default the graph's ``thread_id``, and without one nothing can be loaded.
    subagent: The kind to ask as, of those that the agent may.
    """

    state_schema = State

    def __init__(
        self,
        connection: protocol.Connection,
        *,
        session: str | Callable[[State, graph.Runtime[Any]], str | None] | None = None,
        subagent: str | None = None,
    ) -> None:
        super().__init__()
        self.tools: list[Any] = []
        self._connection, self._session, self._subagent = connection, session, subagent

    def before_agent(self, state: State, runtime: graph.Runtime[Any]) -> dict[str, Any]:
        """Begin a run, with a request of its own."""
        session = self._session(state, runtime) if callable(self._session) else self._session
        if self._session is None and runtime.execution_info is not None:
            session = runs.session(runtime.execution_info.thread_id)
        return {"toolbelt": protocol.Run.begin(session, self._subagent).document()}

    async def abefore_agent(self, state: State, runtime: graph.Runtime[Any]) -> dict[str, Any]:
        """Begin a run, with a request of its own."""
        return self.before_agent(state, runtime)

    def wrap_model_call(
        self,
        request: types.ModelRequest[Any],
        handler: Callable[[types.ModelRequest[Any]], types.ModelResponse[Any]],
    ) -> types.ModelResponse[Any]:
        """Send the model what is granted now."""
        document = self._connection.blocking().surface(_run(request.state), message=_message(request))
        return handler(_given(request, runs.step(document)))

    async def awrap_model_call(
        self,
        request: types.ModelRequest[Any],
        handler: Callable[[types.ModelRequest[Any]], Awaitable[types.ModelResponse[Any]]],
    ) -> types.ModelResponse[Any]:
        """Send the model what is granted now."""
        document = await self._connection.surface(_run(request.state), message=_message(request))
        return await handler(_given(request, runs.step(document)))

    def wrap_tool_call(
        self, request: types.ToolCallRequest, handler: Callable[[types.ToolCallRequest], Answer]
    ) -> Answer:
        """Call through Toolbelt what is not the program's own."""
        if request.tool is not None:
            return handler(request)
        asked = request.tool_call
        connection = self._connection.blocking()
        return _told(asked, runs.blocking_call(connection, _run(request.state), asked["name"], asked["args"]))

    async def awrap_tool_call(
        self, request: types.ToolCallRequest, handler: Callable[[types.ToolCallRequest], Awaitable[Answer]]
    ) -> Answer:
        """Call through Toolbelt what is not the program's own."""
        if request.tool is not None:
            return await handler(request)
        asked = request.tool_call
        return _told(
            asked, await runs.call(self._connection, _run(request.state), asked["name"], asked["args"])
        )


def _run(state: Any) -> protocol.Run:
    return protocol.Run(**state["toolbelt"])


def _message(request: types.ModelRequest[Any]) -> str | None:
    """Give what the user said, if this step is the first after it."""
    last = request.messages[-1] if request.messages else None
    return str(last.text) if isinstance(last, messages.HumanMessage) else None


def _given(request: types.ModelRequest[Any], step: runs.Step) -> types.ModelRequest[Any]:
    runs.beside(step, (name for name in map(_name, request.tools) if name))
    changed: dict[str, Any] = {"tools": [*request.tools, *map(_tool, step.tools)]}
    if step.policy:
        changed["system_message"] = _system(request.system_message, step.policy)
    if step.required and request.tool_choice is None:
        changed["tool_choice"] = "any"
    return request.override(**changed)


def _name(tool: Any) -> str | None:
    """Name one of the program's own tools; a provider's built-in one may have no name."""
    if not isinstance(tool, dict):
        return str(tool.name)
    name = tool.get("name") or tool.get("function", {}).get("name")
    return str(name) if name else None


def _tool(tool: Any) -> dict[str, Any]:
    """Say a tool in the form that every chat model of LangChain takes, which leaves the schema as it is."""
    function = {"name": tool["name"], **surface.described(tool), "parameters": tool["input_schema"]}
    return {"type": "function", "function": function}


def _system(message: messages.SystemMessage | None, policy: str) -> messages.SystemMessage:
    """Put the policy behind the system prompt, which may be made of blocks."""
    if message is None or isinstance(message.content, str):
        return messages.SystemMessage(runs.joined(message.text if message else None, policy))
    return messages.SystemMessage([*message.content, {"type": "text", "text": policy}])


def _told(asked: messages.ToolCall, told: runs.Told) -> messages.ToolMessage:
    return messages.ToolMessage(
        told.text,
        name=asked["name"],
        tool_call_id=asked["id"],
        status="error" if told.is_error else "success",
        artifact=told.content,
    )
