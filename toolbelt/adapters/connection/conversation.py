"""The state of a conversation that a program keeps: what its model was told, and where.

A program keeps its own messages as before. What Toolbelt adds is kept here, by the number of the model's answers before
it, and inserted into every request at the same place. The state is JSON, and changes only once a model has answered: a
request that failed leaves no trace, and a copy of the state is a fork.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolbelt.adapters.connection import protocol
from toolbelt.core import errors, keys
from toolbelt.formats.appending import lines

VERSION = 1
# The messages of the program, in the provider's form: JSON, or the objects of the provider's SDK.
Messages = Sequence[Any]

_NOT_FROM_MODELS = frozenset({"user", "system", "developer", "tool", "function"})
_OF_PROGRAMS = frozenset({"additional_tools", "mcp_approval_response"})
_THINKING = frozenset({"thinking", "redacted_thinking"})
# Stands for everything before it, where a provider compacted a conversation.
_COMPACTION = "compaction"
_CUT = {
    "code": "cut",
    "message": "Answers of the model are gone from the messages. The conversation begins again, without thinking.",
}


# What is said to a conversation while Toolbelt cannot be reached.
_NOTHING: Mapping[str, Any] = {
    "prefix": None,
    "messages": [],
    "request": {},
    "restart": None,
}


class Conversation:
    """A conversation of one program with models of one format.

    ``state`` is what :attr:`state` returned before; None: the conversation is new. A conversation may move between
    models: each line of models has a prefix of its own, and continues it when the conversation comes back.
    """

    def __init__(
        self,
        form: str,
        *,
        model: str = "",
        platform: lines.Platform = "api",
        system: str = "",
        state: Mapping[str, Any] | None = None,
    ) -> None:
        self.form, self.model, self.platform, self._system = form, model, platform, system
        if state is not None and state.get("v") != VERSION:
            message = f"is of version {state.get('v')!r}, not {VERSION}. Begin a new conversation."
            raise errors.Invalid([errors.Problem(path="state", message=message)])
        self._lines: dict[str, dict[str, Any]] = copy.deepcopy(dict(state["lines"])) if state else {}
        # The line of each model, as Toolbelt named it.
        self._named: dict[str, str] = dict(state["models"]) if state else {}
        # The last request, while nothing says whether it was answered.
        self._sent: Mapping[str, Any] | None = state.get("sent") if state else None
        self._is_compacted = False

    @property
    def state(self) -> dict[str, Any]:
        """Return the state as JSON, to be stored with the program's own messages."""
        state = {"v": VERSION, "models": dict(self._named), "lines": copy.deepcopy(self._lines)}
        return state | ({"sent": dict(self._sent)} if self._sent else {})

    @property
    def prefix(self) -> Mapping[str, Any]:
        """Return the prefix of the model's line, as Toolbelt rendered it; empty if it has none."""
        prefix: Mapping[str, Any] = self._line.get("prefix", {})
        return prefix

    @property
    def token(self) -> str:
        """Return the token of the last request that was answered; empty if there is none."""
        token: str = self._line.get("token", "")
        return token

    def question(
        self, messages: Messages | None, *, compacted: bool = False, hold: bool = False
    ) -> dict[str, Any]:
        """Return the ``conversation`` of the next request for a surface. ``messages`` are the program's own.

        If some that were answered are gone, the conversation begins again. ``messages`` are None in the middle of a
        run: the last request was answered, and everything is there. A compaction by the provider is recognized in the
        messages; say so if they do not show it (``compacted``).
        """
        number = math.inf if messages is None else len(_beginnings(messages))
        if self._sent and self._sent["number"] < number:
            self._keep(self._sent)
        self._sent, line = None, self._line
        self._is_compacted = compacted
        compacted = compacted or line.get("compacted", False)
        compacted = compacted or _compactions(messages or ()) > line.get("compactions", 0)
        fields: dict[str, Any] = {"token": None if self._is_cut(number) else line.get("token")}
        if self.platform != "api":
            fields["platform"] = self.platform
        return fields | ({"compacted": True} if compacted else {}) | ({"hold": True} if hold else {})

    def request(self, messages: Messages, append: Mapping[str, Any] | None) -> Request:
        """Return the next request to the model. ``messages`` are the program's own, ``append`` is the surface's.

        ``append`` is None if Toolbelt could not be reached: nothing is said then. Raise protocol.Unreachable if the
        conversation has no prefix either.
        """
        if append is None:
            if not self._line:
                raise protocol.Unreachable("Toolbelt could not be reached to begin this conversation.")
            kept = self._line
            nothing = {**_NOTHING, "line": self._key, "token": kept["token"], "headers": kept["headers"]}
            return Request(self, messages, nothing, is_offline=True)
        return Request(self, messages, append)

    def _after(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """Return the line of a request, as it is once the request is answered."""
        before, number = self._lines.get(sent["line"], {}), sent["number"]
        if sent["prefix"] is not None:
            before = {"prefix": sent["prefix"], "appended": [], "answers": []}
        added = [{"before_answer": number, "messages": sent["messages"]}] if sent["messages"] else []
        return {
            **before,
            "token": sent["token"],
            "headers": sent["headers"],
            "appended": [*before["appended"], *added],
            # The numbers of the answers of this line's models: the thinking of all others belongs to other prefixes.
            "answers": [*before["answers"], *({number} - {*before["answers"]})],
            # Those that Toolbelt was told of.
            "compactions": before.get("compactions", 0) if sent.get("is_offline") else sent["compactions"],
        }

    def _keep(self, sent: Mapping[str, Any]) -> None:
        self._lines[sent["line"]] = self._after(sent)
        for name, line in self._lines.items():
            # Each line's models must be told again, once the conversation comes back to them.
            is_compacted = line.pop("compacted", False) or sent.get("compacted", False)
            if is_compacted and (name != sent["line"] or sent.get("is_offline")):
                line["compacted"] = True
        self._named[sent["place"]] = sent["line"]

    def _is_cut(self, number: float) -> bool:
        """Return whether answers are gone that the conversation had, of which there are now so many."""
        line = self._line
        is_whole = all(entry["before_answer"] <= number for entry in line.get("appended", ()))
        return not (is_whole and all(answer < number for answer in line.get("answers", ())))

    @property
    def _line(self) -> dict[str, Any]:
        return self._lines.get(self._key, {})

    @property
    def _key(self) -> str:
        named = self._named.get(self._place)
        return named or lines.of(self.form, self.model, self.platform).key

    @property
    def _place(self) -> str:
        return f"{self.platform}/{self.model}"

    def _with_system(self, prefix: Mapping[str, Any]) -> dict[str, Any]:
        """Return the prefix of a new line, with the program's own system text first."""
        if not self._system:
            return dict(prefix)
        match self.form:
            case "anthropic":
                own: list[Any] = [{"type": "text", "text": self._system}]
                return {**prefix, "system": own + prefix.get("system", [])}
            case "bedrock":
                own = [{"text": self._system}]
                return {**prefix, "system": own + prefix.get("system", [])}
            case "gemini":
                own = [{"text": self._system}]
                parts = prefix.get("system_instruction", {}).get("parts", [])
                return {**prefix, "system_instruction": {"parts": own + parts}}
            case "openai_chat" | "mistral":
                # Some providers take one system message only.
                policy = "".join(message["content"] for message in prefix.get("messages", ()))
                return {**prefix, "messages": [{"role": "system", "content": self._text(policy)}]}
        return {**prefix, "instructions": self._text(prefix.get("instructions", ""))}

    def _text(self, policy: str) -> str:
        return f"{self._system}\n\n{policy}" if policy else self._system


class Request:
    """One request to a model. Keep it with :meth:`answered` once the model has answered."""

    def __init__(
        self,
        conversation: Conversation,
        messages: Messages,
        append: Mapping[str, Any],
        *,
        is_offline: bool = False,
    ) -> None:
        self._conversation, self._append = conversation, append
        prefix, number = append["prefix"], len(_beginnings(messages))
        # The answer to a paused turn continues the last one.
        is_continued = bool(messages) and _is_from_model(messages[-1]) and not append["messages"]
        self._restart = append["restart"]
        if prefix is not None and conversation._lines.get(append["line"]):
            self._restart = self._restart or _CUT
        self._sent = {
            "place": conversation._place,
            "line": append["line"],
            "number": number - is_continued,
            "compacted": conversation._is_compacted,
            "is_offline": is_offline,
            "token": append["token"],
            "headers": dict(append["headers"]),
            "prefix": None if prefix is None else conversation._with_system(prefix),
            "messages": list(append["messages"]),
            "compactions": _compactions(messages),
        }
        self._line = conversation._after(self._sent)
        self._messages = messages

    @property
    def restart(self) -> Mapping[str, Any] | None:
        """Return why the conversation begins again with a new prefix, if it does: a code and a message."""
        restart: Mapping[str, Any] | None = self._restart
        return restart

    @property
    def messages(self) -> list[Any]:
        """Return the messages of the request: the program's own, with what the model was told between them."""
        said: dict[int, list[Any]] = {}
        for entry in self._line["appended"]:
            said.setdefault(entry["before_answer"], []).extend(entry["messages"])
        beginnings = _beginnings(self._messages)
        result: list[Any] = []
        for number, (start, end) in enumerate(itertools.pairwise([0, *beginnings, len(self._messages)])):
            part = self._messages[start:end]
            if number - 1 not in self._line["answers"]:
                part = _without_thinking(part)
            result += [*part, *said.get(number, ())]
        return _joined(self._conversation.form, result)

    @property
    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the provider's SDK, except for the model."""
        prefix, messages = dict(self._line["prefix"]), self.messages
        more = dict(self._append["request"])
        headers = {"extra_headers": dict(self._append["headers"])} if self._append["headers"] else {}
        match self._conversation.form:
            case "gemini":
                return {"contents": messages, "config": prefix | more}
            case "openai_responses":
                return prefix | more | headers | {"input": messages}
        return prefix | more | headers | {"messages": [*prefix.get("messages", ()), *messages]}

    def answered(self) -> None:
        """Keep what the model was told. Store the conversation's state together with the answer."""
        self._conversation._keep(self._sent)

    def sent(self) -> None:
        """Note that the request is sent, where nothing will say whether the model answers.

        What the model was told is kept as soon as the messages of a later question contain its answer.
        """
        self._conversation._sent = self._sent


def _beginnings(messages: Messages) -> list[int]:
    """Return where each of the model's answers begins."""
    own = [_is_from_model(message) for message in messages]
    return [index for index, is_own in enumerate(own) if is_own and not (index and own[index - 1])]


def _compactions(messages: Messages) -> int:
    """Return how often the provider compacted the conversation."""
    contents = (_field(message, "content") for message in messages)
    blocks = (block for content in contents if isinstance(content, list | tuple) for block in content)
    return sum(_field(part, "type") == _COMPACTION for part in (*messages, *blocks))


def _is_from_model(message: Any) -> bool:
    kind = _field(message, "type")
    if isinstance(kind, str) and (kind.endswith("_output") or kind in _OF_PROGRAMS):
        return False
    # A message of Gemini's without a role, and a text alone, are the user's.
    is_text = isinstance(message, str) or (kind is None and _field(message, "role") is None)
    return not is_text and _field(message, "role") not in _NOT_FROM_MODELS


def _joined(form: str, messages: list[Any]) -> list[Any]:
    """Return messages as a provider takes them that demands an order which others do not."""
    result: list[Any] = []
    for message in messages:
        last = result[-1] if result else None
        is_user = _field(message, "role") == "user" and isinstance(message, Mapping)
        if is_user and form == "bedrock" and _field(last, "role") == "user" and isinstance(last, Mapping):
            result[-1] = {**last, "content": [*last["content"], *message["content"]]}
        elif is_user and form == "mistral" and _field(last, "role") == "tool" and isinstance(last, Mapping):
            # No message of the user's may follow the result of a tool.
            result[-1] = {**last, "content": f"{last['content']}\n\n{message['content']}"}
        elif (
            is_user and form == "openai_chat" and _field(last, "role") == "user" and isinstance(last, Mapping)
        ):
            # Many templates of local models demand that the user and the model take turns.
            result[-1] = {**last, "content": _one_content(last["content"], message["content"])}
        else:
            result.append(message)
    return result


def _one_content(first: Any, second: Any) -> Any:
    """Return the content of two messages of the user's as one: texts, or lists of parts."""
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    given = [part for each in (first, second) if not isinstance(each, str) for part in each]
    kind = "input_text" if any(str(part.get("type")).startswith("input_") for part in given) else "text"
    parts = ([{"type": kind, "text": each}] if isinstance(each, str) else each for each in (first, second))
    return [*itertools.chain.from_iterable(parts)]


def _without_thinking(messages: Messages) -> list[Any]:
    """Return messages without the thinking in them, which belongs to an earlier prefix."""
    result = []
    for message in messages:
        content = _field(message, "content")
        if _is_from_model(message) and isinstance(content, Iterable) and not isinstance(content, str):
            kept = [block for block in content if not _is_thinking(block)]
            if not kept:
                continue
            if len(kept) < len(list(content)):
                message = {"role": "assistant", "content": kept}
        result.append(message)
    return result


def _is_thinking(block: Any) -> bool:
    return _field(block, "type") in _THINKING or _field(block, "reasoningContent") is not None


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def dispatched(name: str, arguments: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return the tool and the arguments that a call means, which a model may make through ``call_tool``."""
    tool = arguments.get("tool") if name == keys.CALL and isinstance(arguments, Mapping) else None
    return (tool, arguments.get("arguments") or {}) if isinstance(tool, str) else (name, arguments)


def declared(prefix: Mapping[str, Any]) -> tuple[tuple[Mapping[str, Any], ...], str]:
    """Return the tools, as a surface has them, and the policy of a prefix.

    It is in the form of Vercel's AI SDK, Chat Completions or Gemini.
    """
    tools: Any = prefix.get("tools", {})
    if isinstance(tools, Mapping):
        functions = [
            {**tool, "name": name, "parameters": tool["inputSchema"]} for name, tool in tools.items()
        ]
    else:
        functions = [
            function
            for tool in tools
            for function in tool.get("function_declarations", (tool.get("function"),))
        ]
    found = tuple(
        {
            "name": function["name"],
            "description": function.get("description", ""),
            "input_schema": function.get("parameters") or function["parameters_json_schema"],
            "annotations": {},
            "toolkits": [],
        }
        for function in functions
    )
    texts = [each["content"] for each in prefix.get("messages", ())]
    texts += [part["text"] for part in prefix.get("system_instruction", {}).get("parts", ())]
    return found, prefix.get("instructions") or "".join(texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class InWords:
    """A conversation that a framework keeps in a history of its own, where changes can only be put into words.

    Its models call tools that are added later through ``call_tool``. ``tools`` and ``policy`` are the prefix; they and
    the ``token`` are JSON, for the history.
    """

    token: str | None = None
    tools: tuple[Mapping[str, Any], ...] = ()
    policy: str = ""

    def question(self) -> dict[str, Any]:
        """Return what to ask beside the surface. The form is the one that leaves schemas as they are."""
        return {"form": "vercel", "model": "", "conversation": {"token": self.token}}

    def after(self, document: protocol.Document) -> tuple[InWords, tuple[str, ...], bool]:
        """Return the conversation once the model has answered, what to say now, and whether it begins again.

        Raise protocol.Unreachable if Toolbelt could not be reached, and there is no prefix.
        """
        append = document.get("append")
        if append is None:
            if self.token is None:
                raise protocol.Unreachable("Toolbelt could not be reached to begin this conversation.")
            return self, (), False
        said = tuple(message["content"] for message in append["messages"])
        if append["prefix"] is None:
            return dataclasses.replace(self, token=append["token"]), said, False
        tools, policy = declared(append["prefix"])
        begun = InWords(token=append["token"], tools=tools, policy=policy)
        return begun, said, append["restart"] is not None
