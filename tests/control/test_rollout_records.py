"""Tests that records of a roll-out are replayed in their arm, and that it is taken back if its sessions do worse."""

from __future__ import annotations

import contextlib
import itertools
from typing import Any

import pytest

from tests import factories
from tests.control.trying import (
    CONFIRMED,
    HOUR,
    NOW,
    WRITE,
    active,
    flip,
    in_arm,
    of,
    put_loadout,
    rolled_out,
    round_at,
    saved,
)
from toolbelt import models
from toolbelt.control import drafts, proofs, self_checks, trials
from toolbelt.control.access import switches
from toolbelt.control.alerts import events
from toolbelt.control.catalog import entries
from toolbelt.core import agents, rollouts
from toolbelt.runtime import calls
from toolbelt.runtime.calls import admissions
from toolbelt.runtime.records import record_writer
from toolbelt.store import audit, clock


@pytest.fixture
def draft(stored: None, olive: Any) -> drafts.Draft:
    return saved(flip())


def called(session: str | None, tool: str = "git__log") -> models.CallRecord:
    with contextlib.suppress(admissions.NotAdmittedError), calls.admitted("bob", tool, {}, session):
        pass
    record_writer.flush(5)
    return models.CallRecord.objects.order_by("-id")[0]


def test_records_name_the_roll_out_and_are_replayed_in_their_arm(draft: drafts.Draft) -> None:
    trial = rolled_out(draft)
    new, old = in_arm(trial, True), in_arm(trial, False)
    refused, admitted, without = called(new), called(old), called(None)
    assert (refused.trial, admitted.trial, without.trial) == (trial.pk, None, None)
    assert (refused.reason, admitted.reason) == ("switch-off", "switch-on")
    assert self_checks.check(days=30).mismatches == ()
    assert self_checks.check(days=30).reproduced == 3

    with clock.stopped(NOW):
        drafts.apply(CONFIRMED, draft.key)
        models.Draft.objects.all().delete()
    entries.change(CONFIRMED, "toolkit", "reading", {"members": ["git__status"]})
    called(new)
    checked = self_checks.check(days=30)
    assert (checked.reproduced, checked.mismatches) == (4, ())


def test_a_proof_of_today_counts_the_new_arm_only_while_it_runs(stored: None, olive: Any) -> None:
    draft = saved(flip("bob", "pushing", True))
    trial = rolled_out(draft)
    called(in_arm(trial, True), "git__push")
    called(in_arm(trial, False), "git__push")

    def refused() -> list[tuple[str, int]]:
        proof = proofs.prove(lambda: switches.override(CONFIRMED, "bob", "git__push", False))
        return [(row.tool, row.calls) for row in proof.rows]

    assert refused() == [("git__push", 1)]
    with clock.stopped(NOW):
        trials.stop(WRITE, draft.key)
    assert refused() == []


def test_a_proof_of_a_loadout_covers_the_new_arms_that_have_it(stored: None, olive: Any) -> None:
    put_loadout(WRITE)
    draft = saved(lambda write: entries.change(write, "agent", "bob", {"loadout": "house"}))
    trial = rolled_out(draft)
    called(in_arm(trial, True), "git__push")

    for basis in proofs.BASES:
        proof = proofs.prove(
            lambda: entries.change(CONFIRMED, "loadout", "house", {"disabled": ["git__push"]}), basis=basis
        )
        assert [(row.tool, row.after, row.calls) for row in proof.rows] == [("git__push", "refused", 1)]


def sessions(trial: trials.Trial, is_new: bool, number: int, failed: int, **about: Any) -> None:
    """Record calls of so many sessions of an arm, of which some failed."""
    rollout = agents.Rollout(trial=trial.pk, percent=trial.percent, changes="[]")
    names = (f"s{each}" for each in itertools.count())
    arm = (name for name in names if rollouts.includes(rollout, "bob", name) is is_new)
    for place, name in enumerate(itertools.islice(arm, number)):
        outcome = "tool-failed" if place < failed else "ok"
        about = {"agent": "bob", "trial": trial.pk if is_new else None, **about}
        made = [factories.call("git__push", session=name, outcome=each, **about) for each in ("ok", outcome)]
        models.CallRecord.objects.filter(pk__in=[each.pk for each in made]).update(at=NOW + HOUR)


def test_it_is_taken_back_if_the_sessions_that_have_it_do_worse(draft: drafts.Draft) -> None:
    trial = rolled_out(draft)
    sessions(trial, False, 60, 2)
    sessions(trial, True, 20, 0)
    assert round_at(NOW + 2 * HOUR) == 0
    assert of(draft).arms[:2] == ((20, 0), (60, 2))
    # These sessions are there already: they fail now.
    sessions(trial, True, 40, 14)

    assert round_at(NOW + 3 * HOUR) == 1

    found = of(draft)
    assert (found.state, found.arms[:2]) == ("reverted", ((40, 14), (60, 2)))
    assert "14 of 40 sessions" in found.note
    assert "2 of 60" in found.note
    assert active(in_arm(trial, True)) == active(None)
    entry = audit.page(subject_kind="draft").entries[0]
    assert (entry.action, entry.actor, entry.reason) == ("draft.revert", "system", found.note)
    found_alerts = (alert for load in events.SOURCES.values() for alert in load())
    [alert] = [alert for alert in found_alerts if alert.event == "draft-reverted"]
    assert alert.subject == str(draft.key)
    assert "14 of 40" in alert.text


def test_it_is_taken_back_if_sessions_that_go_on_do_worse_later(draft: drafts.Draft) -> None:
    trial = rolled_out(draft)
    sessions(trial, False, 30, 1)
    sessions(trial, True, 30, 0)
    assert round_at(NOW + 2 * HOUR) == 0
    # No session has come since.
    sessions(trial, True, 30, 15)

    assert round_at(NOW + 3 * HOUR) == 1
    assert (of(draft).state, of(draft).arms[:2]) == ("reverted", ((30, 15), (30, 1)))


def test_it_stays_if_they_do_as_the_others(draft: drafts.Draft) -> None:
    trial = rolled_out(draft)
    sessions(trial, False, 60, 20)
    sessions(trial, True, 60, 22)
    # Before it began, of another agent, and without a session.
    factories.call(agent="bob", session="s1", outcome="tool-failed", days_ago=500)
    factories.call(agent="ada", session="s1", outcome="tool-failed")
    factories.call(agent="bob", outcome="tool-failed")

    assert round_at(NOW + 2 * HOUR) == 0
    assert of(draft).arms == ((60, 22), (60, 20), 0)
    assert "Chance may explain that" in trials.compare(of(draft).arms)


@pytest.mark.parametrize("number", [rollouts.MAX_REFUSED - 1, rollouts.MAX_REFUSED])
def test_it_is_taken_back_once_its_changes_refuse_calls_of_many_sessions(
    draft: drafts.Draft, number: int
) -> None:
    trial = rolled_out(draft, percent=100)
    for place in range(number):
        called(f"s{place}")
        # Refused in both arms.
        called(f"other{place}", "git__push")
    models.CallRecord.objects.update(at=NOW + HOUR)

    assert round_at(NOW + 2 * HOUR) == (number == rollouts.MAX_REFUSED)

    found = of(draft)
    assert found.arms.refused == number
    assert (found.state, "10 sessions" in found.note) == (
        ("reverted", True) if number == rollouts.MAX_REFUSED else ("running", False)
    )
    assert trial.percent == 100
