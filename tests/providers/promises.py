"""What holds for every conversation, whatever happens to it. A failure names the promise that was broken."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from tests.providers import anthropic_server, small_world, soak
from toolbelt.core import meta_tools
from toolbelt.runtime.surfaces import conversation_tokens

# A token of a conversation in which each name was ever said: two digests, its name, and what JSON and Base64 add.
_TOKEN, _NAME = 300, 40


def the_provider_accepts_every_request(service: soak.Service, talk: small_world.Talk, step: Any) -> Any:
    try:
        return service.send(talk.place[0], step.parameters)
    except anthropic_server.Refused as refused:
        raise AssertionError(f"refused: {refused}") from refused


def only_a_purge_begins_a_conversation_again(step: Any, purged: Collection[str]) -> None:
    """A purge of what its model was told of, and no other change."""
    restart = step.restart or {"code": None}
    assert restart["code"] == ("purged" if purged else None), step.restart


def the_prefix_stays_the_same(before: str | None, now: str) -> None:
    assert before in (None, now)


def what_was_sent_stays_as_it_was(before: list[Any] | None, now: list[Any]) -> None:
    """Everything that a line's model was sent before, and answered, is at the beginning of the next request."""
    begun = json.loads(json.dumps(now))[: len(before or [])]
    assert begun == json.loads(json.dumps(before or []))


def nothing_is_said_while_nothing_changes(append: Mapping[str, Any], token: str) -> None:
    assert append["messages"] == []
    assert append["token"] == token
    assert append["prefix"] is None


def nothing_is_said_to_a_paused_turn(step: Any) -> None:
    assert step._request._append["messages"] == []


def turning_off_and_on_again_says_nothing(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    assert before == now


def the_token_does_not_grow_with_the_history(talk: small_world.Talk) -> None:
    for line in talk.state["lines"].values() if talk.state else ():
        token = conversation_tokens.unseal(soak.AGENT, line["token"])
        assert token is not None
        assert token.entries <= talk.answered
        assert len(line["token"]) <= _TOKEN + _NAME * (
            len(small_world.TOOLS) + len(meta_tools.SCHEMAS) + 2 * len(small_world.TOOLKITS)
        )


def a_request_that_is_not_answered_leaves_no_trace(before: str, kept: Any) -> None:
    assert json.dumps(kept.state) == before


def forks_are_independent(others: list[tuple[small_world.Talk, str]]) -> None:
    for other, before in others:
        assert json.dumps(other.state) == before


def a_foreign_token_begins_a_new_conversation(append: Mapping[str, Any]) -> None:
    assert append["restart"] is not None
    assert append["restart"]["code"] == "unknown"
    assert append["prefix"] is not None


def what_is_not_granted_is_not_run(result: Any, tool: str, granted: Collection[str]) -> None:
    assert result.is_error or tool in granted


def a_focus_concerns_one_step(step: Any) -> None:
    assert "in your next step" not in json.dumps(step._request._append["messages"])


def a_run_without_a_conversation_keeps_its_prefix(
    first: Mapping[str, Any], second: Mapping[str, Any]
) -> None:
    """A directive changes the choice among the tools, and what is said; never the tools or the system prompt."""
    choice = {"tool_choice", "tool_config", "first_step"}
    kept = [{name: part for name, part in step.items() if name not in choice} for step in (first, second)]
    assert kept[0] == kept[1]
