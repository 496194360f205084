"""An agent class for the OpenAI Agents SDK. (pip install 'toolbelt-switchboard[openai-agents]')

::

    from agents import Runner
    from toolbelt.adapters import openai_agents
    from toolbelt.adapters.connection import http

    toolbelt = http.Http("https://toolbelt.example", "assistant", token)
    agent = openai_agents.Agent(name="Assistant", toolbelt=toolbelt, session="s1")
    await Runner.run(agent, "What is 2 + 3?", run_config=openai_agents.run_config())

In all other respects it is the SDK's agent, with the program's own tools, instructions, handoffs and guardrails. Each
turn requests tools and policy again. With ``run_config``, a run continues if the model calls a tool that it was not
given, which the SDK otherwise treats as an error.

``Toolbelt`` is a connection with tools that the program itself runs, once Toolbelt grants and admits them::

    toolbelt = openai_agents.Toolbelt(connection, local_tools=[refund], plugin="shop")

With a ``Conversation``, the tools and the policy of its first turn stay, and what an operator or the model changes is
said in the conversation; tools that are added are called through ``call_tool``. It needs ``run_config``, and the whole
history in the program or in a session of the SDK::

    conversation = openai_agents.Conversation(state)
    agent = openai_agents.Agent(name="Assistant", toolbelt=toolbelt, session="s1", conversation=conversation)
    await Runner.run(agent, "What is 2 + 3?", session=history, run_config=openai_agents.run_config())
    state = conversation.state
"""

from __future__ import annotations

import contextvars
import copy
import dataclasses
import inspect
import json
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import agents
from agents import run_config as sdk_runs
from agents import tool as sdk_tools

from toolbelt.adapters import runs
from toolbelt.adapters.connection import conversation, protocol
from toolbelt.adapters.connection import local_tools as local
from toolbelt.core import errors
from toolbelt.formats import openai_chat, openai_responses, profiles, surface

Context: TypeAlias = agents.RunContextWrapper[Any]


@dataclass
class _Run:
    """A run, and the step of its current turn; ``turn`` counts from 1."""

    run: protocol.Run
    turn: int
    step: runs.Step
    talk: _Talk | None = None


@dataclass(frozen=True)
class _Turn:
    """The turn that the SDK is preparing, after so many ``requests`` to the model."""

    context: weakref.ref[Context]
    requests: int
    choice: Any


@dataclass
class Conversation:
    """What the model of a conversation was told.

    ``state`` is JSON, None for a new conversation. Store it with the history, and restore both together; a copy is a
    fork. It changes when a request is sent, and what was said in a request that the history has no answer to is said
    again.
    """

    state: Mapping[str, Any] | None = None


class _Talk:
    """A request in a conversation: what is asked of Toolbelt, and what its answer changes."""

    def __init__(self, agent: Agent, place: Conversation) -> None:
        self.agent, self._place = weakref.ref(agent), place
        # Only an object says which of OpenAI's APIs will be asked; others are told everything in words.
        self._model = agent.model if isinstance(agent.model, _OPENAI_MODELS) else None
        self._is_responses = isinstance(agent.model, agents.OpenAIResponsesModel)
        form = "vercel" if self._model is None else "openai_chat"
        self._kept = conversation.Conversation(form, model=_model_name(self._model), state=place.state)
        self._append: Mapping[str, Any] | None = None
        self._has_focus = self.is_sent = False

    def question(self, history: Sequence[Any] | None) -> dict[str, Any]:
        """Return what to ask beside the surface. ``history`` is None in the middle of a run."""
        asked = self._kept.question(history)
        return {"form": self._kept.form, "model": self._kept.model, "conversation": asked}

    def step(self, document: protocol.Document) -> runs.Step:
        """Return the step, whose tools and policy are those of the conversation's first turn."""
        self._append, self._has_focus = document.get("append"), document.get("directive") is not None
        prefix = self._append["prefix"] if self._append else None
        tools, policy = conversation.declared(self._kept.prefix if prefix is None else prefix)
        return runs.Step(tools=tools, policy=policy)

    @property
    def spoken(self) -> dict[str, str]:
        """Return what a call says about its conversation: the token of the request that the model answered."""
        token = self._append["token"] if self._append else self._kept.token
        return {"conversation": token} if token else {}

    def choice(self, own_tools: Sequence[agents.Tool], handoffs: Sequence[Any]) -> Any:
        """Return the tool choice of this turn; None for any.

        A restriction to what is granted includes the program's own tools. Where it cannot name them all, there is none:
        the model was told what it may no longer call, and Toolbelt refuses that.
        """
        chosen = self._append["request"].get("tool_choice") if self._append else None
        if not isinstance(chosen, Mapping):
            return chosen
        if chosen["type"] == "function":
            return chosen["function"]["name"]
        names = [tool["function"]["name"] for tool in chosen["allowed_tools"]["tools"]]
        if not self._has_focus:
            if handoffs or not all(isinstance(tool, agents.FunctionTool) for tool in own_tools):
                return None
            names += [tool.name for tool in own_tools]
        first = surface.FirstStep(
            names=tuple(names), narrows=True, required=chosen["allowed_tools"]["mode"] == "required"
        )
        return openai_responses.allowed(first) if self._is_responses else openai_chat.allowed(first)

    def input(self, items: Sequence[Any]) -> list[Any]:
        """Return the input of the request, with what the model was told between its items."""
        request = self._kept.request(items, self._append)
        request.sent()
        self._place.state, self.is_sent = self._kept.state, True
        return request.messages


