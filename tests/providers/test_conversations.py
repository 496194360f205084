"""Tests that no change breaks a conversation: the providers' own SDKs against strict fakes of their services."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.providers import soak

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def services() -> Iterator[dict[str, soak.Service]]:
    with soak.serving() as services:
        yield services


PROFILES = [
    ("anthropic", "claude-opus-5-5", "api"),
    ("anthropic", "claude-haiku-5-5", "api"),
    ("anthropic", "claude-opus-5-5", "bedrock"),
    ("anthropic", "claude-haiku-4-5", "api"),
    ("openai_responses", "gpt-5.6", "api"),
    ("openai_responses", "gpt-5.4", "api"),
    ("openai_chat", "gpt-5.6", "api"),
    ("openai_chat", "qwen3-coder", "api"),
    ("openai_chat", "gemma-3", "api"),
    ("gemini", "gemini-3.5-flash", "api"),
]


@pytest.mark.parametrize(("form", "model", "platform"), PROFILES)
def test_random_changes_break_no_conversation(
    form: str, model: str, platform: str, services: dict[str, Any]
) -> None:
    counts = soak.Soak(services[form], model, seed=7, platform=platform).run(300)
    assert counts["requests"] > 50
    # Gemini calls nothing that it may not.
    expected = {"refusals", "forks", "failures"} | ({"withdrawn"} if form != "gemini" else set())
    assert expected <= counts.keys()


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("form", "model", "platform"), PROFILES)
def test_ten_thousand_random_changes_break_no_conversation(
    form: str, model: str, platform: str, seed: int, services: dict[str, Any]
) -> None:
    soak.Soak(services[form], model, seed, platform).run(10_000)
