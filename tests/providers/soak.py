"""Random changes of operators and models in running conversations, against strict fakes of the providers.

Toolbelt's own rules decide each surface, and its own client keeps the conversations; the providers' SDKs send the
requests. Everything goes wrong that does in practice: requests fail before and after they were sent, conversations are
forked, stored and restored, calls run in parallel with changes.
"""

from __future__ import annotations

import collections
import contextlib
import copy
import dataclasses
import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import anthropic
import openai
from google import genai
from google.genai import errors as genai_errors
from google.genai import types

from tests.providers import anthropic_server, chat_server, gemini_server, openai_server, reading
from toolbelt.adapters import plain
from toolbelt.adapters.connection import protocol
from toolbelt.core import admitting, dispatch, errors, meta_tools, request_key
from toolbelt.core.rules import budgets
from toolbelt.core.scenarios import CoreWorld
from toolbelt.formats.appending import lines
from toolbelt.runtime.surfaces import appending, conversation_tokens, documents

AGENT = "ada"
TOOLKITS = [f"kit{number}" for number in range(6)]
TOOLS = [f"p__tool{number}" for number in range(24)]


def _schema(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"q": {"type": "string"}, **properties},
        "additionalProperties": False,
    }


def _toolkit(number: int, key: str) -> dict[str, Any]:
    choice = "required" if number % 3 == 0 else "auto"
    first = TOOLS[number * 4]
    return {
        "key": key,
        "description": f"About {key}",
        "members": [*TOOLS[number * 4 : number * 4 + 4], TOOLS[(number * 4 + 6) % 24]],
        "policy": f"{key} policy 0: {{active_tools}}.",
        "policy_when_off": f"{key} is off." if number % 2 else "",
        "triggers": [{"name": "focus", "any": [f"about {key}"], "focus": [first], "tool_choice": choice}],
    }


BELT: dict[str, Any] = {
    "plugins": [{"name": "p", "namespace": "p", "trusted": True, "in_code": True}],
    "tools": [
        {"key": key, "plugin": "p", "description": f"Does {key}, version 0.", "input_schema": _schema()}
        for key in TOOLS
    ],
    "toolkits": [_toolkit(number, key) for number, key in enumerate(TOOLKITS)],
    "agents": [
        {
            "key": AGENT,
            "tools_config": {"kit0": True, "kit1": True},
            "allowed_toolkits": ["kit2", "kit3", "kit4"],
            "initial_toolkits": ["kit2"],
        }
    ],
}