_OPENAI_MODELS = (agents.OpenAIResponsesModel, agents.OpenAIChatCompletionsModel)

_turn: contextvars.ContextVar[_Turn | None] = contextvars.ContextVar("toolbelt_turn", default=None)
_talk: contextvars.ContextVar[_Talk | None] = contextvars.ContextVar("toolbelt_talk", default=None)
# The call of a tool of the program's that is running here.
_running: contextvars.ContextVar[local.Admitted | None] = contextvars.ContextVar(
    "toolbelt_call", default=None
)


class Toolbelt(local.LocalTools):
    """A connection for agents with tools that the program itself runs: the SDK's function tools, or functions.

    plugin, offline, stale_seconds: See local_tools.LocalTools.
    approvals: With "pause", a call that people have to approve first is among the run's ``interruptions``.
    """

    def __init__(
        self,
        connection: protocol.Connection,
        *,
        local_tools: Iterable[agents.FunctionTool | Callable[..., Any]] = (),
        plugin: str = "",
        offline: local.Offline = "refuse",
        stale_seconds: float = local.STALE_SECONDS,
        approvals: local.Approvals = "tell",
    ) -> None:
        super().__init__(
            connection,
            map(_local_tool, local_tools),
            plugin=plugin,
            offline=offline,
            stale_seconds=stale_seconds,
            approvals=approvals,
        )


@dataclass
class Agent(agents.Agent[Any]):
    """An agent with everything that Toolbelt grants it.

    toolbelt: The agent's connection, over HTTP or in process, or a Toolbelt with tools of the program's.
    session: The id of the conversation, or a function that returns it. Without one, nothing can be loaded.
    subagent: The kind of subagent to ask for.
    loads: When loaded tools become available: from the next "step" (turn) of the run, or from the next "run".
    conversation: What the model was told so far, or a function that returns it: changes are said to it from then on.
        Without one, each turn has the tools and the policy of then.
    """

    toolbelt: protocol.Connection | Toolbelt | None = field(default=None, kw_only=True)
    session: str | Callable[[Context], str | None] | None = field(default=None, kw_only=True)
    subagent: str | None = field(default=None, kw_only=True)
    loads: protocol.Loads = field(default="step", kw_only=True)
    conversation: Conversation | Callable[[Context], Conversation | None] | None = field(
        default=None, kw_only=True
    )
    _runs: weakref.WeakKeyDictionary[Context, _Run] = field(
        default_factory=weakref.WeakKeyDictionary, init=False, repr=False, compare=False
    )

    async def get_all_tools(self, run_context: Context) -> list[agents.Tool]:
        """Return the program's own tools and the tools of this turn."""
        own_tools: list[agents.Tool] = await super().get_all_tools(run_context)
        if self.toolbelt is None:
            return own_tools
        local_tools = _as_local_tools(self.toolbelt)
        running = await self._fetch(local_tools, run_context)
        step = runs.check_names(running.step, (tool.name for tool in own_tools))
        _turn.set(None)
        talk = running.talk
        _talk.set(talk)
        choice = talk.choice(own_tools, self.handoffs) if talk else _choice(self.model, step)
        if choice is not None and self.model_settings.tool_choice is None:
            _turn.set(_Turn(weakref.ref(run_context), run_context.usage.requests, choice))
        run = running.run.at(running.turn, self.loads)
        return [*own_tools, *[await _tool(local_tools, run, tool, talk) for tool in step.tools]]

    async def get_system_prompt(self, run_context: Context) -> str | None:
        """Return the instructions, followed by the policy."""
        instructions: str | None = await super().get_system_prompt(run_context)
        if self.toolbelt is None:
            return instructions
        running = self._runs.get(run_context) or await self._fetch(
            _as_local_tools(self.toolbelt), run_context
        )
        return runs.append_policy(instructions, running.step.policy) or None

    async def _fetch(self, local_tools: local.LocalTools, context: Context) -> _Run:
        previous = self._runs.get(context)
        if previous:
            run, turn, message = previous.run, previous.turn + 1, None
            if previous.talk and not previous.talk.is_sent:
                raise agents.UserError(
                    "An agent with a conversation needs run_config=openai_agents.run_config(), whose filter adds to the"
                    " model's input what has changed."
                )
        else:
            session = self.session(context) if callable(self.session) else self.session
            run, turn = protocol.Run.begin(session, self.subagent), 1
            message = _message(context.turn_input)
        place = self.conversation(context) if callable(self.conversation) else self.conversation
        talk = _Talk(self, place) if place is not None else None
        # A run that is resumed begins with the results of the calls that the model made before.
        history = context.turn_input if previous is None and context.usage.requests == 0 else None
        question = talk.question(history) if talk else {}
        document = await local_tools.surface(run.at(turn, self.loads), message=message, **question)
        step = talk.step(document) if talk else runs.step(document)
        self._runs[context] = running = _Run(run, turn, step, talk)
        return running


