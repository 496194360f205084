"""How many tokens agents are sent, and what every allowed tool would have cost them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import pytest

from toolbelt import testing
from toolbelt.control.config import belts
from toolbelt.runtime import (
    calls,
    context_use,
    credentials,
    prepared_answers,
    record_writer,
    surfaces,
    tool_lists,
)
from toolbelt.store import clock
from toolbelt.store.context_use import Use

pytestmark = pytest.mark.django_db

BEARER = credentials.Bearer(kind="agent", name="ada", prefix="", agent="ada")
BELT: dict[str, Any] = {
    "plugins": [{"name": "crm", "namespace": "crm", "upstream": {"url": "https://crm.example/mcp"}}],
    "tools": [
        {"key": f"crm__{name}", "plugin": "crm", "description": f"{name} the customers. " * 60}
        for name in ("list", "merge", "delete", "hide")
    ],
    "toolkits": [
        {"key": "first", "members": ["crm__list"]},
        {"key": "rest", "members": ["crm__merge", "crm__delete"]},
    ],
    "agents": [
        {"key": "ada", "tools_config": {"first": True, "crm__delete": False}, "allowed_toolkits": ["rest"]}
    ],
}


class Taken(list[Any]):
    """What the writer of records was given."""

    def take(self, record: Any) -> bool:
        self.append(record)
        return True

    def uses(self) -> list[Use]:
        context_use.flush()
        return [record for record in self if isinstance(record, Use)]


@pytest.fixture
def taken(db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Taken]:
    """An agent with a tool, a loadable one, and a denied one, in a server."""
    belts.import_(testing.OPERATOR, BELT)
    taken = Taken()
    context_use.flush()
    monkeypatch.setattr(record_writer, "has_room", lambda: True)
    monkeypatch.setattr(record_writer, "take", taken.take)
    yield taken
    context_use.flush()


def cost(*keys: str) -> int:
    stored = surfaces.ask("ada").resolution.context.catalog
    return sum(stored.tools[f"crm__{key}"].tokens for key in keys)


def test_a_surface_costs_its_tools_and_meta_tools_and_every_allowed_tool_would_cost_more(
    taken: Taken,
) -> None:
    built = surfaces.ask("ada")
    tokens = context_use.count(built)

    policy = built.resolution.spent.policy_tokens
    assert tokens.allowed == policy + cost("list", "merge")
    of_meta_tools = tokens.sent - policy - cost("list")
    assert 200 < of_meta_tools < 800


def test_the_list_of_an_mcp_client_costs_what_it_has(taken: Taken) -> None:
    listed = tool_lists.ask("ada", None, may_grow=False)
    built = surfaces.ask("ada")

    assert {"search_tools", "call_tool"} < set(listed.names)
    assert listed.tokens.allowed == context_use.count(built).allowed
    assert cost("list") < listed.tokens.sent < context_use.count(built).sent


def test_answers_and_results_of_meta_tools_are_summed_by_agent(taken: Taken) -> None:
    request = prepared_answers.SurfaceRequest(token="", agent="ada")
    answer = prepared_answers.answer(BEARER, request)
    prepared_answers.answer(BEARER, request)
    calls.run("ada", "search_tools", {"query": "merge customers"}, "s")

    ((agent, day, answers, sent, allowed),) = taken.uses()
    assert (agent, day, answers) == ("ada", clock.now().date(), 2)
    assert allowed == 2 * answer.template.tokens.allowed
    assert 0 < sent - 2 * answer.template.tokens.sent <= 600


def test_sums_are_stored_at_intervals(taken: Taken, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = context_use.Tokens(1, 2)
    monkeypatch.setattr(context_use, "_stored_at", None)
    context_use.add("ada", tokens)
    assert taken == []

    monkeypatch.setattr(context_use, "SECONDS", 0.0)
    context_use.add("ada", tokens)
    assert [use[2:] for use in taken] == [(2, 2, 4)]


def test_an_answer_counts_for_its_own_day_even_if_it_is_stored_on_the_next(taken: Taken) -> None:
    evening = dt.datetime(2026, 3, 1, 23, 59, tzinfo=dt.UTC)
    for now in (evening, evening + dt.timedelta(hours=9)):
        with clock.stopped(now):
            context_use.add("ada", context_use.Tokens(1, 2))

    assert [(use.day, use.answers) for use in taken.uses()] == [
        (evening.date(), 1),
        (dt.date(2026, 3, 2), 1),
    ]


def test_without_a_writer_nothing_is_counted(taken: Taken, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_writer, "has_room", lambda: False)
    context_use.add("ada", context_use.Tokens(1, 2))

    assert taken.uses() == []
