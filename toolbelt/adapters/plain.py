"""Toolbelt for a program that calls a model provider's SDK in a loop of its own, and has tools of its own.

::

    from toolbelt.adapters import plain
    from toolbelt.adapters.connection import http

    toolbelt = plain.Toolbelt(
        http.Http("https://toolbelt.example", "assistant", token),
        local_tools=plain.tools(DEFINITIONS, FUNCTIONS),
        plugin="shop",
    )
    run = toolbelt.begin("Refund order 7.", "s1")
    step = run.step("openai_chat")  # before each request to the model
    result = run.call(name, arguments)  # for each call that the model makes

Each step requests tools and policy again. Every call has a result that the model can read, also a refused one. On an
event loop, use ``astep`` and ``acall``.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from toolbelt import formats
from toolbelt.adapters import runs
from toolbelt.adapters.connection import conversation, protocol
from toolbelt.adapters.connection import local_tools as local
from toolbelt.core import errors
from toolbelt.formats.appending import lines

Function = Callable[..., Any]
_F = TypeVar("_F", bound=Function)
# The attribute of a decorated function that has its tool.
_TOOL = "toolbelt_tool"

# Where each format has the system prompt.
_SYSTEM = ("messages", "system", "instructions", "system_instruction")


def tool(
    input_schema: Mapping[str, Any] | None = None, *, name: str = "", description: str = ""
) -> Callable[[_F], _F]:
    """Decorate a function as a tool for ``local_tools``. The function itself stays as it is.

    ``input_schema`` is the JSON Schema of its arguments: none by default. The name and the description are the
    function's and its docstring's by default.
    """

    def decorate(function: _F) -> _F:
        local_tool = local.LocalTool(
            name=name or function.__name__,
            description=description or inspect.getdoc(function) or "",
            input_schema=input_schema or {},
            native=function,
        )
        setattr(function, _TOOL, local_tool)
        return function

    return decorate


def tools(
    definitions: Iterable[Mapping[str, Any]], functions: Mapping[str, Function] | Iterable[Function]
) -> list[local.LocalTool]:
    """Return the program's tools from the definitions that it sends to its model, and the functions that run them.

    Definitions may be in the form of OpenAI's Chat Completions or Responses, Anthropic's Messages, or MCP. Functions
    are found by their names.
    """
    by_name = (
        functions
        if isinstance(functions, Mapping)
        else {function.__name__: function for function in functions}
    )
    return [_tool(definition, by_name) for definition in definitions]


class Toolbelt:
    """The tools that an agent of a program is granted, including the program's own.

    connection: The agent's connection, over HTTP or in process. On an event loop, its methods that begin with ``a`` are
        used.
    local_tools: The tools that the program runs, from :func:`tools`, or functions decorated with :func:`tool`.
    plugin, offline, stale_seconds: See local_tools.LocalTools.
    subagent: The kind of subagent to ask for.
    loads: When loaded tools become available: from the next "step" of the run, or from the next "run".
    model: The name of the model, which decides how a directive reaches it; by default, the one stored for the agent.
    """

    def __init__(
        self,
        connection: protocol.Connection,
        *,
        local_tools: Iterable[local.LocalTool | Function] = (),
        plugin: str = "",
        offline: local.Offline = "refuse",
        stale_seconds: float = local.STALE_SECONDS,
        subagent: str | None = None,
        loads: protocol.Loads = "step",
        model: str = "",
    ) -> None:
        self._local = local.LocalTools(
            connection,
            map(_local_tool, local_tools),
            plugin=plugin,
            offline=offline,
            stale_seconds=stale_seconds,
        )
        self._subagent, self._loads, self._model = subagent, loads, model

    def begin(self, message: str | None = None, session: str | None = None) -> Run:
        """Begin a run: the answer to one message of the user in a session. Without a session, nothing can be loaded."""
        run = protocol.Run.begin(session, self._subagent)
        return Run(self._local, run, message, self._loads, self._model)

    def conversation(
        self,
        form: str,
        *,
        model: str = "",
        platform: lines.Platform = "api",
        system: str = "",
        state: Mapping[str, Any] | None = None,
    ) -> Conversation:
        """Return a conversation that no operator's change breaks: what changes is appended to it.

        form: The format of the provider. model: The name of the model; by default, this object's. platform: Where one
        of Anthropic's models runs. system: The program's own system prompt. state: What the conversation's ``state``
        was, to continue it.
        """
        kept = conversation.Conversation(
            form, model=model or self._model, platform=platform, system=system, state=state
        )
        return Conversation(self._local, kept, self._subagent, self._loads)


class Conversation:
    """A conversation with models of one format. Store its ``state`` with the program's own messages."""

    def __init__(
        self,
        tools: local.LocalTools,
        kept: conversation.Conversation,
        subagent: str | None,
        loads: protocol.Loads,
    ) -> None:
        self._local, self._kept, self._subagent, self._loads = tools, kept, subagent, loads

    @property
    def state(self) -> dict[str, Any]:
        """Return the state as JSON. It changes when a step is ``answered``; a copy of it is a fork."""
        return self._kept.state

    def begin(self, message: str | None = None, session: str | None = None) -> ConversationRun:
        """Begin a run: the answer to one message of the user in a session. Without a session, nothing can be loaded."""
        run = protocol.Run.begin(session, self._subagent)
        return ConversationRun(self._local, run, message, self._loads, self._kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The content of one request to the model.

    ``parameters`` are the tools and the choice among them, as keyword arguments of the provider's SDK. ``messages``, in
    the provider's form, state the focus of a first step: send them after the user's message, and keep them there with
    the model's answer, because thinking and caches are bound to everything before them. ``is_stale``: Toolbelt could
    not be reached, and this is the last known surface.
    """

    parameters: Mapping[str, Any]
    policy: str
    is_stale: bool
    messages: tuple[Mapping[str, Any], ...] = ()

    def system(self, text: str = "") -> str:
        """Return the program's own system prompt, followed by the policy."""
        return runs.append_policy(text, self.policy)


class Run:
    """One run of the agent, which consists of steps."""

    def __init__(
        self,
        tools: local.LocalTools,
        run: protocol.Run,
        message: str | None,
        loads: protocol.Loads,
        model: str = "",
    ) -> None:
        self._local, self._run, self._message, self._loads = tools, run, message, loads
        self._model = model
        self._step_number = 0

    def step(self, form: str) -> Step:
        """Begin a step: return what the next request to the model contains, in a format of Toolbelt's, by its name."""
        message = self._next()
        return _step(form, self._local.blocking_surface(self._current, message=message), self._model)

    async def astep(self, form: str) -> Step:
        """Begin a step, on an event loop."""
        message = self._next()
        return _step(form, await self._local.surface(self._current, message=message), self._model)

    def call(self, name: str, arguments: str | Mapping[str, Any]) -> runs.CallResult:
        """Return the result of a call of the model's. Arguments may be JSON."""
        try:
            args = runs.arguments(arguments) if isinstance(arguments, str) else dict(arguments)
            called, given = self._meant(name, args)
            tool = self._local.blocking_find(called)
            if tool is None:
                connection = self._local.connection.blocking()
                return runs.blocking_call(connection, self._current, name, args, **self._spoken())
            with self._local.admitted(self._current, called, given, **self._spoken()) as call:
                result = _blocking(tool.native, given)
                return _result(call.result(result))
        except Exception as error:
            return _failure(error)

    async def acall(self, name: str, arguments: str | Mapping[str, Any]) -> runs.CallResult:
        """Return the result of a call of the model's, on an event loop; plain functions run in a thread."""
        try:
            args = runs.arguments(arguments) if isinstance(arguments, str) else dict(arguments)
            called, given = self._meant(name, args)
            tool = await self._local.find(called)
            if tool is None:
                return await runs.call(self._local.connection, self._current, name, args, **self._spoken())
            async with self._local.admitted(self._current, called, given, **self._spoken()) as call:
                result = await _awaited(tool.native, given)
                return _result(call.result(result))
        except Exception as error:
            return _failure(error)

    def check(self, name: str, arguments: str | Mapping[str, Any]) -> protocol.Document:
        """Return what would happen to a call: ``would`` is run, wait, refuse or unknown. Nothing runs or is recorded.

        Raise errors.ToolbeltError if there is no answer.
        """
        args = runs.arguments(arguments) if isinstance(arguments, str) else dict(arguments)
        called, given = self._meant(name, args)
        checked = (called, given) if self._local.blocking_find(called) else (name, args)
        return self._local.blocking_check(self._current, *checked, **self._spoken())

    async def acheck(self, name: str, arguments: str | Mapping[str, Any]) -> protocol.Document:
        """Return what would happen to a call, on an event loop."""
        args = runs.arguments(arguments) if isinstance(arguments, str) else dict(arguments)
        called, given = self._meant(name, args)
        checked = (called, given) if await self._local.find(called) else (name, args)
        return await self._local.check(self._current, *checked, **self._spoken())

    def _spoken(self) -> dict[str, str]:
        """Return what a call says about its conversation."""
        return {}

    def _meant(self, name: str, args: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """Return the tool and the arguments that a call means."""
        return name, args

    @property
    def _current(self) -> protocol.Run:
        return self._run.at(self._step_number, self._loads)

    def _next(self) -> str | None:
        """Count a step. Return the user's message in the first one."""
        self._step_number += 1
        return self._message if self._step_number == 1 else None


class ConversationRun(Run):
    """One run of the agent in a conversation."""

    def __init__(
        self,
        tools: local.LocalTools,
        run: protocol.Run,
        message: str | None,
        loads: protocol.Loads,
        kept: conversation.Conversation,
    ) -> None:
        super().__init__(tools, run, message, loads, kept.model)
        self._kept = kept

    def ask(self, messages: Sequence[Any], **more: bool) -> ConversationStep:
        """Return the next request to the model, for the program's own ``messages``, in the provider's form.

        ``compacted``: the provider has compacted the conversation since the last answer. ``hold``: the model's turn is
        only paused. Asking again before the model has answered leaves no trace.
        """
        question = self._question(messages, more)
        return self._answer(messages, self._local.blocking_surface(self._next_run, **question))

    async def aask(self, messages: Sequence[Any], **more: bool) -> ConversationStep:
        """Return the next request to the model, on an event loop."""
        question = self._question(messages, more)
        return self._answer(messages, await self._local.surface(self._next_run, **question))

    def _spoken(self) -> dict[str, str]:
        token = self._kept.token
        return {"conversation": token} if token else {}

    def _meant(self, name: str, args: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        return conversation.dispatched(name, args)

    @property
    def _next_run(self) -> protocol.Run:
        return self._run.at(self._step_number + 1, self._loads)

    def _question(self, messages: Sequence[Any], more: Mapping[str, bool]) -> dict[str, Any]:
        return {
            "message": self._message if self._step_number == 0 else None,
            "form": self._kept.form,
            "model": self._kept.model or None,
            "conversation": self._kept.question(messages, **more),
        }

    def _answer(self, messages: Sequence[Any], document: protocol.Document) -> ConversationStep:
        return ConversationStep(self, self._kept.request(messages, document.get("append")))

    def _answered(self) -> None:
        self._step_number += 1


class ConversationStep:
    """One request to the model.

    ``parameters`` are the keyword arguments of the provider's SDK, except for the model: the system prompt, the tools
    and the messages, with what the model was told between them. ``restart`` says why the conversation begins again, if
    it does.
    """

    def __init__(self, run: ConversationRun, request: conversation.Request) -> None:
        self._run, self._request = run, request
        self.parameters: Mapping[str, Any] = request.parameters
        self.restart = request.restart

    def answered(self) -> None:
        """Keep what the model was told. Call it once the model has answered, before its calls are run."""
        self._request.answered()
        self._run._answered()


def _local_tool(candidate: local.LocalTool | Function) -> local.LocalTool:
    local_tool = candidate if isinstance(candidate, local.LocalTool) else getattr(candidate, _TOOL, None)
    if local_tool is None:
        raise TypeError(
            f"{candidate!r} is not a tool: decorate it with @plain.tool(...), or pass plain.tools(...)."
        )
    return local_tool


def _tool(definition: Mapping[str, Any], functions: Mapping[str, Function]) -> local.LocalTool:
    fields = definition.get("function", definition)
    name = fields["name"]
    if name not in functions:
        raise ValueError(f"There is no function for the tool {name!r}.")
    schema: Mapping[str, Any] = next(
        (fields[key] for key in ("parameters", "input_schema", "inputSchema") if fields.get(key)), {}
    )
    return local.LocalTool(
        name=name,
        description=fields.get("description") or "",
        input_schema=schema,
        native=functions[name],
    )


def _step(form: str, document: protocol.Document, model: str) -> Step:
    rendered = formats.render(form, document, model=model or document.get("model", ""))
    first_step = rendered.pop("first_step", {})
    parts = [rendered.pop(name) for name in _SYSTEM if name in rendered]
    said = first_step.pop("messages", ())
    return Step(
        parameters=rendered | first_step,
        policy="\n\n".join(_texts(parts)),
        is_stale=bool(document.get("stale")),
        messages=tuple(said),
    )


def _texts(content: Any) -> list[str]:
    """Return the texts of a system prompt, in whichever form a provider has it."""
    if isinstance(content, str):
        return [content]
    if isinstance(content, Mapping):
        return [
            text for key in ("content", "text", "parts") if key in content for text in _texts(content[key])
        ]
    return [text for item in content for text in _texts(item)]


def _blocking(function: Function, args: Mapping[str, Any]) -> Any:
    result = function(**args)
    if inspect.isawaitable(result):
        return asyncio.run(_wait(result))
    return result


async def _awaited(function: Function, args: Mapping[str, Any]) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(**args)
    result = await asyncio.to_thread(function, **args)
    return await result if inspect.isawaitable(result) else result


async def _wait(result: Awaitable[Any]) -> Any:
    return await result


def _result(value: Any) -> runs.CallResult:
    # What is not JSON, such as a date, becomes text.
    plain = json.loads(json.dumps(value, default=str))
    return runs.CallResult(is_error=False, content=plain if isinstance(plain, dict) else {"result": plain})


def _failure(error: Exception) -> runs.CallResult:
    """Return the outcome of a failed call, for the model: a refusal, or the tool's own exception."""
    if isinstance(error, local.NotAdmittedError):
        return runs.read(error.document)
    if isinstance(error, errors.ToolbeltError):
        return runs.failure(error)
    message = str(error) or type(error).__name__
    return runs.CallResult(is_error=True, content={"code": "tool-failed", "message": message})