class World:
    """A configuration that changes, and a connection to it without a database."""

    def __init__(self, rng: random.Random, belt: Mapping[str, Any] = BELT) -> None:
        self.rng, self.version = rng, 0
        self.core = CoreWorld()
        self.core.load(copy.deepcopy(dict(belt)), lenient=False)
        self.config: dict[str, bool | None] = dict(belt["agents"][0]["tools_config"])

    def change(self, count: int | None = None) -> int:
        """Change one to four things at once. Return how many were changed; some are refused by Toolbelt's rules."""
        rng, config = self.rng, dict(self.config)
        entries: dict[str, dict[str, dict[str, Any]]] = {"agents": {}, "toolkits": {}, "tools": {}}
        many = count or rng.choice([1, 1, 2, 3, 4])
        for _ in range(many):
            self.version += 1
            kit, tool = rng.choice(TOOLKITS), rng.choice(TOOLS)
            of_kit = entries["toolkits"].setdefault(kit, {})
            of_tool = entries["tools"].setdefault(tool, {})
            match rng.randrange(9):
                case 0 | 1:
                    config[kit] = rng.choice([True, False, None])
                case 2:
                    config[tool] = rng.choice([True, False, None])
                case 3:
                    texts = [
                        f"{kit} policy {self.version}: {{active_tools}}.",
                        f"{kit} text {self.version}.",
                        "",
                    ]
                    of_kit["policy"] = rng.choice(texts)
                case 4:
                    of_tool["description"] = f"Does {tool}, version {self.version}."
                case 5:
                    of_tool["input_schema"] = _schema(**{f"v{self.version % 7}": {"type": "integer"}})
                case 6:
                    of_kit["blocked"] = rng.random() < 0.4
                case 7:
                    of_tool["retired"] = rng.random() < 0.4
                case 8:
                    allowed = sorted({"kit2", *rng.sample(TOOLKITS, 3)})
                    entries["agents"].setdefault(AGENT, {})["allowed_toolkits"] = allowed
        entries["agents"].setdefault(AGENT, {})["tools_config"] = config
        written = {
            section: [{"key": key, **fields} for key, fields in changed.items() if fields]
            for section, changed in entries.items()
        }
        try:
            self.core.edit({section: items for section, items in written.items() if items}, lenient=False)
        except errors.ToolbeltError:
            return 0
        self.config = config
        return many

    def surface(self, run: protocol.Run, *, message: str | None = None, **more: Any) -> protocol.Document:
        """Return the surface's document."""
        asked = more.pop("conversation", None)
        conversation = None if asked is None else appending.Conversation(**asked)
        shown = self.core.surface(_key(run), message)
        document = documents.of(shown, more["form"], None, more["model"], conversation)
        again = documents.of(shown, more["form"], None, more["model"], conversation)
        the_same_question_has_the_same_answer(document, again)
        return document

    def call(self, run: protocol.Run, tool: str, arguments: Any, conversation: str = "") -> protocol.Document:
        """Call a tool, as the gate would answer."""
        told = conversation_tokens.unseal(AGENT, conversation) if conversation else None
        snapshot = self.core._snapshot(_key(run))
        resolved = budgets.resolve(snapshot)
        if told is not None and told.dispatches and tool in meta_tools.DISPATCHING:
            if tool == meta_tools.SEARCH:
                found = dispatch.search_tools(resolved, arguments, is_offered=True)
                return found.document() if isinstance(found, admitting.Refusal) else _fine(found.content)
            parsed = dispatch.parse_call(resolved, arguments, is_offered=True)
            if isinstance(parsed, admitting.Refusal):
                return parsed.document()
            admitted = dispatch.admit(resolved, snapshot, *parsed)
            return (
                admitted.document() if isinstance(admitted, admitting.Refusal) else _fine({"ran": parsed[0]})
            )
        answer = dict(self.core.call(_key(run), tool, arguments))
        return answer if answer["is_error"] else _fine({"ran": tool})

    def blocking(self) -> World:
        """Return this connection."""
        return self


def the_same_question_has_the_same_answer(first: Any, second: Any) -> None:
    assert json.dumps(first) == json.dumps(second)


def _fine(content: Mapping[str, Any]) -> protocol.Document:
    return {"is_error": False, "content": dict(content)}


def _key(run: protocol.Run) -> request_key.RequestKey:
    return request_key.RequestKey(AGENT, run.session, run.request_id, run.subagent)


# What the SDKs raise for a request that a provider refuses.
BAD_REQUESTS = (anthropic.BadRequestError, openai.BadRequestError, genai_errors.ClientError)


@dataclasses.dataclass(frozen=True)
class Service:
    """A provider: sends a request, and returns the items of the answer, its calls, and the log's entry."""

    form: str
    server: Any
    send: Callable[[str, Mapping[str, Any]], tuple[list[Any], list[tuple[str, str, Any]]]]
    close: Callable[[], None] = lambda: None

    def say(self, text: str) -> dict[str, Any]:
        """Return a message of the user's."""
        if self.form == "gemini":
            return {"role": "user", "parts": [{"text": text}]}
        return {"role": "user", "content": text}

    def results(self, given: Iterable[tuple[str, str, str]]) -> list[dict[str, Any]]:
        """Return the messages with the results of calls: the call, its tool and the result of each."""
        match self.form:
            case "anthropic":
                content = [
                    {"type": "tool_result", "tool_use_id": call, "content": text} for call, _, text in given
                ]
                return [{"role": "user", "content": content}]
            case "openai_responses":
                return [
                    {"type": "function_call_output", "call_id": call, "output": text}
                    for call, _, text in given
                ]
            case "gemini":
                parts = [
                    {"function_response": {"id": call, "name": tool, "response": {"result": text}}}
                    for call, tool, text in given
                ]
                return [{"role": "user", "parts": parts}]
        return [{"role": "tool", "tool_call_id": call, "content": text} for call, _, text in given]


