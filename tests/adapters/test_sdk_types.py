"""The providers' SDKs accept the rendered parameters for every tool of the real catalogs.

A type's word for it is not enough: a TypedDict drops a key that it does not know and says nothing. So what comes out of
a check is compared with what went in. The SDKs are slow to import: each is imported by the test that needs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pydantic
import pytest

from tests.adapters import documents
from toolbelt import adapters
from toolbelt.core import meta_tools

MODEL = {"model": "any"}
SAID = [{"role": "user", "content": "Hello."}]


def kept(adapter: pydantic.TypeAdapter[Any], value: Any) -> Any:
    """Return what an SDK's type keeps of a value, as JSON."""
    return plain(adapter.validate_python(value))


def plain(value: Any) -> Any:
    """Return a checked value as JSON; some types check a list only while it is read."""
    match value:
        case Mapping():
            return {key: plain(one) for key, one in value.items()}
        case str() | int() | float() | None:
            return value
    return [plain(one) for one in value]


def requests(form: str) -> Iterator[dict[str, Any]]:
    """Render surfaces that have each real tool in one of them; give what the first step and the later ones pass."""
    own = [one.document() for one in meta_tools.DEFINITIONS.values()]
    tools = documents.real()
    for start in range(0, len(tools), 100):
        batch = tools[start : start + 100]
        names = [one["name"] for one in batch]
        for directive in (
            None,
            documents.focus(*names[:3]),
            documents.focus(*names[:3], required=True),
            documents.focus(*names, required=True),
        ):
            yield from steps(form, documents.document(*batch, *own, policy="Be kind.", directive=directive))
    must = documents.focus(tools[0]["name"], required=True)
    yield from steps(form, documents.document(*tools[:2], directive=must))
    yield from steps(form, documents.document())


def steps(form: str, given: documents.Document) -> Iterator[dict[str, Any]]:
    """Return what is passed at the first step, and after it."""
    said = adapters.render(form, given)
    first = said.pop("first_step", {})
    yield {**said, **first}
    yield said


def test_all_real_tools_are_there() -> None:
    assert len(documents.real()) == 484


@pytest.mark.slow
def test_openai_chat_takes_every_request() -> None:
    from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming

    adapter = pydantic.TypeAdapter(CompletionCreateParamsNonStreaming)
    for said in requests("openai_chat"):
        request = {**MODEL, **said, "messages": [*said.get("messages", ()), *SAID]}
        assert kept(adapter, request) == request


@pytest.mark.slow
def test_openai_responses_takes_every_request() -> None:
    from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming

    adapter = pydantic.TypeAdapter(ResponseCreateParamsNonStreaming)
    for said in requests("openai_responses"):
        request = {**MODEL, **said, "input": SAID}
        assert kept(adapter, request) == request


@pytest.mark.slow
def test_anthropic_takes_every_request() -> None:
    from anthropic.types.message_create_params import MessageCreateParamsNonStreaming

    adapter = pydantic.TypeAdapter(MessageCreateParamsNonStreaming)
    for said in requests("anthropic"):
        request = {**MODEL, **said, "max_tokens": 1000, "messages": SAID}
        assert kept(adapter, request) == request


@pytest.mark.slow
def test_gemini_takes_every_config() -> None:
    from google.genai import types

    for said in requests("gemini"):
        config = types.GenerateContentConfig.model_validate(said)
        assert config.model_dump(mode="json", exclude_unset=True) == said


@pytest.mark.slow
@pytest.mark.parametrize("revision", ["_v2025_11_25", "_v2026_07_28"])
def test_mcp_takes_every_list_of_either_era(revision: str) -> None:
    import importlib

    types = importlib.import_module(f"mcp_types.{revision}")
    for said in requests("mcp"):
        fields = {"cacheScope": "private", "resultType": "complete", "ttlMs": 0}
        listed = types.ListToolsResult.model_validate({"tools": said["tools"], **fields})
        assert listed.model_dump(mode="json", by_alias=True, exclude_unset=True)["tools"] == said["tools"]
        chosen = types.ToolChoice.model_validate(said["toolChoice"])
        assert chosen.model_dump(mode="json", exclude_unset=True) == said["toolChoice"]


def test_the_check_sees_a_key_that_no_type_knows() -> None:
    from openai.types.chat import ChatCompletionFunctionToolParam

    adapter = pydantic.TypeAdapter(ChatCompletionFunctionToolParam)
    odd = {"type": "function", "function": {"name": "it", "parameters": {}, "odd": True}}
    assert kept(adapter, odd) != odd
