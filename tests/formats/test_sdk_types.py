"""Tests that the providers' SDKs accept the rendered parameters for every tool of the real catalogs.

Validation alone is not enough: a TypedDict silently drops a key that it does not know. So the output of a check is
compared with its input. The SDKs are slow to import: each is imported by the test that needs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pydantic
import pytest

from tests.formats import documents

MODEL = {"model": "any"}
MESSAGES = [{"role": "user", "content": "Hello."}]


def validated(adapter: pydantic.TypeAdapter[Any], value: Any) -> Any:
    """Return the value as JSON after validation by an SDK's type."""
    return as_json(adapter.validate_python(value))


def as_json(value: Any) -> Any:
    """Return a checked value as JSON; some types check a list only while it is read."""
    match value:
        case Mapping():
            return {key: as_json(item) for key, item in value.items()}
        case str() | int() | float() | None:
            return value
    return [as_json(item) for item in value]


def test_all_tools_of_the_real_catalogs_are_loaded() -> None:
    assert len(documents.real_tools()) == 484


@pytest.mark.slow
def test_openai_chat_accepts_every_request() -> None:
    from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming

    adapter = pydantic.TypeAdapter(CompletionCreateParamsNonStreaming)
    for parameters in documents.requests("openai_chat"):
        request = {**MODEL, **parameters, "messages": [*parameters.get("messages", ()), *MESSAGES]}
        assert validated(adapter, request) == request


@pytest.mark.slow
def test_openai_responses_accepts_every_request() -> None:
    from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming

    adapter = pydantic.TypeAdapter(ResponseCreateParamsNonStreaming)
    for parameters in documents.requests("openai_responses"):
        request = {**MODEL, **parameters, "input": MESSAGES}
        assert validated(adapter, request) == request


@pytest.mark.slow
def test_anthropic_accepts_every_request() -> None:
    from anthropic.types.message_create_params import MessageCreateParamsNonStreaming

    adapter = pydantic.TypeAdapter(MessageCreateParamsNonStreaming)
    for parameters in documents.requests("anthropic"):
        request = {**MODEL, **parameters, "max_tokens": 1000, "messages": MESSAGES}
        assert validated(adapter, request) == request


@pytest.mark.slow
def test_gemini_accepts_every_config() -> None:
    from google.genai import types

    for parameters in documents.requests("gemini"):
        config = types.GenerateContentConfig.model_validate(parameters)
        assert config.model_dump(mode="json", exclude_unset=True) == parameters


@pytest.mark.slow
@pytest.mark.parametrize("revision", ["_v2025_11_25", "_v2026_07_28"])
def test_both_mcp_revisions_accept_every_tool_list(revision: str) -> None:
    import importlib

    types = importlib.import_module(f"mcp_types.{revision}")
    for parameters in documents.requests("mcp"):
        fields = {"cacheScope": "private", "resultType": "complete", "ttlMs": 0}
        listed = types.ListToolsResult.model_validate({"tools": parameters["tools"], **fields})
        assert (
            listed.model_dump(mode="json", by_alias=True, exclude_unset=True)["tools"] == parameters["tools"]
        )
        chosen = types.ToolChoice.model_validate(parameters["toolChoice"])
        assert chosen.model_dump(mode="json", exclude_unset=True) == parameters["toolChoice"]


def test_an_unknown_key_does_not_survive_validation() -> None:
    from openai.types.chat import ChatCompletionFunctionToolParam

    adapter = pydantic.TypeAdapter(ChatCompletionFunctionToolParam)
    odd = {"type": "function", "function": {"name": "it", "parameters": {}, "odd": True}}
    assert validated(adapter, odd) != odd
