"""A strict fake of OpenAI's Responses API: items in order, added tools, tool choice, the cache of the rendered prefix.

Each rule names its source (see models.py). STRICT marks what is not documented as refused, but what an integration must
not rely on: a name that is declared twice, and an item between a function call and its output.

OpenAI has no prefix check, so a changed prefix is no error: it is a cache miss, which the fake counts.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from typing import Any

from tests.providers import fakes, scripted
from tests.providers.anthropic_server import Refused, canonical, digest_of
from tests.providers.models import OPENAI

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def compacted(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the items that the model reads: those since the conversation was compacted, if it was."""
    points = [index for index, item in enumerate(items) if item.get("type") == "compaction"]
    return items[points[-1] + 1 :] if points else items


class Judge:
    def __init__(self, body: dict[str, Any]) -> None:
        self.body = body
        if body.get("model") not in OPENAI:
            raise Refused(f"The requested model '{body.get('model')}' does not exist.")
        self.model = OPENAI[body["model"]]
        self.tools = body.get("tools") or []
        items = body["input"]
        self.items = [{"role": "user", "content": items}] if isinstance(items, str) else compacted(items)
        self.shown: dict[str, dict[str, Any]] = {}
        self.added: set[str] = set()
        self.texts = [body["instructions"]] if body.get("instructions") else []
        self._declared()
        self._items()
        self._choice()

    def _declared(self) -> None:
        for index, tool in enumerate(self.tools):
            self._tool(f"tools[{index}]", tool)
            if not tool.get("defer_loading"):
                self.shown[tool["name"]] = tool
        if any(t.get("defer_loading") for t in self.tools) and not any(
            t["type"] == "tool_search" for t in self.tools
        ):
            raise Refused("tools: deferred tools need tool_search")  # OTS; STRICT

    def _tool(self, where: str, tool: dict[str, Any]) -> None:
        if tool.get("type") != "function" or not NAME.fullmatch(tool.get("name", "")):
            raise Refused(f"Invalid '{where}.name': string does not match pattern '^[a-zA-Z0-9_-]+$'.")
        if tool.get("parameters", {}).get("type") != "object":
            raise Refused(f"Invalid schema for function '{tool['name']}': schema must be of type 'object'.")
        if tool["name"] in self.shown or tool["name"] in self.added:
            raise Refused(
                f"{where}: '{tool['name']}' is declared twice"
            )  # STRICT; PI: never repeat loaded names

    def _items(self) -> None:
        open_calls: set[str] = set()
        seen_calls: set[str] = set()
        for index, item in enumerate(self.items):
            kind = item.get("type", "message")
            if kind == "function_call":
                open_calls.add(item["call_id"])
                seen_calls.add(item["call_id"])
                continue
            if kind == "function_call_output":
                if item["call_id"] not in seen_calls:
                    raise Refused(
                        f"No tool call found for function call output with call_id {item['call_id']}."
                    )
                open_calls.discard(item["call_id"])
                continue
            if open_calls and kind != "reasoning":
                raise Refused(
                    f"No tool output found for function call {sorted(open_calls)[0]}."
                )  # STRICT if it follows
            if kind == "additional_tools":
                if item.get("role") != "developer":  # OTS: set role to developer
                    raise Refused(f"Invalid value: '{item.get('role')}'. Supported values are: 'developer'.")
                if not item["tools"]:
                    raise Refused(f"Invalid 'input[{index}].tools': empty array.")
                if "prompt_cache_breakpoint" in item:  # OPC
                    raise Refused(f"Unknown parameter: 'input[{index}].prompt_cache_breakpoint'.")
                for number, tool in enumerate(item["tools"]):
                    self._tool(f"input[{index}].tools[{number}]", tool)
                    self.shown[tool["name"]] = tool
                    self.added.add(tool["name"])
            elif kind == "message":
                if item["role"] not in ("user", "assistant", "developer", "system"):
                    raise Refused(f"Invalid value: '{item['role']}'.")
                if item["role"] in ("developer", "system"):
                    self.texts.append(text_of(item["content"]))
            elif kind != "reasoning":
                raise Refused(f"Invalid value: '{kind}'.")
        if open_calls:
            raise Refused(f"No tool output found for function call {sorted(open_calls)[0]}.")

    def entry(self) -> dict[str, Any]:
        """Return the entry of the log for a request that was accepted."""
        return {
            "status": 200,
            "declared": [tool["name"] for tool in self.tools],
            "shown": sorted(self.shown),
            "allowed": sorted(self.allowed),
            "defined": self.shown,
            "texts": self.texts,
            "messages": self.items,
            "head": digest_of(canonical([self.body.get("instructions") or "", self.tools])),
        }

    def _choice(self) -> None:
        choice = self.body.get("tool_choice") or "auto"
        self.allowed = set(self.shown)
        self.required = choice == "required"
        if choice == "none":
            self.allowed = set()
        if not isinstance(choice, dict):
            return
        named = [choice] if choice["type"] == "function" else choice["tools"]
        if not named:
            raise Refused(
                "Invalid 'tool_choice.tools': empty array. Expected an array with minimum length 1."
            )
        for tool in named:
            declared = {t["name"] for t in self.tools if not t.get("defer_loading")}
            if tool["name"] not in declared | (self.added if self.model.choice_of_added else set()):
                raise Refused(f"Tool choice '{tool['name']}' not found in 'tools' parameter.")  # PAI
        self.allowed = {tool["name"] for tool in named}
        self.required = choice["type"] == "function" or choice["mode"] == "required"


