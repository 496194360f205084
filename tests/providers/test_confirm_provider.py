"""Tests the program with which a user confirms, with a key of their own, what the fakes cannot prove."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scripts import confirm_provider
from tests.providers import anthropic_server, chat_server, gemini_server, openai_server

pytestmark = pytest.mark.slow

PROVIDERS: list[tuple[str, str, Callable[[], Any], str]] = [
    ("anthropic", "claude-opus-5-5", anthropic_server.Server, ""),
    ("anthropic", "claude-haiku-4-5", anthropic_server.Server, ""),
    ("openai_responses", "gpt-5.6", openai_server.Server, "/v1"),
    ("openai_chat", "qwen3-coder", chat_server.Server, "/v1"),
    ("gemini", "gemini-3.5-flash", gemini_server.Server, ""),
]


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "k-secret")


@pytest.mark.parametrize(("form", "model", "server", "path"), PROVIDERS)
def test_a_provider_that_accepts_everything_is_confirmed(
    form: str, model: str, server: Callable[[], Any], path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with server() as running:
        code = confirm_provider.main([form, model, "--base-url", f"{running.address}{path}"])
        log = running.log
    printed = capsys.readouterr().out
    assert [entry["message"] for entry in log if entry["status"] != 200] == []
    assert code == 0
    assert len({entry["head"] for entry in log}) == 1
    assert 15 <= len(log) <= 20
    assert f"{len(log)} requests, none refused." in printed
    assert "called load_tools" in printed
    assert "k-secret" not in printed


def test_a_refusal_is_shown_and_ends_with_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # As if Toolbelt rewrote the system prompt with each request.
    real = confirm_provider._claude
    numbers = iter(range(100))

    def rewriting(model: str, base_url: str | None) -> confirm_provider.Send:
        send = real(model, base_url)
        return lambda parameters: send({**parameters, "system": f"Version {next(numbers)}."})

    monkeypatch.setitem(confirm_provider._SENDERS, "anthropic", rewriting)
    with anthropic_server.Server() as running:
        code = confirm_provider.main(["anthropic", "claude-opus-5-5", "--base-url", running.address])
    printed = capsys.readouterr().out
    assert code == 1
    assert "REFUSED" in printed
    assert "bound to a different conversation" in printed
