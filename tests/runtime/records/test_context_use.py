"""Tests of the counts of tokens sent to agents, compared with what all allowed tools would have cost."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from toolbelt import testing
from toolbelt.control.config import belts
from toolbelt.core.request_key import RequestKey
from toolbelt.runtime import calls, credentials, surfaces
from toolbelt.runtime.records import context_use, record_writer
from toolbelt.runtime.surfaces import prepared_answers, tool_lists
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


class Records(list[Any]):
    """The records that were handed to the record writer."""

    def enqueue(self, record: Any) -> bool:
        self.append(record)
        return True

    def uses(self) -> list[Use]:
        context_use.flush()
        return [record for record in self if isinstance(record, Use)]


@pytest.fixture
def records(db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Records]:
    """Yield the records of a server whose agent has an active, a loadable and a denied tool."""
    belts.import_(testing.OPERATOR, BELT)
    records = Records()
    context_use.flush()
    monkeypatch.setattr(record_writer, "has_room", lambda: True)
    monkeypatch.setattr(record_writer, "enqueue", records.enqueue)
    # Not in the middle of a test.
    monkeypatch.setattr(context_use, "SECONDS", 3600.0)
    yield records
    context_use.flush()


def cost(*keys: str) -> int:
    stored = surfaces.ask("ada").resolution.context.catalog
    return sum(stored.tools[f"crm__{key}"].tokens for key in keys)


def test_a_surface_counts_its_own_tools_and_all_allowed_tools(
    records: Records,
) -> None:
    built = surfaces.ask("ada", "s")
    tokens = context_use.count(built)

    policy = built.resolution.spent.policy_tokens
    assert tokens.allowed == policy + cost("list", "merge")
    of_meta_tools = tokens.sent - policy - cost("list")
    assert 200 < of_meta_tools < 800


def test_an_mcp_list_counts_its_own_tools(records: Records) -> None:
    listed = tool_lists.ask(RequestKey("ada"), may_grow=False)
    built = surfaces.ask("ada", "s")

    assert {"search_tools", "call_tool"} < set(listed.names)
    assert listed.tokens.allowed == context_use.count(built).allowed
    assert cost("list") < listed.tokens.sent < context_use.count(built).sent


def test_surfaces_and_meta_tool_results_are_summed_by_agent(records: Records) -> None:
    request = prepared_answers.SurfaceRequest(RequestKey("ada"))
    answer = prepared_answers.answer(BEARER, request)
    prepared_answers.answer(BEARER, request)
    calls.run("ada", "search_tools", {"query": "merge customers"}, "s")

    ((agent, day, answers, sent, allowed),) = records.uses()
    assert (agent, day, answers) == ("ada", clock.now().date(), 2)
    assert allowed == 2 * answer.template.tokens.allowed
    assert 0 < sent - 2 * answer.template.tokens.sent <= 600


def test_sums_are_stored_although_no_further_answer_follows(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    are_stored = threading.Event()

    def enqueue(record: Any) -> bool:
        are_stored.set()
        return records.enqueue(record)

    monkeypatch.setattr(record_writer, "enqueue", enqueue)
    tokens = context_use.Tokens(1, 2)
    context_use.add("ada", tokens)
    assert records == []
    context_use.flush()
    are_stored.clear()

    monkeypatch.setattr(context_use, "SECONDS", 0.01)
    context_use.add("ada", tokens)
    assert are_stored.wait(60)
    assert [use[2:] for use in records] == [(1, 1, 2), (1, 1, 2)]


def test_an_answer_counts_for_its_day_even_if_stored_later(records: Records) -> None:
    evening = dt.datetime(2026, 3, 1, 23, 59, tzinfo=dt.UTC)
    for now in (evening, evening + dt.timedelta(hours=9)):
        with clock.stopped(now):
            context_use.add("ada", context_use.Tokens(1, 2))

    assert [(use.day, use.answers) for use in records.uses()] == [
        (evening.date(), 1),
        (dt.date(2026, 3, 2), 1),
    ]


def test_nothing_is_counted_without_a_record_writer(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_writer, "has_room", lambda: False)
    context_use.add("ada", context_use.Tokens(1, 2))

    assert records.uses() == []