def text_of(content: Any) -> str:
    return content if isinstance(content, str) else " ".join(c.get("text", "") for c in content)


class Cache:
    def __init__(self) -> None:
        self.seen: set[str] = set()

    def usage(self, judge: Judge) -> tuple[int, int]:
        """OPC: the rendered prefix has tools, instructions and items, but neither tool_choice nor allowed_tools."""
        parts = [canonical(judge.tools), judge.body.get("instructions") or "", *map(canonical, judge.items)]
        digest, read, total, hits = hashlib.sha256(), 0, 0, True
        for part in parts:
            digest.update(part.encode() + b"\0")
            total += len(part)
            hits = hits and digest.hexdigest() in self.seen
            read = total if hits else read
            self.seen.add(digest.hexdigest())
        return total, read


def answer(judge: Judge, number: int) -> list[dict[str, Any]]:
    """Return the answer of the scripted model: it reasons, and then does what the user says."""
    output: list[dict[str, Any]] = [
        {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": f"r{number}"}
    ]
    texts: list[str] = []
    step = 0
    for item in judge.items:
        if item.get("role") == "assistant":
            texts, step = [], 0  # the turn ended
        elif item.get("role") == "user":
            texts.append(text_of(item["content"]))
        step += item.get("type") == "reasoning"
    # allowed_tools and none constrain decoding: not even a model that insists can call another tool.
    calls = scripted.calls(texts, step, judge.allowed)
    if judge.allowed != set(judge.shown):
        calls = [call for call in calls if call.name in judge.allowed]
    for position, call in enumerate(calls):
        identity = {"id": f"fc_{number}_{position}", "call_id": f"call_{number}_{position}"}
        written = {"name": call.name, "arguments": json.dumps(call.arguments)}
        output.append({"type": "function_call", **identity, **written, "status": "completed"})
    if len(output) == 1:
        content = [{"type": "output_text", "text": f"done {number}", "annotations": []}]
        message = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed"}
        output.append({**message, "content": content})
    return output


class Server(fakes.Fake):
    """The server."""

    def __init__(self) -> None:
        super().__init__(Handler)
        self.cache, self.lock, self.count = Cache(), threading.Lock(), 0


class Handler(fakes.Handler):
    """A handler of its requests."""

    server: Server

    def do_POST(self) -> None:
        body = self.body()
        server = self.server
        with server.lock:
            server.count += 1
            number = server.count
        try:
            judge = Judge(body)
        except Refused as refused:
            error = {
                "error": {
                    "message": str(refused),
                    "type": "invalid_request_error",
                    "param": None,
                    "code": None,
                }
            }
            return self.answer(400, error, {"status": 400, "message": str(refused), "body": body})
        with server.lock:
            total, read = server.cache.usage(judge)
        document = {
            "id": f"resp_{number}",
            "object": "response",
            "created_at": number,
            "model": body["model"],
            "status": "completed",
            "error": None,
            "incomplete_details": None,
            "instructions": body.get("instructions"),
            "metadata": {},
            "output": answer(judge, number),
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "temperature": 1.0,
            "top_p": 1.0,
            "usage": {
                "input_tokens": total,
                "input_tokens_details": {"cached_tokens": read, "cache_write_tokens": 0},
                "output_tokens": 1,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": total + 1,
            },
        }
        self.answer(
            200,
            document,
            {**judge.entry(), "total": total, "read": read},
        )