def _settings(agent: Agent) -> agents.ModelSettings:
    """Return the agent's settings with the tool choice of this turn. The SDK reads them once per turn."""
    settings: agents.ModelSettings = agent.__dict__["model_settings"]
    turn = _turn.get()
    context = turn.context() if turn else None
    if turn and context and context in agent._runs and context.usage.requests == turn.requests:
        if isinstance(turn.choice, str):
            return dataclasses.replace(settings, tool_choice=turn.choice)
        # The SDK has no form for a choice among some of the tools.
        body = {**(settings.extra_body or {}), "tool_choice": turn.choice}
        return dataclasses.replace(settings, extra_body=body)
    return settings


def _set_settings(agent: Agent, settings: agents.ModelSettings) -> None:
    agent.__dict__["model_settings"] = settings


# Outside of the class body, where it would become the field's default.
Agent.model_settings = property(_settings, _set_settings)  # type: ignore[assignment]


def _choice(model: Any, step: runs.Step) -> Any:
    """Return the tool choice of a first step: the name of a tool, "required", or some of the tools; None for any.

    Only OpenAI's models have one. The SDK has no place where a text would stay in the conversation, and a model such as
    Claude must find there later what it read before: so others get no text.
    """
    first = step.first
    profile = profiles.of(_model_name(model), "openai_responses")
    if first is None or not profile.allowed_tools:
        return None
    if first.narrows and not first.only_tool:
        # Only an object says which of OpenAI's APIs will be asked.
        if isinstance(model, agents.OpenAIResponsesModel):
            return openai_responses.allowed(first)
        if isinstance(model, agents.OpenAIChatCompletionsModel):
            return openai_chat.allowed(first)
    return (first.only_tool or "required") if first.required else None


def _model_name(model: Any) -> str:
    name = model if isinstance(model, str) else getattr(model, "model", "")
    return name if isinstance(name, str) else ""


def run_config(**more: Any) -> agents.RunConfig:
    """Return the configuration of a run that continues if the model calls a tool that it was not given.

    It also adds to the model's input what is said in a conversation, after the program's own filter of the input. more:
    Further arguments of agents.RunConfig.
    """
    more.setdefault("tool_not_found_behavior", "return_error_to_model")
    more.setdefault("tool_error_formatter", _format_error)
    more["call_model_input_filter"] = _filter(more.get("call_model_input_filter"))
    return agents.RunConfig(**more)


