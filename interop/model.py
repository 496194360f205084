"""A server for the protocols of four model providers, which replies by a rule or a script instead of a model.

It supports Chat Completions and Responses of OpenAI, Messages of Anthropic, and Gemini's generateContent, each with and
without streaming, and records every request.
"""

from __future__ import annotations

import http.server
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

FINAL_TEXT = "It is done."
JSON, EVENTS = "application/json", "text/event-stream"


@dataclass
class ModelRequest:
    """A request: the tools, under the client's names, the results of tools, and the body as sent."""

    path: str
    tools: list[str]
    answers: list[str]
    body: dict[str, Any] = field(default_factory=dict)


@dataclass
class Reply:
    """A reply of the model: a text, or a call of a tool."""

    text: str = ""
    tool: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    call_id: str = ""


class Responder(Protocol):
    """A source of replies to requests."""

    def reply(self, request: ModelRequest) -> Reply:
        """Reply to a request."""
        ...


@dataclass
class Model:
    """A model that calls the tool whose name ends with ``tool``, once in a conversation, and then replies with text."""

    tool: str
    arguments: dict[str, Any]
    requests: list[ModelRequest] = field(default_factory=list)

    def reply(self, request: ModelRequest) -> Reply:
        """Record the request, and reply."""
        self.requests.append(request)
        name = next((name for name in request.tools if name.endswith(self.tool)), "")
        if name and not request.answers:
            return Reply(tool=name, arguments=self.arguments)
        return Reply(text=FINAL_TEXT)

    @property
    def offered(self) -> set[str]:
        """Return the names of all tools that were offered."""
        return {name for request in self.requests for name in request.tools}

    @property
    def answers(self) -> str:
        """Return the results of tools, as the client sent them."""
        return "\n".join(answer for request in self.requests for answer in request.answers)


class Server(http.server.ThreadingHTTPServer):
    """A context manager that serves a model on its own port."""

    daemon_threads = True

    def __init__(self, model: Responder) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.model = model

    @property
    def address(self) -> str:
        """Return the address, without a path."""
        return f"http://127.0.0.1:{self.server_port}"

    def __enter__(self) -> Server:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    """A handler for requests of all protocols, which writes each reply in the form of its protocol."""

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
        protocol = next((value for pattern, value in PROTOCOLS.items() if re.search(pattern, path)), None)
        if protocol is None:
            self._send(JSON, b'{"input_tokens": 1, "totalTokens": 1}')
            return
        tools, answers, write_events = protocol
        request = ModelRequest(path=path, tools=tools(body), answers=answers(body), body=body)
        reply = self.server.model.reply(request)
        # Clients match results to calls by id, so each call of a conversation needs its own.
        reply.call_id = f"call_{len(request.answers) + 1:08}"
        events = list(write_events(reply, body))
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

    def log_message(self, *args: object) -> None:
        """Log nothing."""


def _event(event: Any) -> bytes:
    if isinstance(event, str):
        return f"data: {event}\n\n".encode()
    prefix = f"event: {event['type']}\n" if "type" in event else ""
    return f"{prefix}data: {json.dumps(event)}\n\n".encode()


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


# Each protocol has three functions. Two read the tools and the results of tools from a request. The third yields the
# events of a reply, and last the complete reply, for requests without streaming.


def _chat_tools(body: dict[str, Any]) -> list[str]:
    return [tool["function"]["name"] for tool in _list(body.get("tools")) if "function" in tool]


def _chat_answers(body: dict[str, Any]) -> list[str]:
    return [_text(message.get("content")) for message in body["messages"] if message["role"] == "tool"]


