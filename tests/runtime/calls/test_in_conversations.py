"""Tests of calls that a model makes in a conversation: refused in words that fit what it was told."""

from __future__ import annotations

from typing import Any

import pytest

from toolbelt import models, testing
from toolbelt.adapters.connection import protocol
from toolbelt.control.access import switches
from toolbelt.control.config import belts
from toolbelt.runtime import connection

pytestmark = pytest.mark.django_db

RUN = protocol.Run.begin("s1")
BELT: dict[str, Any] = {
    "tools": [{"key": key, "annotations": {"readOnlyHint": True}} for key in ("clock", "mail", "secret")],
    "toolkits": [
        {"key": "desk", "members": ["clock"]},
        {"key": "post", "members": ["mail"]},
        {"key": "vault", "members": ["secret"]},
    ],
    "agents": [{"key": "ada", "tools_config": {"desk": True, "post": True, "vault": False}}],
}


@pytest.fixture
def ada(db: None) -> connection.BlockingLocal:
    belts.import_(testing.OPERATOR, BELT)
    return connection.BlockingLocal("ada")


def begin(ada: connection.BlockingLocal, model: str) -> str:
    """Begin a conversation, and return its token."""
    document = ada.surface(RUN, form="anthropic", model=model, conversation={"token": None})
    token: str = document["append"]["token"]
    return token


def code(answer: protocol.Document) -> Any:
    return answer["code"] if answer["is_error"] else None


@pytest.mark.parametrize("hide", [False, True])
def test_a_tool_that_was_turned_off_is_withdrawn_for_a_model_that_knows_it(
    ada: connection.BlockingLocal, hide: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolbelt.conf.HIDE_DENIED", hide)
    token = begin(ada, "claude-opus-5-5")
    switches.flip(testing.OPERATOR, "ada", "post", False)
    refusal = ada.call(RUN, "mail", {}, token)
    assert code(refusal) == "tool-withdrawn"
    assert refusal["message"] == "mail is no longer available in this conversation. Go on without it."
    record = models.CallRecord.objects.get()
    assert (record.outcome, record.reason) == ("tool-withdrawn", "switch-off")
    # It is the same gate: without the conversation, it is refused, too.
    assert code(ada.call(RUN, "mail", {})) == ("unknown-tool" if hide else "tool-denied")


def test_a_token_reveals_nothing_of_a_tool_that_its_model_does_not_know(
    ada: connection.BlockingLocal,
) -> None:
    token = begin(ada, "claude-opus-5-5")
    for tool in ("secret", "nothing"):
        assert ada.call(RUN, tool, {}, token) == ada.call(RUN, tool, {})


def test_a_token_grants_nothing(ada: connection.BlockingLocal) -> None:
    token = begin(ada, "claude-opus-5-5")
    switches.flip(testing.OPERATOR, "ada", "post", False)
    for text in (token, "tbc1.nonsense", "x"):
        assert ada.call(RUN, "mail", {}, text)["is_error"]


def test_call_tool_reaches_what_was_granted_after_the_conversation_began(
    ada: connection.BlockingLocal,
) -> None:
    switches.flip(testing.OPERATOR, "ada", "post", None)
    token = begin(ada, "claude-haiku-4-5")
    call = {"tool": "mail", "arguments": {}}
    assert code(ada.call(RUN, "call_tool", call, token)) == "unknown-tool"
    switches.flip(testing.OPERATOR, "ada", "post", True)
    found = ada.call(RUN, "search_tools", {"query": "mail"}, token)
    assert [result["tool"] for result in found["content"]["results"]] == ["mail"]
    # No process runs these tools, but the call is admitted.
    assert code(ada.call(RUN, "call_tool", call, token)) in ("tool-unavailable", "run-by-client")
    # Without a conversation that has it, there is no such tool.
    assert code(ada.call(RUN, "call_tool", call)) == "unknown-tool"


def test_what_call_tool_may_call_is_what_is_granted(ada: connection.BlockingLocal) -> None:
    token = begin(ada, "claude-haiku-4-5")
    call = {"tool": "secret", "arguments": {}}
    assert code(ada.call(RUN, "call_tool", call, token)) == code(ada.call(RUN, "secret", {}))


@pytest.mark.parametrize("version", ["", "of-another-program"])
def test_an_admission_is_refused_in_the_same_words(ada: connection.BlockingLocal, version: str) -> None:
    token = begin(ada, "claude-opus-5-5")
    assert code(ada.admit(RUN, "mail", {}, "", token)) is None
    switches.flip(testing.OPERATOR, "ada", "post", False)
    assert code(ada.admit(RUN, "mail", {}, version, token)) == "tool-withdrawn"
    assert code(ada.admit(RUN, "mail", {}, version)) == "tool-denied"
    assert ada.admit(RUN, "secret", {}, "", token) == ada.admit(RUN, "secret", {})
