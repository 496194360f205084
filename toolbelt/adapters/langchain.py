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

With a chat model that takes changes of tools in its conversation, as Claude's do, nothing that the model has read ever
changes: a flip, a load or an edited policy is a message in front of the model's answer, which carries the token of the
conversation. So both are checkpointed together, and a fork of the thread is a fork of the conversation.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, NotRequired, TypeAlias

from langchain.agents.middleware import types
from langchain_core import messages, tools
from langchain_core.utils import function_calling
from langgraph import errors as graph_errors
from langgraph import runtime as graph
from langgraph import types as graph_types
from langgraph.types import Command

from toolbelt.adapters import runs
from toolbelt.adapters.connection import conversation, protocol
from toolbelt.adapters.connection import local_tools as local
from toolbelt.formats import profiles, surface
from toolbelt.formats.appending import lines

# The key of a message's additional_kwargs under which it says what it needs of its conversation.
_KEPT = "toolbelt"
# The line of models that are told everything in words.
_WORDS = "words"

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
    approvals: With "pause", a call that people have to approve first interrupts the graph, which needs a checkpointer.
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
        approvals: local.Approvals = "tell",
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
            approvals=approvals,
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
        talk = _conversation(request)
        question = talk.question() if talk else {}
        run, message = self._run(request.state), _message(request)
        document = self._local.blocking_surface(run, message=message, **question)
        asked, keep = _prepared(request, document, talk)
        return keep(handler(asked))

    async def awrap_model_call(
        self,
        request: types.ModelRequest[Any],
        handler: Callable[[types.ModelRequest[Any]], Awaitable[types.ModelResponse[Any]]],
    ) -> types.ModelResponse[Any]:
        """Add the current tools and policy to the model's request."""
        talk = _conversation(request)
        question = talk.question() if talk else {}
        run, message = self._run(request.state), _message(request)
        document = await self._local.surface(run, message=message, **question)
        asked, keep = _prepared(request, document, talk)
        return keep(await handler(asked))

    def wrap_tool_call(
        self, request: types.ToolCallRequest, handler: Callable[[types.ToolCallRequest], ToolResult]
    ) -> ToolResult:
        """Have calls of local tools admitted, and let Toolbelt run every tool that is not the program's own."""
        if request.tool is not None:
            return handler(request)
        tool_call, run = request.tool_call, self._run(request.state)
        name, args = tool_call["name"], tool_call["args"]
        meant, given = _meant(request.state, name, args)
        tool, told = self._local.blocking_find(meant), _spoken(request.state)
        asked_about = (meant, given) if tool else (name, args)
        while question := self._local.blocking_waiting(run, *asked_about, **told):
            # Whatever the graph is resumed with, Toolbelt says whether it was approved.
            graph_types.interrupt(question)
        if tool:
            try:
                with self._local.admitted(run, meant, given, **told) as call:
                    asked = request.override(tool=tool.native, tool_call={**tool_call, "args": dict(given)})
                    return _with_outcome(call, handler(asked), name)
            except local.NotAdmittedError as error:
                return _tool_message(tool_call, runs.read(error.document))
        connection = self._connection.blocking()
        return _tool_message(tool_call, runs.blocking_call(connection, run, name, args, **told))

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
        meant, given = _meant(request.state, name, args)
        tool, told = await self._local.find(meant), _spoken(request.state)
        asked_about = (meant, given) if tool else (name, args)
        while question := await self._local.waiting(run, *asked_about, **told):
            graph_types.interrupt(question)
        if tool:
            try:
                async with self._local.admitted(run, meant, given, **told) as call:
                    asked = request.override(tool=tool.native, tool_call={**tool_call, "args": dict(given)})
                    return _with_outcome(call, await handler(asked), name)
            except local.NotAdmittedError as error:
                return _tool_message(tool_call, runs.read(error.document))
        return _tool_message(tool_call, await runs.call(self._connection, run, name, args, **told))

    def _run(self, state: Any) -> protocol.Run:
        return protocol.Run(**state["toolbelt"]).at(state["toolbelt_step"], self._loads)


