"""A server that speaks the protocols of four model providers, and replies by a rule or a script instead of a model.

It speaks Chat Completions and Responses of OpenAI, Messages of Anthropic, and Gemini's generateContent, each with and
without streaming, and keeps every request.
"""

from __future__ import annotations

import http.server
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

SAID = "It is done."
JSON, EVENTS = "application/json", "text/event-stream"


@dataclass
class Asked:
    """A request: the tools, by the names that the client gives them, what the tools answered, and all of it as sent."""

    path: str
    tools: list[str]
    answers: list[str]
    body: dict[str, Any] = field(default_factory=dict)


@dataclass
class Reply:
    """What the model replies: a text, or a call of a tool."""

    text: str = ""
    tool: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    call_id: str = ""


class Replying(Protocol):
    """What a server asks for its replies."""

    def reply(self, asked: Asked) -> Reply:
        """Reply to a request."""
        ...


@dataclass
class Model:
    """Calls the tool whose name ends with ``tool``, once in a conversation; otherwise it replies with a text."""

    tool: str
    arguments: dict[str, Any]
    asked: list[Asked] = field(default_factory=list)

    def reply(self, asked: Asked) -> Reply:
        """Note what was asked, and reply."""
        self.asked.append(asked)
        name = next((name for name in asked.tools if name.endswith(self.tool)), "")
        if name and not asked.answers:
            return Reply(tool=name, arguments=self.arguments)
        return Reply(text=SAID)

    @property
    def offered(self) -> set[str]:
        """Return the names of all tools that were offered."""
        return {name for one in self.asked for name in one.tools}

    @property
    def answers(self) -> str:
        """Return what the tool answered, as the client told it."""
        return "\n".join(answer for one in self.asked for answer in one.answers)


