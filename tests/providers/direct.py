"""The strict fakes without a network: thousands of requests in seconds."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.providers import anthropic_server, chat_server, gemini_server, openai_server, soak


class Log:
    """What a fake says of each request."""

    def __init__(self) -> None:
        self.log: list[dict[str, Any]] = []


Answered = tuple[dict[str, Any], list[Any], list[tuple[str, str, Any]]]


def _anthropic(model: str, parameters: Mapping[str, Any], number: int) -> Answered:
    body = _json({"model": model, **parameters})
    betas = {*body.pop("extra_headers", {}).get("anthropic-beta", "").split(",")}
    judge = anthropic_server.Judge(body, betas)
    content = anthropic_server.answer(judge, number)
    calls = [(block["id"], block["name"], block["input"]) for block in content if block["type"] == "tool_use"]
    return judge.entry(), [{"role": "assistant", "content": content}], calls


def _responses(model: str, parameters: Mapping[str, Any], number: int) -> Answered:
    judge = openai_server.Judge(_json({"model": model, **parameters}))
    items = openai_server.answer(judge, number)
    calls = [
        (item["call_id"], item["name"], json.loads(item["arguments"]))
        for item in items
        if item["type"] == "function_call"
    ]
    return judge.entry(), items, calls


def _chat(model: str, parameters: Mapping[str, Any], number: int) -> Answered:
    judge = chat_server.Judge(_json({"model": model, **parameters}))
    message = chat_server.answer(judge, number)
    calls = [
        (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in message.get("tool_calls", ())
    ]
    return judge.entry(), [message], calls


def _gemini(model: str, parameters: Mapping[str, Any], number: int) -> Answered:
    body = gemini_server.in_camel_case(_json({"contents": parameters["contents"], **parameters["config"]}))
    judge = gemini_server.Judge(model, body)
    content = gemini_server.answer(judge, number)
    called = gemini_server.parts_of(content, "functionCall")
    return judge.entry(), [content], [(call["id"], call["name"], call["args"]) for call in called]


_FORMS: dict[str, Callable[[str, Mapping[str, Any], int], Answered]] = {
    "anthropic": _anthropic,
    "gemini": _gemini,
    "openai_chat": _chat,
    "openai_responses": _responses,
}


def service(form: str) -> soak.Service:
    """Return a provider. What it refuses is raised: anthropic_server.Refused."""
    log = Log()

    def send(model: str, parameters: Mapping[str, Any]) -> Any:
        entry, items, calls = _FORMS[form](model, parameters, len(log.log))
        log.log.append(entry)
        return items, calls

    return soak.Service(form, log, send)


def _json(value: Any) -> Any:
    return json.loads(json.dumps(value))
