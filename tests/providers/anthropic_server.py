"""A strict fake of Anthropic's Messages API: the documented rules of order, the prefix check, tool choice, the cache.

Each rule names its source (see models.py). The fake is stricter than the API in two places, marked STRICT, because it
checks integrations:

 * the check is enforced for every request, as for accounts created since 2026-08-31;
 * a thinking block whose text was changed is refused, although the API only looks at the signature.

The signature of a thinking block is a digest of everything before it, so the fake needs no memory: any worker, any
process and any restart decides alike. The model is scripted: the user's text says what it does (``call NAME {…}``,
``call NAME + NAME``, and after the results what stands behind ``then``; anything else: text). It only calls tools that
are offered at that point; with ``insist NAME`` it calls one although it is not, as models do that remember a tool.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from dataclasses import dataclass, field
from typing import Any

from tests.providers import fakes, scripted
from tests.providers.models import CLAUDE

BY_REFERENCE, INLINE = "mid-conversation-tool-changes-2026-07-01", "inline-tools-2026-09-15"
CLEAR_AT, CONTROLS = "mid-conversation-system-clear-at-2026-08-21", "thinking-binding-controls-2026-08-01"
LIMIT_TOOLS, LIMIT_BYTES = 10_000, 4_194_304
NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")


class Refused(Exception):
    """The request is answered 400."""

    def __init__(self, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def bare(value: Any) -> Any:
    """Without cache_control, which is in no prefix (PT: What counts as an edit)."""
    if isinstance(value, dict):
        return {k: bare(v) for k, v in value.items() if k != "cache_control"}
    return [bare(v) for v in value] if isinstance(value, list) else value


def blocks(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def compacted(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what the model reads of messages that were compacted: a summary, and the changes of tools before it."""
    points = [
        index
        for index, message in enumerate(messages)
        if any(block["type"] == "compaction" for block in blocks(message["content"]))
    ]
    if not points:
        return messages
    before, answer = messages[: points[-1]], messages[points[-1]]
    changes = [
        block
        for message in before
        if message["role"] == "system"
        for block in blocks(message["content"])
        if block["type"] != "text"
    ]
    kept = [block for block in blocks(answer["content"]) if block["type"] != "compaction"]
    said = [{"role": "system", "content": changes}] if changes else []
    summary = {"role": "user", "content": "The conversation so far, in short."}
    return [summary, *said, {**answer, "content": kept}, *messages[points[-1] + 1 :]]


@dataclass
class Offered:
    """The tools as of a point in the conversation: what the model can see there."""

    defined: dict[str, dict[str, Any]] = field(default_factory=dict)
    shown: set[str] = field(default_factory=set)
    sent_later: dict[str, int] = field(
        default_factory=dict
    )  # bytes of definitions after the first user message