def _filter(own_filter: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    async def filtered(data: sdk_runs.CallModelData[Any]) -> sdk_runs.ModelInputData:
        prepared = own_filter(data) if own_filter else data.model_data
        model_data: sdk_runs.ModelInputData = await prepared if inspect.isawaitable(prepared) else prepared
        talk = _talk.get()
        if talk is None or talk.agent() is not data.agent:
            return model_data
        return dataclasses.replace(model_data, input=talk.input(model_data.input))

    return filtered


def _format_error(error: Any) -> str | None:
    if error.kind != "tool_not_found":
        return None
    later = (
        "Tools that become available later are called through call_tool."
        if _talk.get()
        else "Tools that you load can be called from the next request."
    )
    return (
        f"unknown-tool: You have no tool named {error.tool_name!r} in this request. {later} Tools that you are not "
        "granted cannot be called."
    )


def _as_local_tools(toolbelt: protocol.Connection | Toolbelt) -> local.LocalTools:
    return toolbelt if isinstance(toolbelt, local.LocalTools) else local.LocalTools(toolbelt)


async def _tool(
    local_tools: local.LocalTools, run: protocol.Run, tool: Any, talk: _Talk | None
) -> agents.FunctionTool:
    name, schema = str(tool["name"]), dict(tool["input_schema"])
    local_tool = await local_tools.find(name)
    native = _native(local_tool)
    spoken = talk.spoken if talk else {}

    async def find(arguments: Any) -> tuple[str, Any, agents.FunctionTool | None]:
        """Return the tool and the arguments that a call means, and what runs it if the program does."""
        called, given = conversation.dispatched(name, arguments) if talk else (name, arguments)
        return called, given, native if called == name else _native(await local_tools.find(called))

    async def needs_approval(context: Any, arguments: dict[str, Any], call_id: str) -> bool:
        called, given, meant = await find(arguments)
        asked_about = (called, given) if meant else (name, arguments)
        question = await local_tools.waiting(run, *asked_about, **spoken)
        own = meant.needs_approval if meant else False
        return question is not None or (await own(context, given, call_id) if callable(own) else own)

    async def invoke(context: Any, args: str) -> Any:
        try:
            arguments = runs.arguments(args)
        except errors.Invalid as error:
            return runs.failure(error).text
        called, given, meant = await find(arguments)
        if meant is None:
            return (await runs.call(local_tools.connection, run, name, arguments, **spoken)).text
        try:
            async with local_tools.admitted(run, called, given, **spoken) as call:
                token = _running.set(call)
                try:
                    own_args = args if called == name else json.dumps(given)
                    return call.result(await meant.on_invoke_tool(context, own_args))
                finally:
                    _running.reset(token)
        except local.NotAdmittedError as error:
            return runs.read(error.document).text

    fields: dict[str, Any] = {
        "name": name,
        "description": surface.description(tool).get("description", ""),
        "params_json_schema": schema,
        "on_invoke_tool": invoke,
        **({"needs_approval": needs_approval} if local_tools.has_pauses else {}),
    }
    if native is None:
        return agents.FunctionTool(**fields, strict_json_schema=False)
    is_strict = native.strict_json_schema and schema == native.params_json_schema
    return dataclasses.replace(native, **fields, strict_json_schema=is_strict)


def _native(tool: local.LocalTool | None) -> agents.FunctionTool | None:
    return tool.native if tool else None


def _local_tool(tool: agents.FunctionTool | Callable[..., Any]) -> local.LocalTool:
    native = tool if isinstance(tool, agents.FunctionTool) else agents.function_tool(tool)
    return local.LocalTool(
        name=native.name,
        description=native.description,
        input_schema=native.params_json_schema,
        native=_reporting_failures(native),
    )


def _reporting_failures(tool: agents.FunctionTool) -> agents.FunctionTool:
    """Return a copy of the tool that notes an exception which the SDK turns into text for the model."""
    describe = sdk_tools.resolve_function_tool_failure_error_function(tool)
    if describe is None:
        return tool

    async def note(context: Any, error: Exception) -> str:
        if call := _running.get():
            call.failed(f"{type(error).__name__}: {error}")
        text = describe(context, error)
        return str(await text if inspect.isawaitable(text) else text)

    return sdk_tools.set_function_tool_failure_error_function(copy.copy(tool), note)


def _message(turn_input: Any) -> str | None:
    """Return the user's last message in a turn's input."""
    for item in reversed(turn_input):
        if isinstance(item, dict) and item.get("role") == "user":
            content = item.get("content")
            parts = [content] if isinstance(content, str) else content or ()
            texts = (part if isinstance(part, str) else part.get("text") for part in parts)
            return "\n".join(text for text in texts if isinstance(text, str)) or None
    return None