def _message(request: types.ModelRequest[Any]) -> str | None:
    """Return the user's message, if this is the first step after it."""
    last = request.messages[-1] if request.messages else None
    return str(last.text) if isinstance(last, messages.HumanMessage) else None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Conversation:
    """What the messages of the graph's state say about their conversation with models of one line.

    ``messages`` are those to send: without what Toolbelt said to other lines, and without the thinking from before
    this one began.
    """

    model: str
    line: str
    token: str | None
    prefix: Mapping[str, Any]
    messages: Sequence[messages.AnyMessage]

    @property
    def in_words(self) -> conversation.InWords:
        """Return the conversation with a model that is told everything in words."""
        return conversation.InWords(token=self.token, **self.prefix)

    def question(self) -> dict[str, Any]:
        """Return what to ask beside the surface."""
        if self.line == _WORDS:
            return self.in_words.question()
        return {"form": "anthropic", "model": self.model, "conversation": {"token": self.token}}


def _conversation(request: types.ModelRequest[Any]) -> _Conversation | None:
    """Return the conversation, if nothing that the model has read may change."""
    model = _model_name(request.model)
    if (request.model.profile or {}).get("mid_conversation_tools"):
        line = lines.of("anthropic", model).key
    elif profiles.of(model).binds_thinking:
        # LangChain does not know that the model takes changes of tools.
        line = _WORDS
    else:
        return None
    kept = [_kept(message) for message in request.messages]
    mine = [entry for entry in kept if entry.get("line") == line]
    answers = [index for index, entry in enumerate(kept) if entry.get("line") == line and "prefix" in entry]
    token = next((entry["token"] for entry in reversed(mine) if "token" in entry), None)
    if not answers or token is None:
        sent = _of_line(request.messages, kept, len(kept), line)
        return _Conversation(model=model, line=line, token=None, prefix={}, messages=sent)
    begins = answers[-1]
    while begins and kept[begins - 1].get("line") == line and "token" not in kept[begins - 1]:
        begins -= 1
    return _Conversation(
        model=model,
        line=line,
        token=token,
        prefix=kept[answers[-1]]["prefix"],
        messages=_of_line(request.messages, kept, begins, line),
    )


def _of_line(
    sent: Sequence[messages.AnyMessage], kept: Sequence[Mapping[str, Any]], begins: int, line: str
) -> list[messages.AnyMessage]:
    """Return the messages to send to models of a line whose prefix ``begins`` with this one."""
    result = []
    for index, (message, entry) in enumerate(zip(sent, kept, strict=True)):
        is_said = bool(entry) and "token" not in entry
        if is_said and (index < begins or entry["line"] != line):
            continue
        sent_message = _without_thinking(message) if index < begins else message
        if sent_message.content or not message.content:
            result.append(sent_message)
    return result


def _without_thinking(message: messages.AnyMessage) -> messages.AnyMessage:
    if not isinstance(message, messages.AIMessage) or isinstance(message.content, str):
        return message
    content = [
        block
        for block in message.content
        if not isinstance(block, dict) or block.get("type") not in ("thinking", "redacted_thinking")
    ]
    return message.model_copy(update={"content": content})


def _kept(message: messages.AnyMessage) -> Mapping[str, Any]:
    """Return what a message keeps of the conversation: the line that it was said to, or the token of an answer."""
    entry: Mapping[str, Any] = message.additional_kwargs.get(_KEPT, {})
    return entry


def _spoken(state: Any) -> dict[str, str]:
    """Return what a call says about its conversation: the token that the model's last answer carries."""
    tokens = (_kept(message).get("token") for message in reversed(state["messages"]))
    token = next((token for token in tokens if token), None)
    return {"conversation": token} if token else {}