class Server(http.server.ThreadingHTTPServer):
    """Serves a model on a port of its own for as long as it is entered."""

    daemon_threads = True

    def __init__(self, model: Replying) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.model = model

    @property
    def address(self) -> str:
        """Return where it is, without a path."""
        return f"http://127.0.0.1:{self.server_port}"

    def __enter__(self) -> Server:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    """Reads a request of any of the protocols, and writes the reply in its form."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        models = [{"id": "scripted", "object": "model", "created": 0, "owned_by": "interop"}]
        self._send(JSON, json.dumps({"object": "list", "data": models, "models": []}).encode())

    def do_HEAD(self) -> None:
        self._send(JSON, b"")

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length) or b"{}")
        path = self.path.partition("?")[0]
        is_streamed = bool(body.get("stream")) or path.endswith(":streamGenerateContent")
        speaks = next((speaks for pattern, speaks in PROTOCOLS.items() if re.search(pattern, path)), None)
        if speaks is None:
            self._send(JSON, b'{"input_tokens": 1, "totalTokens": 1}')
            return
        tools, answers, written = speaks
        asked = Asked(path=path, tools=tools(body), answers=answers(body), body=body)
        reply = self.server.model.reply(asked)
        # Clients match answers to calls by their ids, so that no two calls of a conversation share one.
        reply.call_id = f"call_{len(asked.answers) + 1:08}"
        events = list(written(reply, body))
        if is_streamed:
            self._send(EVENTS, b"".join(_event(event) for event in events[:-1]))
        else:
            self._send(JSON, json.dumps(events[-1]).encode())

    def _send(self, kind: str, content: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *of: object) -> None:
        """Log nothing."""


def _event(event: Any) -> bytes:
    if isinstance(event, str):
        return f"data: {event}\n\n".encode()
    named = f"event: {event['type']}\n" if "type" in event else ""
    return f"{named}data: {json.dumps(event)}\n\n".encode()


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


# Each protocol reads the tools and the tool's answers of a request, and writes a reply as its events. The last one is
# the whole reply, for a request without streaming.


def _chat_tools(body: dict[str, Any]) -> list[str]:
    return [tool["function"]["name"] for tool in _list(body.get("tools")) if "function" in tool]


def _chat_answers(body: dict[str, Any]) -> list[str]:
    return [_text(one.get("content")) for one in body["messages"] if one["role"] == "tool"]


def _chat(reply: Reply, body: dict[str, Any]) -> Iterator[Any]:
    about = {"id": "chatcmpl-1", "created": 0, "model": body.get("model", "scripted")}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.tool:
        function = {"name": reply.tool, "arguments": json.dumps(reply.arguments)}
        message["tool_calls"] = [{"id": reply.call_id, "type": "function", "function": function}]
    reason = "tool_calls" if reply.tool else "stop"
    piece = {**message, "tool_calls": [{"index": 0, **call} for call in message.get("tool_calls", ())]}
    if not reply.tool:
        del piece["tool_calls"]
    chunk = {**about, "object": "chat.completion.chunk"}
    yield {**chunk, "choices": [{"index": 0, "delta": piece, "finish_reason": None}]}
    yield {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
    yield {**chunk, "choices": [], "usage": usage}
    yield "[DONE]"
    choice = {"index": 0, "message": message, "finish_reason": reason}
    yield {**about, "object": "chat.completion", "choices": [choice], "usage": usage}


def _responses_tools(body: dict[str, Any]) -> list[str]:
    """Name the functions, also those within a namespace."""
    found = []
    for tool in _list(body.get("tools")):
        inner = _list(tool.get("tools"))
        found += (
            [f"{tool['name']}{one['name']}" for one in inner] if inner else [tool.get("name", tool["type"])]
        )
    return found


def _responses_answers(body: dict[str, Any]) -> list[str]:
    items = [one for one in _list(body.get("input")) if isinstance(one, dict)]
    return [_text(one.get("output")) for one in items if one.get("type") == "function_call_output"]


def _responses(reply: Reply, body: dict[str, Any]) -> Iterator[Any]:
    item: dict[str, Any]
    if reply.tool:
        item = {"type": "function_call", "id": "fc_1", "call_id": reply.call_id, "name": reply.tool}
        for tool in _list(body.get("tools")):
            # A function within a namespace is called by both names.
            if _list(tool.get("tools")) and reply.tool.startswith(tool["name"]):
                item |= {"name": reply.tool.removeprefix(tool["name"]), "namespace": tool["name"]}
        item |= {"arguments": json.dumps(reply.arguments), "status": "completed"}
    else:
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        item = {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": content,
        }
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    whole = {"id": "resp_1", "object": "response", "created_at": 0, "model": body.get("model", "scripted")}
    whole |= {"parallel_tool_calls": False, "tool_choice": "auto", "tools": []}
    begun = {**whole, "status": "in_progress", "output": []}
    done = {**whole, "status": "completed", "output": [item], "usage": usage}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "status": "in_progress"}},
    ]
    if reply.text:
        where = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
        empty = {"type": "output_text", "text": "", "annotations": []}
        events += [
            {"type": "response.content_part.added", **where, "part": empty},
            {"type": "response.output_text.delta", **where, "delta": reply.text},
            {"type": "response.output_text.done", **where, "text": reply.text},
            {"type": "response.content_part.done", **where, "part": {**empty, "text": reply.text}},
        ]
    else:
        where = {"item_id": "fc_1", "output_index": 0}
        events += [
            {"type": "response.function_call_arguments.delta", **where, "delta": item["arguments"]},
            {"type": "response.function_call_arguments.done", **where, "arguments": item["arguments"]},
        ]
    events += [
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": done},
    ]
    yield from ({**event, "sequence_number": number} for number, event in enumerate(events))
    yield done


def _messages_tools(body: dict[str, Any]) -> list[str]:
    return [tool["name"] for tool in _list(body.get("tools"))]


def _messages_answers(body: dict[str, Any]) -> list[str]:
    blocks = [block for one in body["messages"] for block in _list(one["content"])]
    return [_text(block.get("content")) for block in blocks if block.get("type") == "tool_result"]


def _messages(reply: Reply, body: dict[str, Any]) -> Iterator[Any]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    whole: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant"}
    whole |= {"model": body.get("model", "scripted"), "stop_sequence": None, "usage": usage}
    reason = "tool_use" if reply.tool else "end_turn"
    block: dict[str, Any] = {"type": "text", "text": reply.text}
    begun, delta = {**block, "text": ""}, {"type": "text_delta", "text": reply.text}
    if reply.tool:
        block = {"type": "tool_use", "id": "toolu_1", "name": reply.tool, "input": reply.arguments}
        begun = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(reply.arguments)}
    yield {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}
    yield {"type": "content_block_start", "index": 0, "content_block": begun}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}
    yield {"type": "message_stop"}
    yield {**whole, "content": [block], "stop_reason": reason}


def _gemini_tools(body: dict[str, Any]) -> list[str]:
    declared = [
        tool.get("functionDeclarations") or tool.get("function_declarations") or []
        for tool in _list(body.get("tools"))
    ]
    return [function["name"] for functions in declared for function in functions]


def _gemini_answers(body: dict[str, Any]) -> list[str]:
    parts = [part for one in body["contents"] for part in _list(one.get("parts"))]
    return [_text(part["functionResponse"]["response"]) for part in parts if "functionResponse" in part]


def _gemini(reply: Reply, body: dict[str, Any]) -> Iterator[Any]:
    part: dict[str, Any] = {"text": reply.text}
    if reply.tool:
        part = {"functionCall": {"name": reply.tool, "args": reply.arguments}}
    candidate = {"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    whole = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted"}
    yield whole
    yield whole


PROTOCOLS = {
    r"/chat/completions$": (_chat_tools, _chat_answers, _chat),
    r"/responses$": (_responses_tools, _responses_answers, _responses),
    r"/messages$": (_messages_tools, _messages_answers, _messages),
    r":(generateContent|streamGenerateContent)$": (_gemini_tools, _gemini_answers, _gemini),
}
