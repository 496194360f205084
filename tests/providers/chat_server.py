"""A strict fake of Chat Completions, which many providers offer: the order of messages, and the tool choice by model.

OpenAI's models take ``allowed_tools`` and a forced call. The others stand for what other providers refuse (PAI, live
logs): a forced call (Kimi, Qwen), a system message that is not the first (Qwen), two messages of the user's in a row
(Gemma, whose template raises "Conversation roles must alternate"), and an assistant's message at the end (Mistral).
STRICT: each of them refuses a tool choice that it does not know.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tests.providers import fakes, scripted
from tests.providers.anthropic_server import Refused, canonical, digest_of


@dataclass(frozen=True)
class Model:
    """A model: whether it takes ``allowed_tools``, a forced call, and system messages in the conversation.

    ``alternates``: The user and the model must take turns.
    """

    allowed_tools: bool = False
    forced: bool = False
    system: bool = True
    alternates: bool = False


MODELS = {
    "gpt-5.6": Model(allowed_tools=True, forced=True),
    "kimi-k3": Model(),
    "qwen3-coder": Model(system=False),
    "gemma-3": Model(system=False, alternates=True),
    "mistral-large": Model(),
}


class Judge:
    """What is wrong with one request: raises Refused; afterwards has what the model may call."""

    def __init__(self, body: dict[str, Any]) -> None:
        self.model, self.messages = MODELS[body["model"]], body["messages"]
        self.body = body
        self.defined = {tool["function"]["name"]: tool for tool in body.get("tools") or []}
        self.tools = [*self.defined]
        self.choice = body.get("tool_choice", "auto")
        self._messages()
        self.allowed = self._choice()

    def _messages(self) -> None:
        open_calls: list[str] = []
        for index, message in enumerate(self.messages):
            role = message["role"]
            if role == "tool":
                if message["tool_call_id"] not in open_calls:
                    raise Refused(f"messages.[{index}]: there is no call {message['tool_call_id']}.")
                open_calls.remove(message["tool_call_id"])
            elif open_calls:
                raise Refused(f"messages.[{index}]: tool_calls must be followed by their results.")
            if role == "system" and index and not self.model.system:
                raise Refused("System message must be at the beginning.")
            before = self.messages[index - 1]["role"] if index else ""
            if self.model.alternates and role in ("user", "assistant") and role == before:
                raise Refused("Conversation roles must alternate user/assistant/user/assistant/...")
            open_calls += [call["id"] for call in message.get("tool_calls") or ()]
        if open_calls:
            raise Refused("tool_calls must be followed by their results.")
        if self.messages[-1]["role"] not in ("user", "tool", "system"):
            raise Refused("Expected last role User or Tool (code 3230).")

    def entry(self) -> dict[str, Any]:
        """Return the entry of the log for a request that was accepted."""
        first = self.messages[0]
        texts = []
        for message in self.messages:
            if message["role"] == "system":
                texts.append(message["content"])
            elif message["role"] == "user":
                texts += scripted.notices(message["content"])
        head = canonical([first if first["role"] == "system" else None, self.body.get("tools")])
        return {
            "status": 200,
            "declared": self.tools,
            "shown": sorted(self.defined),
            "allowed": sorted(self.allowed),
            "defined": self.defined,
            "texts": texts,
            "choice": self.choice,
            "messages": self.messages,
            "head": digest_of(head),
        }

    def _choice(self) -> set[str]:
        if self.choice in ("auto", "none"):
            return set() if self.choice == "none" else {*self.tools}
        if not self.model.forced:
            raise Refused(f"tool_choice {self.choice!r} is not supported by this model.")
        if self.choice == "required":
            return {*self.tools}
        if self.choice["type"] == "function":
            return {self.choice["function"]["name"]}
        if not self.model.allowed_tools:
            raise Refused("tool_choice.type: unknown value.")
        return {tool["function"]["name"] for tool in self.choice["allowed_tools"]["tools"]}


def answer(judge: Judge, number: int) -> dict[str, Any]:
    """Return the message of the scripted model."""
    texts: list[str] = []
    step = 0
    for message in judge.messages:
        if message["role"] == "user":
            # What was said in a row may have been joined.
            texts += message["content"].split("\n\n")
        elif message["role"] == "assistant":
            texts, step = (texts, step + 1) if message.get("tool_calls") else ([], 0)
    calls = [
        {
            "id": f"call_{number}_{position}",
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
        }
        for position, call in enumerate(scripted.calls(texts, step, judge.allowed))
    ]
    said = {"role": "assistant", "content": None if calls else f"done {number}"}
    return {**said, "tool_calls": calls} if calls else said


class Server(fakes.Fake):
    """The server."""

    def __init__(self) -> None:
        super().__init__(Handler)


class Handler(fakes.Handler):
    """A handler of its requests."""

    server: Server

    def do_POST(self) -> None:
        body = self.body()
        number = len(self.server.log)
        try:
            judge = Judge(body)
        except Refused as refused:
            error = {"message": str(refused), "type": "invalid_request_error"}
            refusal = {"status": 400, "message": str(refused), "body": body}
            return self.answer(400, {"error": error}, refusal)
        message = answer(judge, number)
        reason = "tool_calls" if "tool_calls" in message else "stop"
        choice = {"index": 0, "finish_reason": reason, "message": message}
        about = {"id": f"c{number}", "object": "chat.completion", "created": number, "model": body["model"]}
        self.answer(200, {**about, "choices": [choice]}, judge.entry())