def _meant(state: Any, name: str, args: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return the tool and the arguments that a call means: a model that is told everything in words has call_tool."""
    lines_ = (_kept(message).get("line") for message in reversed(state["messages"]))
    is_in_words = next((line for line in lines_ if line), None) == _WORDS
    return conversation.dispatched(name, args) if is_in_words else (name, args)


def _prepared(
    request: types.ModelRequest[Any], document: protocol.Document, talk: _Conversation | None
) -> tuple[types.ModelRequest[Any], Callable[[types.ModelResponse[Any]], types.ModelResponse[Any]]]:
    """Return the request with tools and policy, and a function that keeps with the response what was said."""
    step = runs.step(document)
    if talk is None:
        said = _said(request, step)
        return _with_step(request, step, said), functools.partial(_with_said, said=said)
    new, said, kept = _words(document, talk) if talk.line == _WORDS else _changes(document, talk)
    prefix, sent = new or talk.prefix, talk.messages
    if new is not None:
        kept_before = [*map(_kept, request.messages)]
        sent = _of_line(request.messages, kept_before, len(kept_before), talk.line)
        kept["prefix"] = new
    declared = list(prefix.get("tools", ()))
    _check_names(request, dataclasses.replace(step, tools=tuple(declared)))
    if talk.line == _WORDS:
        declared, policy = [*map(_tool, declared)], prefix["policy"]
    else:
        policy = "\n\n".join(block["text"] for block in prefix.get("system", ()))
    changed: dict[str, Any] = {"tools": [*request.tools, *declared], "messages": [*sent, *said]}
    if policy:
        changed["system_message"] = _system(request.system_message, policy)
    return request.override(**changed), functools.partial(_with_said, said=said, kept=kept)


_Said = tuple[Mapping[str, Any] | None, list[messages.BaseMessage], dict[str, Any]]


def _changes(document: protocol.Document, talk: _Conversation) -> _Said:
    """Return a new prefix, if the conversation begins, the messages to append, and what the answer keeps."""
    append = document.get("append")
    if append is None:
        if not talk.prefix:
            raise protocol.Unreachable("Toolbelt could not be reached to begin this conversation.")
        return None, [], {"line": talk.line, "token": talk.token}
    said = [_message_of(message, talk.line) for message in append["messages"]]
    return append["prefix"], said, {"line": talk.line, "token": append["token"]}


def _words(document: protocol.Document, talk: _Conversation) -> _Said:
    """Return the same as :func:`_changes`, for a model that is told everything in words."""
    after, texts, begins_again = talk.in_words.after(document)
    said = [_message_of({"role": "user", "content": text}, talk.line) for text in texts]
    begins = talk.token is None or begins_again
    prefix = {"tools": list(after.tools), "policy": after.policy} if begins else None
    return prefix, said, {"line": talk.line, "token": after.token}


def _message_of(message: Mapping[str, Any], line: str) -> messages.BaseMessage:
    """Return a message of Toolbelt's as the graph keeps it."""
    # LangChain has no place for clear_at: a focus of one step stays visible, and says that it is of one step.
    kind = messages.SystemMessage if message["role"] == "system" else messages.HumanMessage
    return kind(message["content"], additional_kwargs={"lc_source": "toolbelt", _KEPT: {"line": line}})


def _with_step(
    request: types.ModelRequest[Any], step: runs.Step, said: Sequence[messages.BaseMessage]
) -> types.ModelRequest[Any]:
    _check_names(request, step)
    changed: dict[str, Any] = {"tools": [*request.tools, *map(_tool, step.tools)]}
    if step.policy:
        changed["system_message"] = _system(request.system_message, step.policy)
    if said:
        changed["messages"] = [*request.messages, *said]
    if _is_forced(request, step):
        changed["tool_choice"] = "any"
    return request.override(**changed)


def _check_names(request: types.ModelRequest[Any], step: runs.Step) -> None:
    """Raise errors.Invalid if one of the program's own tools has the name of one of the step's."""
    runs.check_names(step, (name for name in map(_name, request.tools) if name))


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
    response: types.ModelResponse[Any],
    *,
    said: Sequence[messages.BaseMessage],
    kept: Mapping[str, Any] | None = None,
) -> types.ModelResponse[Any]:
    """Keep what was said in the conversation, with the model's answer: its thinking is bound to both.

    ``kept`` is what the answer carries about the conversation.
    """
    result = [
        message.model_copy(update={"additional_kwargs": {**message.additional_kwargs, _KEPT: kept}})
        if kept and isinstance(message, messages.AIMessage)
        else message
        for message in response.result
    ]
    return dataclasses.replace(response, result=[*said, *result]) if said or kept else response


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
