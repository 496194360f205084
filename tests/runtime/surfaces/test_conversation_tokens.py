"""Tests of the tokens of conversations."""

from __future__ import annotations

from typing import Any

import pytest

from toolbelt.core import conversations
from toolbelt.runtime.surfaces import conversation_tokens

DIGEST = "0123456789abcdef"


def token(count: int = 2) -> conversation_tokens.Token:
    """Return the token of a conversation with this many tools, one of which was withdrawn."""
    tools = {f"plugin__tool_{number}": DIGEST for number in range(count)}
    now = conversations.Content(tools=tools, sections={"toolkit desk": DIGEST}, loadable={"spare": DIGEST})
    view = conversations.View(
        start=now,
        deferred=frozenset({"plugin__tool_1"}),
        tools={"plugin__tool_0": conversations.Told(DIGEST, "withdrawn")},
        sections={"toolkit desk": ""},
        loadable={},
        now=DIGEST,
    )
    return conversation_tokens.Token(
        line="anthropic/claude", view=view, root="r", chain="c", entries=3, size=99, dispatches=True
    )


def test_a_token_reads_as_it_was_sealed() -> None:
    assert conversation_tokens.unseal("ada", conversation_tokens.seal("ada", token())) == token()


def test_equal_states_have_equal_tokens() -> None:
    assert conversation_tokens.seal("ada", token()) == conversation_tokens.seal("ada", token())


def test_a_token_of_another_agent_or_a_changed_one_is_not_read() -> None:
    text = conversation_tokens.seal("ada", token())
    changed = text[:-2] + ("AA" if text[-2:] != "AA" else "BB")
    for wrong in (
        changed,
        text[:40],
        "",
        "tbc1.",
        "tbc1.%%%",
        "tbc2." + text[5:],
        "x" * 300_000,
        text + "=\n",
    ):
        assert conversation_tokens.unseal("ada", wrong) is None
    assert conversation_tokens.unseal("eve", text) is None


def test_a_token_of_another_version_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(conversation_tokens, "VERSION", 2)
        text = conversation_tokens.seal("ada", token())
    assert conversation_tokens.unseal("ada", text) is None


def test_a_token_of_an_agent_with_a_thousand_tools_can_be_sent_back() -> None:
    assert len(conversation_tokens.seal("ada", token(1000))) < conversation_tokens.MAX_LENGTH / 4


def test_a_token_stays_valid_while_the_secret_key_is_replaced(settings: Any) -> None:
    text = conversation_tokens.seal("ada", token())
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another-" * 8
    assert conversation_tokens.unseal("ada", text) == token()