def _chat(reply: Reply, body: dict[str, Any]) -> Iterator[Any]:
    common = {"id": "chatcmpl-1", "created": 0, "model": body.get("model", "scripted")}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.tool:
        function = {"name": reply.tool, "arguments": json.dumps(reply.arguments)}
        message["tool_calls"] = [{"id": reply.call_id, "type": "function", "function": function}]
    reason = "tool_calls" if reply.tool else "stop"
    delta = {**message, "tool_calls": [{"index": 0, **call} for call in message.get("tool_calls", ())]}
    if not reply.tool:
        del delta["tool_calls"]
    chunk = {**common, "object": "chat.completion.chunk"}
    yield {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
    yield {**chunk, "choices": [], "usage": usage}
    yield "[DONE]"
    choice = {"index": 0, "message": message, "finish_reason": reason}
    yield {**common, "object": "chat.completion", "choices": [choice], "usage": usage}


def _responses_tools(body: dict[str, Any]) -> list[str]:
    """Return the names of the functions, including those in a namespace."""
    names = []
    for tool in _list(body.get("tools")):
        inner = _list(tool.get("tools"))
        names += (
            [f"{tool['name']}{function['name']}" for function in inner]
            if inner
            else [tool.get("name", tool["type"])]
        )
    return names


def _responses_answers(body: dict[str, Any]) -> list[str]:
    items = [item for item in _list(body.get("input")) if isinstance(item, dict)]
    return [_text(item.get("output")) for item in items if item.get("type") == "function_call_output"]


def _responses(reply: Reply, body: dict[str, Any]) -> Iterator[Any]:
    item: dict[str, Any]
    if reply.tool:
        item = {"type": "function_call", "id": "fc_1", "call_id": reply.call_id, "name": reply.tool}
        for tool in _list(body.get("tools")):
            # A function in a namespace is called by the namespace and its own name.
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
    response = {"id": "resp_1", "object": "response", "created_at": 0, "model": body.get("model", "scripted")}
    response |= {"parallel_tool_calls": False, "tool_choice": "auto", "tools": []}
    started = {**response, "status": "in_progress", "output": []}
    completed = {**response, "status": "completed", "output": [item], "usage": usage}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": started},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "status": "in_progress"}},
    ]
    if reply.text:
        position = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
        empty = {"type": "output_text", "text": "", "annotations": []}
        events += [
            {"type": "response.content_part.added", **position, "part": empty},
            {"type": "response.output_text.delta", **position, "delta": reply.text},
            {"type": "response.output_text.done", **position, "text": reply.text},
            {"type": "response.content_part.done", **position, "part": {**empty, "text": reply.text}},
        ]
    else:
        position = {"item_id": "fc_1", "output_index": 0}
        events += [
            {"type": "response.function_call_arguments.delta", **position, "delta": item["arguments"]},
            {"type": "response.function_call_arguments.done", **position, "arguments": item["arguments"]},
        ]
    events += [
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": completed},
    ]
    yield from ({**event, "sequence_number": number} for number, event in enumerate(events))
    yield completed


def _messages_tools(body: dict[str, Any]) -> list[str]:
    return [tool["name"] for tool in _list(body.get("tools"))]


def _messages_answers(body: dict[str, Any]) -> list[str]:
    blocks = [block for message in body["messages"] for block in _list(message["content"])]
    return [_text(block.get("content")) for block in blocks if block.get("type") == "tool_result"]


def _messages(reply: Reply, body: dict[str, Any]) -> Iterator[Any]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant"}
    message |= {"model": body.get("model", "scripted"), "stop_sequence": None, "usage": usage}
    reason = "tool_use" if reply.tool else "end_turn"
    block: dict[str, Any] = {"type": "text", "text": reply.text}
    first_block, delta = {**block, "text": ""}, {"type": "text_delta", "text": reply.text}
    if reply.tool:
        block = {"type": "tool_use", "id": "toolu_1", "name": reply.tool, "input": reply.arguments}
        first_block = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(reply.arguments)}
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    yield {"type": "content_block_start", "index": 0, "content_block": first_block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}
    yield {"type": "message_stop"}
    yield {**message, "content": [block], "stop_reason": reason}


def _gemini_tools(body: dict[str, Any]) -> list[str]:
    declarations = [
        tool.get("functionDeclarations") or tool.get("function_declarations") or []
        for tool in _list(body.get("tools"))
    ]
    return [function["name"] for functions in declarations for function in functions]


def _gemini_answers(body: dict[str, Any]) -> list[str]:
    parts = [part for content in body["contents"] for part in _list(content.get("parts"))]
    return [_text(part["functionResponse"]["response"]) for part in parts if "functionResponse" in part]


def _gemini(reply: Reply, body: dict[str, Any]) -> Iterator[Any]:
    part: dict[str, Any] = {"text": reply.text}
    if reply.tool:
        part = {"functionCall": {"name": reply.tool, "args": reply.arguments}}
    candidate = {"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    response = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted"}
    yield response
    yield response


PROTOCOLS = {
    r"/chat/completions$": (_chat_tools, _chat_answers, _chat),
    r"/responses$": (_responses_tools, _responses_answers, _responses),
    r"/messages$": (_messages_tools, _messages_answers, _messages),
    r":(generateContent|streamGenerateContent)$": (_gemini_tools, _gemini_answers, _gemini),
}