@contextlib.contextmanager
def serving() -> Iterator[dict[str, Service]]:
    """Run the fakes of the providers, and yield what sends requests to them, by format."""
    with (
        anthropic_server.Server() as anthropic_,
        openai_server.Server() as openai_,
        chat_server.Server() as chat_,
        gemini_server.Server() as gemini_,
    ):
        services = {
            "anthropic": claude(anthropic_),
            "openai_responses": responses(openai_),
            "openai_chat": chat(chat_),
            "gemini": gemini(gemini_),
        }
        yield services
        for service in services.values():
            service.close()


def claude(server: anthropic_server.Server) -> Service:
    """Return Anthropic's Messages."""
    client = anthropic.Anthropic(api_key="k", base_url=server.address, max_retries=0)

    def send(model: str, parameters: Mapping[str, Any]) -> Any:
        answer = client.messages.create(model=model, max_tokens=9, **parameters)
        content = [block.model_dump(exclude_none=True) for block in answer.content]
        calls = [(block.id, block.name, block.input) for block in answer.content if block.type == "tool_use"]
        return [{"role": "assistant", "content": content}], calls

    return Service("anthropic", server, send, client.close)


def responses(server: openai_server.Server) -> Service:
    """Return OpenAI's Responses."""
    client = openai.OpenAI(api_key="k", base_url=f"{server.address}/v1", max_retries=0)

    def send(model: str, parameters: Mapping[str, Any]) -> Any:
        answer = client.responses.create(model=model, **parameters)
        items = [item.model_dump(exclude_none=True) for item in answer.output]
        calls = [
            (item.call_id, item.name, json.loads(item.arguments or "{}"))
            for item in answer.output
            if item.type == "function_call"
        ]
        return items, calls

    return Service("openai_responses", server, send, client.close)


def chat(server: chat_server.Server) -> Service:
    """Return Chat Completions."""
    client = openai.OpenAI(api_key="k", base_url=f"{server.address}/v1", max_retries=0)

    def send(model: str, parameters: Mapping[str, Any]) -> Any:
        message = client.chat.completions.create(model=model, **parameters).choices[0].message
        calls = [
            (call.id, call.function.name, json.loads(call.function.arguments or "{}"))
            for call in message.tool_calls or ()
        ]
        return [message.model_dump(exclude_none=True)], calls

    return Service("openai_chat", server, send, client.close)


def gemini(server: gemini_server.Server) -> Service:
    """Return Gemini's generate_content."""
    options = types.HttpOptions(base_url=server.address)
    client = genai.Client(api_key="k", vertexai=False, http_options=options)

    def send(model: str, parameters: Mapping[str, Any]) -> Any:
        answer = client.models.generate_content(model=model, **parameters)
        assert answer.candidates
        content = answer.candidates[0].content
        assert content is not None
        calls = [
            (part.function_call.id, part.function_call.name, part.function_call.args or {})
            for part in content.parts or ()
            if part.function_call
        ]
        return [content.model_dump(mode="json", exclude_none=True)], calls

    return Service("gemini", server, send, client.close)


@dataclasses.dataclass
class Talk:
    """A conversation: the program's own messages, and Toolbelt's state, stored together."""

    session: str
    messages: list[Any] = dataclasses.field(default_factory=list)
    state: Mapping[str, Any] | None = None
    head: Any = None

    def fork(self) -> Talk:
        """Return a branch of the same session."""
        return Talk(self.session, list(self.messages), json.loads(json.dumps(self.state)), self.head)