class Judge:
    """Checks one request. Raises Refused; afterwards has what the model sees, and what the answer reports."""

    def __init__(self, body: dict[str, Any], betas: set[str]) -> None:
        self.body, self.betas = body, betas
        if body.get("model") not in CLAUDE:
            raise Refused(f"model: {body.get('model')}")
        self.model = CLAUDE[body["model"]]
        self.tools, self.messages = body.get("tools") or [], compacted(body["messages"])
        self.offered = Offered()
        self.transformations: list[dict[str, Any]] = []
        self.visible_system: list[str] = [b["text"] for b in blocks(body.get("system") or [])]
        self._declared()
        self._choice()
        self._order()
        self._changes()
        self._prefix()

    def _declared(self) -> None:
        names = [tool["name"] for tool in self.tools]
        if len(set(names)) < len(names):
            raise Refused("tools: Tool names must be unique.")
        for index, tool in enumerate(self.tools):
            if not NAME.fullmatch(tool["name"]):
                raise Refused(
                    f"tools.{index}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
                )
            # MCS: every tool is offered from the start unless deferred.
            self.offered.defined[tool["name"]] = bare(tool)
            if not tool.get("defer_loading"):
                self.offered.shown.add(tool["name"])
            elif tool.get("cache_control"):
                raise Refused(f"tools.{index}: a deferred tool cannot carry cache_control")
        for block in blocks(self.body.get("system") or []):
            if not block["text"].strip():
                raise Refused("system: text content blocks must contain non-whitespace text")

    def _choice(self) -> None:
        self.choice = kind = (self.body.get("tool_choice") or {"type": "auto"})["type"]
        if self.body.get("tool_choice") and not self.tools:
            raise Refused("tool_choice: tool_choice may only be specified while providing tools.")
        if kind in ("any", "tool") and not self.model.forced:
            # What's new in Opus 5.5 / Sonnet 5.5 / Fable 5.1: "Forced tool use returns an error"; PAI.
            raise Refused(f'tool_choice.type "{kind}" is not supported on this model. Use "auto".')
        if kind in ("any", "tool") and (self.body.get("thinking") or {}).get("type") == "enabled":
            # Extended thinking with tool use: "auto" and "none" only.
            raise Refused("Thinking may not be enabled when tool_choice forces tool use.")

    def _order(self) -> None:
        if not self.messages:
            raise Refused("messages: at least one message is required")
        for index, message in enumerate(self.messages):
            before = self.messages[index - 1] if index else None
            if message["role"] == "system":
                self._system_message(index, message)
            elif message["role"] == "user":
                self._results(index, message, before)
            elif message["role"] != "assistant":
                raise Refused(f"messages.{index}.role: Input should be 'user', 'assistant' or 'system'")
            if message["role"] == "assistant" and not blocks(message["content"]):
                raise Refused(f"messages.{index}: all messages must have non-empty content")
        # Every tool_use has its result in the next user message (handle-tool-calls: formatting requirements).
        for index, message in enumerate(self.messages):
            if message["role"] != "assistant":
                continue
            asked = {b["id"] for b in blocks(message["content"]) if b["type"] == "tool_use"}
            following = self.messages[index + 1] if index + 1 < len(self.messages) else None
            given = {
                b["tool_use_id"]
                for b in (blocks(following["content"]) if following and following["role"] == "user" else [])
                if b["type"] == "tool_result"
            }
            if asked - given:
                raise Refused(
                    f"messages.{index + 1}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                    f"{', '.join(sorted(asked - given))}."
                )

    def _results(self, index: int, message: dict[str, Any], before: dict[str, Any] | None) -> None:
        content, seen_other = blocks(message["content"]), False
        asked = (
            {b["id"] for b in blocks(before["content"]) if b["type"] == "tool_use"}
            if before and before["role"] == "assistant"
            else set()
        )
        for number, block in enumerate(content):
            if block["type"] == "tool_result":
                if seen_other:
                    raise Refused(f"messages.{index}.content.{number}: tool_result blocks must come first")
                if block["tool_use_id"] not in asked:
                    raise Refused(
                        f"messages.{index}.content.{number}: unexpected `tool_use_id` found in `tool_result` blocks: "
                        f"{block['tool_use_id']}."
                    )
            else:
                seen_other = True
                if block["type"] == "text" and not block["text"].strip():
                    raise Refused(f"messages.{index}.content.{number}: text content blocks must be non-empty")

    def _system_message(self, index: int, message: dict[str, Any]) -> None:
        if self.model.system == "rejected":
            raise Refused(f"messages.{index}: role 'system' is not supported on this model")
        content = blocks(message["content"])
        if not content:
            raise Refused(f"messages.{index}: a system message needs content")
        # MCS, Limitations: not first; follows a user turn; precedes an assistant turn or ends the array. Consecutive
        # system messages count as one.
        first, last = index, index
        while first and self.messages[first - 1]["role"] == "system":
            first -= 1
        while last + 1 < len(self.messages) and self.messages[last + 1]["role"] == "system":
            last += 1
        if first == 0 or self.messages[first - 1]["role"] != "user":
            raise Refused(
                f"messages.{index}: role 'system' must follow a 'user' message or an 'assistant' message ending in a "
                "server tool result"
            )
        if last + 1 < len(self.messages) and self.messages[last + 1]["role"] != "assistant":
            raise Refused(
                f"messages.{index}: role 'system' must precede an 'assistant' message or end the array"
            )
        changes = [b for b in content if b["type"] in ("tool_addition", "tool_removal")]
        if "clear_at" in message:
            if CLEAR_AT not in self.betas:
                raise Refused(f"messages.{index}.clear_at: Extra inputs are not permitted")
            if message["clear_at"] == "next_user_message" and changes:
                raise Refused(
                    f"messages.{index}: a turn-scoped system message supports text blocks only "
                    "(clear_at: 'next_user_message')"
                )
            if message["clear_at"] == "next_user_message" and any("cache_control" in b for b in content):
                raise Refused(
                    f"messages.{index}.content.0: cache_control is not permitted on a turn-scoped system message"
                )
        for number, block in enumerate(content):
            if block["type"] == "text":
                if not block["text"].strip():
                    raise Refused(f"messages.{index}.content.{number}: text content blocks must be non-empty")
            elif block["type"] in ("tool_addition", "tool_removal"):
                if not self.model.changes:
                    raise Refused(
                        f"messages.{index}.content.{number}: tool changes are not supported on this model"
                    )
                if not self.betas & {BY_REFERENCE, INLINE}:
                    raise Refused(
                        f"messages.{index}.content.{number}: Input tag '{block['type']}' found using 'type' does not "
                        "match any of the expected tags"
                    )
            else:
                raise Refused(
                    f"messages.{index}.content.{number}: {block['type']} is not permitted in a system message"
                )

    def _changes(self) -> None:
        """Replay the tool changes, so that the tools at the end are what the model sees (MCS: tool changes)."""
        state, started = self.offered, False
        for index, message in enumerate(self.messages):
            started = started or message["role"] == "user"
            if message["role"] != "system":
                continue
            cleared = message.get("clear_at") == "next_user_message" and any(
                m["role"] == "user" for m in self.messages[index:]
            )
            for number, block in enumerate(blocks(message["content"])):
                where = f"messages.{index}.content.{number}"
                if block["type"] == "text" and not cleared:
                    self.visible_system.append(block["text"])
                if block["type"] == "tool_removal":
                    name = self._reference(where, block)
                    state.shown.discard(name)
                    state.sent_later.pop(name, None)
                if block["type"] == "tool_addition" and block["tool"]["type"] == "tool_definition":
                    if INLINE not in self.betas:
                        raise Refused(f"{where}.tool: defining a tool here requires the `{INLINE}` beta")
                    definition = bare(block["tool"]["definition"])
                    before = state.defined.get(definition["name"])
                    if before is not None and before.get("type", "custom") != definition.get(
                        "type", "custom"
                    ):
                        raise Refused(f"{where}: name is used by another type of tool", "tool_name_conflict")
                    if not NAME.fullmatch(definition["name"]):
                        raise Refused(f"{where}.tool.definition.name: String should match pattern")
                    state.defined[definition["name"]] = definition
                    state.shown.add(definition["name"])
                    state.sent_later[definition["name"]] = len(canonical(definition).encode())
                elif block["type"] == "tool_addition":
                    state.shown.add(self._reference(where, block))
            if len(state.sent_later) > LIMIT_TOOLS or sum(state.sent_later.values()) > LIMIT_BYTES:
                raise Refused(
                    f"messages.{index}: too many or too large tools are available",
                    "available_tools_limit_exceeded",
                )

    def _reference(self, where: str, block: dict[str, Any]) -> str:
        name: str = block["tool"]["name"]
        if block["tool"]["type"] != "tool_reference" or name not in self.offered.defined:
            raise Refused(
                f"{where}: tool_addition/tool_removal references unknown tool '{name}'",
                "tool_reference_unresolved",
            )
        return name

    def digests(self) -> list[str]:
        """The digest of the prefix before each message; thinking blocks are no part of it (PT: prefix check)."""
        # PT: a deferred tool that nothing has referenced is no part of the prefix. A reference makes it part of the
        # prefix from there on, because its definition is rendered at that point.
        tools = [t for t in bare(self.tools) if not t.get("defer_loading")]
        deferred = {t["name"]: t for t in bare(self.tools) if t.get("defer_loading")}
        digest = hashlib.sha256(canonical([bare(self.body.get("system") or []), tools]).encode())
        result = []
        for message in self.messages:
            result.append(digest.hexdigest())
            kept = [
                b for b in blocks(message["content"]) if b["type"] not in ("thinking", "redacted_thinking")
            ]
            named = [deferred.pop(b["tool"].get("name"), None) for b in kept if b["type"] == "tool_addition"]
            digest.update(canonical([message["role"], message.get("clear_at"), bare(kept), named]).encode())
        self.end = digest.hexdigest()
        return result

    def _prefix(self) -> None:
        behavior = ((self.body.get("thinking") or {}).get("block_binding") or {}).get(
            "prefix_mismatch_behavior"
        )
        if behavior and CONTROLS not in self.betas:
            raise Refused("thinking.block_binding: Extra inputs are not permitted")
        previous, digests, dropping = "", self.digests(), False
        if not self.model.checks:
            return
        for index, message in enumerate(self.messages):
            for number, block in enumerate(blocks(message["content"])):
                if block["type"] not in ("thinking", "redacted_thinking"):
                    continue
                path = f"messages.{index}.content.{number}"
                made_by, prefix, chain, text = [*block["signature"].split("."), "", "", "", ""][:4]
                if text != digest_of(block.get("thinking", "")):  # STRICT
                    raise Refused(f"{path}: Invalid `signature` in `thinking` block")
                if made_by != self.body["model"]:
                    self.transformations.append(
                        {"type": "thinking_dropped", "path": path, "reason": "model_binding_mismatch"}
                    )
                    continue
                # The blocks that are sent must be an unbroken run: a gap fails, blocks left out at the front do not.
                broken = previous and chain != digest_of(previous)
                if dropping or broken or prefix != digests[index]:
                    if behavior == "drop_block":
                        dropping = True
                        self.transformations.append(
                            {"type": "thinking_dropped", "path": path, "reason": "prefix_binding_mismatch"}
                        )
                        continue
                    raise Refused(
                        f"{path}: Invalid `signature` in `thinking` block. The block is bound to a different "
                        "conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` "
                        'to "drop_block".'
                    )
                previous = block["signature"]
        self.previous = previous

    def entry(self) -> dict[str, Any]:
        """Return the entry of the log for a request that was accepted."""
        system, tools = bare(self.body.get("system") or []), bare(self.body.get("tools") or [])
        said = [
            notice
            for message in self.messages
            if message["role"] == "user"
            for block in blocks(message["content"])
            if block["type"] == "text"
            for notice in scripted.notices(block["text"])
        ]
        return {
            "status": 200,
            "compacted": self.messages is not self.body["messages"],
            "declared": [tool["name"] for tool in tools if not tool.get("defer_loading")],
            "in_reserve": [tool["name"] for tool in tools if tool.get("defer_loading")],
            "shown": sorted(self.offered.shown),
            "system": self.visible_system,
            "texts": [*self.visible_system, *said],
            "dropped": self.transformations,
            "defined": {name: self.offered.defined[name] for name in self.offered.shown},
            "messages": self.messages,
            "choice": self.choice,
            "head": digest_of(canonical([system, tools])),
        }

    def signature(self, thinking: str) -> str:
        return ".".join(
            (self.body["model"], self.end, digest_of(getattr(self, "previous", "")), digest_of(thinking))
        )


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Cache:
    """Prefixes that were read before, by the digest after each part; counts characters, as tokens would be (C3, PT)."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def usage(self, judge: Judge) -> dict[str, int]:
        # tool_choice is in the key of the messages' cache only (prompt caching: What invalidates the cache).
        head = canonical([bare(judge.tools)])
        parts = [head, canonical(bare(judge.body.get("system") or []))]
        parts += [canonical(bare(m)) for m in judge.messages]
        choice = canonical(judge.body.get("tool_choice") or {"type": "auto"})
        digest, read, total, hits = hashlib.sha256(), 0, 0, True
        keys = []
        for number, part in enumerate(parts):
            digest.update(part.encode() + (choice.encode() if number == 2 else b""))
            keys.append(digest.hexdigest())
            total += len(part)
            hits = hits and keys[-1] in self.seen
            read = total if hits else read
        self.seen.update(keys)
        return {
            "input_tokens": 0,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": total - read,
        }


def answer(judge: Judge, number: int) -> list[dict[str, Any]]:
    """Return the answer of the scripted model: it thinks, and then does what the user says."""
    thinking = f"step {number}"
    content: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": thinking, "signature": judge.signature(thinking)}
    ]
    texts: list[str] = []
    step = 0
    for message in judge.messages:
        kinds = {block["type"] for block in blocks(message["content"])}
        if message["role"] == "assistant" and "tool_use" not in kinds:
            texts, step = [], 0  # the turn ended
        elif message["role"] == "assistant":
            step += 1
        elif message["role"] == "user":
            texts += [block["text"] for block in blocks(message["content"]) if block["type"] == "text"]
    offered = set() if judge.choice == "none" else judge.offered.shown
    for position, call in enumerate(scripted.calls(texts, step, offered)):
        identity = {"type": "tool_use", "id": f"toolu_{number}_{position}"}
        content.append({**identity, "name": call.name, "input": call.arguments})
    if len(content) == 1:
        content.append({"type": "text", "text": f"done {number}"})
    return content


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
        betas = {b.strip() for b in self.headers.get("anthropic-beta", "").split(",") if b.strip()}
        server = self.server
        with server.lock:
            server.count += 1
            number = server.count
        try:
            judge = Judge(body, betas)
        except Refused as refused:
            entry = {"status": 400, "message": str(refused), "code": refused.code, "body": body}
            error: dict[str, Any] = {"type": "invalid_request_error", "message": str(refused)}
            if refused.code:
                error["details"] = {"error_code": refused.code}
            return self.answer(400, {"type": "error", "error": error}, entry)
        with server.lock:
            usage = server.cache.usage(judge)
        content = answer(judge, number)
        stop = "tool_use" if any(b["type"] == "tool_use" for b in content) else "end_turn"
        document = {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": {**usage, "output_tokens": 1},
        }
        if CONTROLS in betas:
            document["input_transformations"] = judge.transformations
        entry = {**judge.entry(), "usage": usage}
        if body.get("stream"):
            return self._stream(document, entry)
        self.answer(200, document, entry)

    def _stream(self, document: dict[str, Any], entry: dict[str, Any]) -> None:
        """The same answer as server-sent events."""
        self.server.log.append(entry)
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": {**document, "content": [], "stop_reason": None}}
        ]
        for index, block in enumerate(document["content"]):
            empty_blocks: dict[str, dict[str, Any]] = {
                "text": {"text": ""},
                "thinking": {"thinking": "", "signature": ""},
                "tool_use": {"input": {}},
            }
            empty = empty_blocks[block["type"]]
            events.append(
                {"type": "content_block_start", "index": index, "content_block": {**block, **empty}}
            )
            deltas = {
                "text": [{"type": "text_delta", "text": block.get("text")}],
                "thinking": [
                    {"type": "thinking_delta", "thinking": block.get("thinking")},
                    {"type": "signature_delta", "signature": block.get("signature")},
                ],
                "tool_use": [{"type": "input_json_delta", "partial_json": json.dumps(block.get("input"))}],
            }[block["type"]]
            events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
            events.append({"type": "content_block_stop", "index": index})
        events.append(
            {
                "type": "message_delta",
                "delta": {"stop_reason": document["stop_reason"], "stop_sequence": None},
                "usage": {"output_tokens": 1},
            }
        )
        events.append({"type": "message_stop"})
        data = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events).encode()
        self.write(200, "text/event-stream", data)
