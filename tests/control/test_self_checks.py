"""Tests that recorded calls are decided again as everything was configured then, and that a difference is found."""

from __future__ import annotations

import datetime as dt

import pytest
from django.db import connection
from django.utils import timezone

from tests.control.test_proofs import WRITE, a_month, call, kb
from tests.runtime.conftest import install, listed
from toolbelt import models
from toolbelt.control import self_checks, writing
from toolbelt.control.access import expirations, switches
from toolbelt.control.catalog import blocking, entries
from toolbelt.store import clock, locks

__all__ = ["install", "kb", "listed"]


@pytest.fixture
def logged(kb: None) -> None:
    # A restored configuration has revisions of its own: these are in the log.
    for agent in ("ada", "bob", "eve"):
        entries.change(WRITE, "agent", agent, {"title": agent.capitalize()})


def a_history() -> None:
    """Change the configuration while calls are made."""
    a_month()
    blocking.set_blocked(WRITE, "tool", "kb__search", True)
    a_month()
    blocking.set_blocked(WRITE, "tool", "kb__search", False)
    entries.change(WRITE, "agent", "ada", {"allowed_toolkits": []})
    switches.flip(WRITE, "eve", "desk", True)
    a_month()
    entries.change(WRITE, "toolkit", "desk", {"members": ["kb__plain"]})
    a_month()


def test_replays_reproduce_what_was_recorded_through_many_changes(logged: None) -> None:
    a_history()

    checked = self_checks.check()

    decided = models.CallRecord.objects.filter(definition__isnull=False).count()
    assert (checked.calls, checked.reproduced, checked.uncertain) == (decided, decided, 0)
    assert checked.revisions > 3
    assert checked.sentence == (
        f"Replays reproduce 100 % of {decided} recorded verdicts of the last 30 days."
    )


def test_a_grant_that_ended_before_a_call_counts_as_ended_though_it_was_recorded_later(logged: None) -> None:
    start = clock.now().replace(microsecond=0)
    with writing.at(start):
        switches.override(WRITE, "bob", "kb__plain", True, ends=start + dt.timedelta(minutes=1))
        call("bob", "kb__plain")
    with writing.at(start + dt.timedelta(minutes=2)):
        call("bob", "kb__plain")
        expirations.record_due()
    with writing.at(start + dt.timedelta(minutes=3)):
        checked = self_checks.check()

    reasons = models.CallRecord.objects.order_by("id").values_list("reason", flat=True)
    assert len({*reasons}) == 2
    assert (checked.calls, checked.reproduced) == (2, 2)


def test_a_call_that_was_decided_otherwise_is_named(logged: None) -> None:
    a_history()
    wrong = models.CallRecord.objects.filter(reason="switch-on").latest("id")
    models.CallRecord.objects.filter(pk=wrong.pk).update(reason="default-on")

    checked = self_checks.check()

    assert checked.mismatches == (wrong.pk,)
    assert checked.reproduced == checked.calls - 1
    assert "100 %" not in checked.sentence


def test_calls_before_a_write_around_the_log_are_uncertain_and_no_mismatch(logged: None) -> None:
    a_month()
    of_ada = models.CallRecord.objects.filter(agent="ada", definition__isnull=False).count()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE toolbelt_agent SET loadout = 'minimal' WHERE key = 'ada'")
    switches.flip(WRITE, "eve", "desk", True)

    checked = self_checks.check()

    assert (checked.uncertain, checked.mismatches) == (of_ada, ())
    assert checked.calls == checked.reproduced


def test_without_calls_nothing_is_claimed(kb: None) -> None:
    assert self_checks.check().sentence == ("No call of the last 30 days can be replayed as it was decided.")


def test_a_server_checks_once_a_night_and_keeps_the_result(logged: None) -> None:
    a_month()
    evening = timezone.localtime(clock.now()).replace(hour=22, minute=0, second=0, microsecond=0)
    with writing.at(evening):
        assert self_checks.latest() is None
        made = self_checks.run_due()
        assert made is not None
        assert self_checks.latest() == made
    with writing.at(evening + dt.timedelta(hours=4)):
        assert self_checks.run_due() is None
    with writing.at(evening + dt.timedelta(hours=6)):
        later = self_checks.run_due()
        assert later is not None
        assert later.at > made.at
        assert models.SelfCheck.objects.count() == 1
    with writing.at(evening + dt.timedelta(days=3)):
        # It says nothing about today any more.
        assert self_checks.latest() is None


def test_one_process_checks_while_the_others_go_on(logged: None) -> None:
    with locks.try_lock("self-check"):
        assert self_checks.run_due() is None
    assert self_checks.run_due() is not None