class Soak:
    """Conversations with one model under random changes. ``counts`` says what happened."""

    def __init__(self, service: Service, model: str, seed: int, platform: str = "api") -> None:
        self.service, self.model, self.platform = service, model, platform
        self.rng = random.Random(seed)  # noqa: S311 (reproducible on purpose)
        self.world = World(self.rng)
        self.toolbelt = plain.Toolbelt(self.world)  # type: ignore[arg-type]
        self.counts: collections.Counter[str] = collections.Counter()
        self.number = 0

    def run(self, changes: int) -> collections.Counter[str]:
        """Make at least this many changes in six conversations at a time."""
        rng, talks = self.rng, [self._new() for _ in range(6)]
        while self.counts["changes"] < changes:
            self._change()
            index = rng.randrange(len(talks))
            talk, roll = talks[index], rng.random()
            if roll < 0.03 and talk.state:
                talks[rng.randrange(len(talks))] = talk.fork()
                self.counts["forks"] += 1
            if len(talk.messages) > 60:
                talk = talks[index] = self._new()
            self._turn(talk)
        return self.counts

    def _new(self) -> Talk:
        self.number += 1
        return Talk(f"s{self.number}")

    def _change(self) -> None:
        self.counts["changes"] += self.world.change()

    def _turn(self, talk: Talk) -> None:
        """One message of the user, and the steps that it leads to."""
        rng, text = self.rng, self._text(talk)
        # Restored for every turn, as by a worker that has never seen the conversation.
        kept = self.toolbelt.conversation(
            self.service.form,
            model=self.model,
            platform=self.platform,  # type: ignore[arg-type]
            system="Be brief.",
            state=json.loads(json.dumps(talk.state)),
        )
        talk.messages.append(self.service.say(text))
        run = kept.begin(text, talk.session)
        for number in range(3):
            if rng.random() < 0.5:
                self._change()
            if rng.random() < 0.1:
                # The provider fails, before or after it has answered, and the program tries again.
                self.counts["failures"] += 1
                lost = run.ask(talk.messages)
                if rng.random() < 0.5:
                    self.service.send(self.model, lost.parameters)
                if rng.random() < 0.5:
                    self._change()
                if rng.random() < 0.5 and number == 0:
                    talk.messages.append(self.service.say("are you there?"))
            step = run.ask(talk.messages)
            assert step.restart is None
            items, calls = self.service.send(self.model, step.parameters)
            self.counts["requests"] += 1
            self._check(talk, run, step)
            step.answered()
            talk.messages += items
            talk.state = kept.state
            if not calls:
                return
            if rng.random() < 0.3:
                self._change()
            self._answer(talk, run, calls)

    def _text(self, talk: Talk) -> str:
        rng = self.rng
        shown = self.world.core.surface(request_key.RequestKey(AGENT, talk.session, "x", None), None)
        active, roll = [tool.name for tool in shown.tools], rng.random()
        if roll < 0.25:
            return "hello"
        if roll < 0.45 and active:
            return "call " + " + ".join(rng.sample(active, min(len(active), rng.choice([1, 1, 2, 3]))))
        if roll < 0.6:
            return f"insist {rng.choice(TOOLS)}"
        if roll < 0.7:
            return f"call load_tools {json.dumps({'toolkit': rng.choice(TOOLKITS)})}"
        if roll < 0.75:
            return f"call unload_tools {json.dumps({'toolkit': rng.choice(TOOLKITS)})}"
        if roll < 0.8:
            return f"call call_tool {json.dumps({'tool': rng.choice(TOOLS), 'arguments': {}})}"
        return f"something about {rng.choice(TOOLKITS)}"

    def _answer(self, talk: Talk, run: Any, calls: list[tuple[str, str, Any]]) -> None:
        key = request_key.RequestKey(AGENT, talk.session, run._current.request_id, None)
        shown = self.world.core.surface(key, None)
        active = {tool.name for tool in (*shown.tools, *shown.meta_tools)}
        results = []
        for call, name, arguments in calls:
            answer = run.call(name, arguments)
            self.counts["calls"] += 1
            self.counts["refusals"] += answer.is_error
            if name not in active and name not in meta_tools.SCHEMAS:
                assert answer.is_error, f"{name} ran, although it is not active"
                self.counts["withdrawn"] += 1
            results.append((call, name, answer.text[:80]))
        talk.messages += self.service.results(results)

    def _check(self, talk: Talk, run: Any, step: Any) -> None:
        """Check that the provider accepted the request, with the same prefix, and that the model sees what is true."""
        entry = self.service.server.log[-1]
        assert entry["status"] == 200, entry
        assert talk.head in (None, entry["head"]), "the prefix changed"
        talk.head = entry["head"]
        key = request_key.RequestKey(AGENT, talk.session, run._next_run.request_id, None)
        shown = self.world.core.surface(key, None)
        line = lines.of(self.service.form, self.model, self.platform)  # type: ignore[arg-type]
        reading.check(entry, shown, line)
