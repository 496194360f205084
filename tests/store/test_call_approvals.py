"""Tests that of several transitions of an approval the first succeeds, and that one at most is open for a call."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from tests import concurrently
from toolbelt import models
from toolbelt.core import call_approvals as values
from toolbelt.store import call_approvals as rows
from toolbelt.store import clock

pytestmark = pytest.mark.django_db


def request(**fields: Any) -> values.Approval:
    now = dt.datetime.now(dt.UTC)
    about: dict[str, Any] = {
        "key": "",
        "agent": "ada",
        "tool": "refund",
        "rules": ("over-500",),
        "state": "pending",
        "asked": now,
        "expires": now + dt.timedelta(hours=1),
        "preview": {"amount": 700},
    }
    return values.Approval(**{**about, **fields})


def added(binding: str = "b", digest: str = "d", **fields: Any) -> values.Approval:
    approval = rows.add(request(**fields), binding, digest)
    assert approval is not None
    return approval


def test_what_is_stored_is_read_again() -> None:
    approval = added(session="s", subagent="task", asked_by="olive", needed=2)
    assert rows.read(approval.key) == rows.find("b") == approval
    assert len(approval.key) == 8
    assert rows.find("other") is None


def test_of_two_transitions_from_the_same_state_the_first_succeeds() -> None:
    seen = added()
    now = clock.now()
    approved = values.approve(seen, "olive", now)
    assert rows.move(seen, approved)
    assert not rows.move(seen, values.reject(seen, "otto", now))
    # Nor an earlier one of the same state.
    spent = values.moved(approved, "spent", spent=now)
    assert rows.move(approved, spent)
    assert not rows.move(approved, spent)
    rows.finish("ok", key=seen.key)
    rows.finish("tool-failed", key=seen.key)
    stored = rows.read(seen.key)
    assert stored is not None
    assert (stored.state, stored.outcome) == ("done", "ok")


def test_one_is_open_for_a_call_and_what_was_asked_about_otherwise_is_withdrawn() -> None:
    first = added("b")
    assert added("b").key == first.key
    second = added("c")
    assert [rows.read(each.key).state for each in (first, second)] == ["withdrawn", "pending"]  # type: ignore[union-attr]
    # Another call keeps its own.
    added("e", digest="other")
    assert rows.counts() == {"ada": 2}
    row = models.Approval.objects.filter(binding="c").values().get()
    with pytest.raises(IntegrityError), transaction.atomic():
        models.Approval.objects.create(**{**row, "id": None, "key": "OTHER"})


def test_a_rejection_stays_when_the_same_call_is_asked_about_otherwise() -> None:
    rejected = added()
    assert rows.move(rejected, values.reject(rejected, "olive", clock.now()))
    added("other binding")
    found = rows.find("b")
    assert found is not None
    assert found.state == "rejected"


@pytest.mark.django_db(transaction=True)
def test_the_same_call_that_is_made_at_the_same_time_is_asked_about_once(transactional_db: None) -> None:
    answers = concurrently.done([lambda: added("b")] * 5)
    assert {answer.key for answer in answers} == {rows.find("b").key}  # type: ignore[union-attr]
    assert models.Approval.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_the_limit_holds_for_calls_at_the_same_time(transactional_db: None) -> None:
    for number in range(values.MAX_OF_SESSION - 1):
        added(f"b{number}", f"d{number}", session="s")
    acts = [lambda name=name: rows.add(request(session="s"), name, name) for name in ("x", "y", "z")]
    assert sum(answer is not None for answer in concurrently.done(acts)) == 1


def test_what_has_expired_is_listed_as_that_and_does_not_count() -> None:
    past = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=1)
    late, open_ = added("b", "d", expires=past), added("c", "e")
    assert [each.key for each in rows.listed(state="expired")] == [late.key]
    assert [each.key for each in rows.listed(state="pending")] == [open_.key]
    assert rows.undecided([late.key, open_.key]) == {open_.key}
    assert rows.counts(["ada"]) == {"ada": 1}
    assert rows.counts(["bo"]) == {}


def test_old_ones_are_deleted_unless_they_are_in_force() -> None:
    old = dt.datetime.now(dt.UTC) - dt.timedelta(days=30)
    in_force = added("b", "d", asked=old)
    added("c", "e", asked=old, expires=old)
    recent = added("f", "g", expires=old)
    assert rows.prune(clock.now() - dt.timedelta(days=1)) == 1
    assert {row.key for row in models.Approval.objects.all()} == {in_force.key, recent.key}


def test_each_is_compared_with_the_last_decided_one_of_its_agent_tool_and_rules() -> None:
    now = dt.datetime.now(dt.UTC)
    first = added("b", "d", asked=now - dt.timedelta(minutes=2))
    rows.move(first, values.reject(first, "olive", now), decided=now)
    others: list[dict[str, Any]] = [{"tool": "other"}, {"rules": ("other",)}, {"agent": "bo"}, {}]
    for number, other in enumerate(others):
        one = added(f"c{number}", f"e{number}", asked=now - dt.timedelta(minutes=1), **other)
        if other:
            rows.move(one, values.reject(one, "olive", now), decided=now)
    last = added("f", "g", asked=now)
    # The one without a decision is not what it is compared with.
    assert rows.befores([first, last]) == {last.key: values.reject(first, "olive", now)}
