"""Tests that observing a draft counts what it would have done and changes nothing, and that a scheduled one is applied.

It is applied at its time, as it was seen, by those who still may.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib import auth

from tests import factories
from tests.control.trying import DAY, HOUR, NOW, WRITE, deactivated, demoted, of, replaced, round_at
from tests.factories import call
from toolbelt import models
from toolbelt.control import drafts, proofs, trial_rounds, trials, writing
from toolbelt.control.access import switches
from toolbelt.control.alerts import events
from toolbelt.control.catalog import entries
from toolbelt.control.config import belts
from toolbelt.control.people import roles
from toolbelt.control.reports import attention
from toolbelt.core import errors
from toolbelt.store import audit, clock, locks, recorded_facts, snapshots


def flip(agent: str = "bob", on: bool = False) -> Callable[[writing.Write], object]:
    return lambda write: switches.flip(write, agent, "reading", on)


def recorded(at: dt.datetime, tool: str = "git__log", **about: Any) -> models.CallRecord:
    facts = {"agent": "bob", **factories.facts(tool)}
    made = call(tool, **{**facts, **about})
    models.CallRecord.objects.filter(pk=made.pk).update(at=at)
    return made


def observed(draft: drafts.Draft, *, days: int = 2) -> trials.Trial:
    with clock.stopped(NOW):
        return trials.observe(WRITE, draft.key, ends=NOW + days * DAY)


@pytest.fixture
def draft(stored: None) -> drafts.Draft:
    with clock.stopped(NOW):
        return drafts.save(WRITE, flip())


def test_the_report_equals_the_proof_of_the_same_calls(draft: drafts.Draft) -> None:
    recorded(NOW - HOUR)
    observed(draft)
    for hours, session in ((1, "s1"), (2, "s1"), (30, "s2"), (31, "")):
        recorded(NOW + hours * HOUR, session=session)
        recorded(NOW + hours * HOUR, "git__push", session=session, outcome="tool-denied")
        recorded(NOW + hours * HOUR, agent="ada", session=session)
        round_at(NOW + hours * HOUR + HOUR / 2)
    recorded(NOW + 3 * HOUR, state=None)
    end = NOW + 40 * HOUR
    round_at(end)

    with clock.stopped(end):
        report = trials.report(of(draft))
        [proof] = proofs.measure(
            lambda: drafts.make(WRITE.replace(confirm=True), draft), [recorded_facts.Window(NOW, end)], 2
        )
    assert (report.calls, report.count("refused"), dict(report.unproven)) == (9, 4, {"no-facts": 1})
    assert (report.calls, dict(report.unproven), report.days) == (proof.calls, dict(proof.unproven), 2)
    [ours], [theirs] = report.rows, proof.rows
    for name in ("agent", "tool", "before", "after", "words", "calls", "ran", "recent", "last", "examples"):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert len(ours.sessions) == len(theirs.sessions) == 2
    assert [day.calls for day in models.TrialDay.objects.order_by("day")] == [2, 2]


def test_a_round_counts_each_call_once(draft: drafts.Draft) -> None:
    observed(draft)
    recorded(NOW + HOUR)
    for _ in range(3):
        round_at(NOW + 2 * HOUR)

    assert trials.report(of(draft)).count("refused") == 1


def test_a_round_counts_only_what_was_there_a_round_ago(draft: drafts.Draft) -> None:
    observed(draft)
    first = recorded(NOW + HOUR)
    recorded(NOW + HOUR)

    with clock.stopped(NOW + 2 * HOUR):
        trial_rounds.run(until=first.pk)
        assert trials.report(of(draft)).count("refused") == 1
        trial_rounds.run()
        assert trials.report(of(draft)).count("refused") == 2


def test_while_a_draft_is_observed_nothing_is_as_the_draft_says(draft: drafts.Draft) -> None:
    before, newest = belts.export(), audit.newest_id()
    observed(draft)
    recorded(NOW + HOUR)
    round_at(NOW + 2 * HOUR)

    assert belts.export() == before
    assert [entry.action for entry in audit.after(newest)] == ["draft.observe"]
    assert snapshots.find("bob", None).agent.switches == {"reading": True}


def test_an_observation_ends_by_itself_and_waits_to_be_decided_about(draft: drafts.Draft) -> None:
    observed(draft)
    recorded(NOW + 47 * HOUR)
    recorded(NOW + 49 * HOUR)

    assert round_at(NOW + 2 * DAY) == 0
    assert trials.undecided() == []
    assert round_at(NOW + 2 * DAY + trial_rounds.DELAY) == 1

    [trial] = trials.undecided()
    assert (trial.state, trial.draft, trials.report(trial).count("refused")) == ("ended", draft.key, 1)
    assert drafts.find(draft.key).ends >= trial.ends + 14 * DAY
    with clock.stopped(NOW + 3 * DAY):
        drafts.apply(WRITE.replace(confirm=True), draft.key)
    assert trials.undecided() == []


def test_of_a_draft_only_the_last_trial_is_to_be_decided_about(draft: drafts.Draft) -> None:
    observed(draft)
    round_at(NOW + 3 * DAY)
    assert [trial.state for trial in trials.undecided()] == ["ended"]
    with clock.stopped(NOW + 3 * DAY):
        trials.observe(WRITE, draft.key)
        assert trials.undecided() == []
        trials.stop(WRITE, draft.key)

    assert trials.undecided() == []


def test_an_observation_stops_if_what_it_changes_is_not_as_it_was(draft: drafts.Draft) -> None:
    observed(draft)
    recorded(NOW + HOUR)
    round_at(NOW + HOUR)
    switches.flip(WRITE.replace(confirm=True), "bob", "reading", None)
    recorded(NOW + 2 * HOUR)

    assert round_at(NOW + 2 * HOUR) == 1

    [trial] = trials.undecided()
    assert (trial.state, "reading of agent bob" in trial.note) == ("stopped", True)
    [alert] = events.of(attention.load())
    assert (alert.event, trial.note in alert.text) == ("draft-observed", True)
    assert trials.report(trial).count("refused") == 1


def made_drafts(monkeypatch: pytest.MonkeyPatch) -> list[drafts.Draft]:
    """Return the drafts whose changes are made from now on, to try or to keep them."""
    make, made = drafts.make, list[drafts.Draft]()

    def make_noted(write: writing.Write, draft: drafts.Draft) -> writing.Change:
        made.append(draft)
        return make(write, draft)

    monkeypatch.setattr(drafts, "make", make_noted)
    return made


def test_an_extension_while_a_round_counts_the_last_calls_is_kept(
    draft: drafts.Draft, monkeypatch: pytest.MonkeyPatch
) -> None:
    observed(draft)
    recorded(NOW + HOUR)
    recorded(NOW + 2 * DAY + HOUR)
    measure = proofs.measure

    def measure_and_extend(*args: Any) -> list[proofs.Proof]:
        found = measure(*args)
        trials.extend(WRITE, draft.key, ends=NOW + 4 * DAY)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(proofs, "measure", measure_and_extend)
        assert round_at(NOW + 3 * DAY) == 0

    assert (of(draft).state, of(draft).ends) == ("running", NOW + 4 * DAY)
    round_at(NOW + 3 * DAY)
    assert trials.report(of(draft)).count("refused") == 2


def test_an_extension_just_after_the_end_loses_no_call(draft: drafts.Draft) -> None:
    observed(draft)
    recorded(NOW + 2 * DAY + dt.timedelta(seconds=10))
    later = NOW + 2 * DAY + dt.timedelta(seconds=20)
    round_at(later)
    with clock.stopped(later):
        trials.extend(WRITE, draft.key, ends=NOW + 4 * DAY)
    round_at(NOW + 3 * DAY)

    assert trials.report(of(draft)).count("refused") == 1


def test_the_change_is_made_once_to_count_the_calls_of_many_days(
    draft: drafts.Draft, monkeypatch: pytest.MonkeyPatch
) -> None:
    observed(draft, days=5)
    for days in range(4):
        recorded(NOW + days * DAY + HOUR)
    made = made_drafts(monkeypatch)
    round_at(NOW + 4 * DAY)

    assert (trials.report(of(draft)).count("refused"), made) == (4, [draft])


def test_applying_a_draft_ends_its_observation(draft: drafts.Draft) -> None:
    observed(draft)
    with clock.stopped(NOW):
        drafts.apply(WRITE.replace(confirm=True), draft.key)

    assert of(draft).state == "applied"


def test_an_observation_is_extended_and_stopped(draft: drafts.Draft) -> None:
    observed(draft)
    with clock.stopped(NOW + DAY):
        trials.extend(WRITE, draft.key)
        assert of(draft).ends == NOW + 15 * DAY
        with pytest.raises(errors.Refused):
            trials.observe(WRITE, draft.key)
        trials.stop(WRITE, draft.key)
        with pytest.raises(errors.Refused):
            trials.extend(WRITE, draft.key)

    assert of(draft).state == "stopped"
    assert trials.undecided() == []
    actions = [entry.action for entry in audit.page(subject_kind="draft").entries]
    assert actions == ["draft.stop", "draft.extend", "draft.observe", "draft.save"]


def test_an_observation_needs_an_end(draft: drafts.Draft) -> None:
    with clock.stopped(NOW):
        for ends in (NOW, NOW + 91 * DAY, (NOW + DAY).replace(tzinfo=None)):
            with pytest.raises(errors.Invalid):
                trials.observe(WRITE, draft.key, ends=ends)
        assert trials.observe(WRITE, draft.key).ends == NOW + 14 * DAY


def test_only_one_process_works_at_a_time(draft: drafts.Draft, monkeypatch: pytest.MonkeyPatch) -> None:
    class Taken:
        def __enter__(self) -> bool:
            return False

        def __exit__(self, *error: object) -> None: ...

    observed(draft)
    recorded(NOW + HOUR)
    monkeypatch.setattr(locks, "try_lock", lambda name: Taken())
    round_at(NOW + 2 * HOUR)

    assert trials.report(of(draft)).calls == 0


def test_the_report_counts_what_observed_rules_would_have_decided(draft: drafts.Draft) -> None:
    trial = observed(draft)
    recorded(NOW - HOUR, would="no-push")
    recorded(NOW + HOUR, would="no-push slow")
    recorded(NOW + HOUR, would="no-push")

    assert trials.observed_rules(trial) == {"no-push": 2, "slow": 1}


def scheduled(draft: drafts.Draft) -> trials.Trial:
    with clock.stopped(NOW):
        return trials.schedule(WRITE.replace(confirm=True), draft.key, NOW + HOUR)


def test_a_scheduled_draft_is_applied_at_its_time_as_who_scheduled_it(
    draft: drafts.Draft, olive: Any
) -> None:
    scheduled(draft)

    assert round_at(NOW + HOUR - dt.timedelta(seconds=1)) == 0
    assert snapshots.find("bob", None).agent.switches == {"reading": True}
    assert round_at(NOW + HOUR) == 1

    assert snapshots.find("bob", None).agent.switches == {"reading": False}
    [entry] = audit.of_batch(draft.key)
    assert (entry.actor, entry.actor_kind, entry.via) == ("olive", "person", "screen")
    assert (of(draft).state, trials.undecided()) == ("applied", [])


def stale(olive: Any) -> None:
    entries.change(WRITE, "agent", "bob", {"title": "Bob"})
    switches.flip(WRITE.replace(confirm=True), "bob", "reading", None)


def renamed(olive: Any) -> None:
    olive.username = "olivia"
    olive.save()
    auth.get_user_model().objects.create_user("olive")
    roles.assign(WRITE, "olive", "operator")


@pytest.mark.parametrize("meanwhile", [stale, demoted, deactivated, replaced, renamed])
def test_a_scheduled_draft_is_not_applied_over_a_change_or_by_who_may_not(
    meanwhile: Callable[[Any], None], draft: drafts.Draft, olive: Any
) -> None:
    scheduled(draft)
    meanwhile(olive)
    before = belts.export()

    assert round_at(NOW + HOUR) == 1

    assert belts.export() == before
    [trial] = trials.undecided()
    assert trial.state == "failed"
    assert trial.note
    assert drafts.find(draft.key).applied is None
    # It is not tried again.
    assert round_at(NOW + HOUR + dt.timedelta(minutes=1)) == 0


def test_a_scheduled_draft_is_not_applied_late(draft: drafts.Draft, olive: Any) -> None:
    scheduled(draft)

    round_at(NOW + 2 * HOUR + dt.timedelta(seconds=1))

    assert (of(draft).state, drafts.find(draft.key).applied) == ("failed", None)


def test_what_has_to_be_confirmed_is_confirmed_when_it_is_scheduled(draft: drafts.Draft, olive: Any) -> None:
    protect("bob")
    with clock.stopped(NOW), pytest.raises(errors.ConfirmationRequired):
        trials.schedule(WRITE, draft.key, NOW + HOUR)

    assert trials.latest(draft.key) is None


def test_a_schedule_has_no_more_rights_than_the_interface_of_its_author(
    stored: None, olive: Any, settings: Any
) -> None:
    def set_command(name: str) -> Callable[[writing.Write], object]:
        return lambda write: entries.change(write, "plugin", "srv", {"upstream": {"command": name}})

    settings.TOOLBELT_STDIO_BY_WEB = True
    with clock.stopped(NOW):
        entries.put(
            writing.by("root", via="command"),
            "plugin",
            {"name": "srv", "namespace": "srv", "upstream": {"command": "true"}},
        )
        draft = drafts.save(WRITE, set_command("false"))
        scheduled(draft)
    settings.TOOLBELT_STDIO_BY_WEB = False

    round_at(NOW + HOUR)

    assert of(draft).state == "failed"
    assert "TOOLBELT_STDIO_BY_WEB" in of(draft).note
    assert entries.read("plugin", "srv")["upstream"] == {"command": "true"}


def test_the_change_is_made_once_to_schedule_it(
    draft: drafts.Draft, olive: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = made_drafts(monkeypatch)
    scheduled(draft)

    assert made == [draft]


def protect(agent: str) -> None:
    entries.change(WRITE, "agent", agent, {"protected": True})


def test_what_was_confirmed_is_not_asked_again_when_it_is_applied(draft: drafts.Draft, olive: Any) -> None:
    protect("bob")
    trial = scheduled(draft)
    assert trial.confirmed == ("bob is protected.",)

    round_at(NOW + HOUR)

    assert of(draft).state == "applied"


@pytest.mark.parametrize("confirm", [False, True])
def test_a_schedule_applies_nothing_that_was_not_confirmed(stored: None, olive: Any, confirm: bool) -> None:
    with clock.stopped(NOW):
        draft = drafts.save(WRITE, flip("ada", True))
        trials.schedule(WRITE.replace(confirm=confirm), draft.key, NOW + HOUR)
    protect("ada")

    round_at(NOW + HOUR)

    [trial] = trials.undecided()
    assert (trial.state, "ada is protected." in trial.note) == ("failed", True)
    assert drafts.find(draft.key).applied is None


def test_a_draft_that_has_ended_is_not_tried(stored: None, olive: Any) -> None:
    with clock.stopped(NOW):
        draft = drafts.save(WRITE, flip(), ends=NOW + HOUR)
    with clock.stopped(NOW + 2 * HOUR):
        with pytest.raises(errors.Refused):
            trials.schedule(WRITE.replace(confirm=True), draft.key, NOW + 3 * HOUR)
        with pytest.raises(errors.Refused):
            trials.observe(WRITE, draft.key)


def test_a_draft_is_scheduled_for_a_time_to_come_by_a_user(draft: drafts.Draft) -> None:
    with clock.stopped(NOW):
        for starts in (NOW, NOW + 91 * DAY, (NOW + DAY).replace(tzinfo=None)):
            with pytest.raises(errors.Invalid):
                trials.schedule(WRITE, draft.key, starts)
        with pytest.raises(errors.Refused):
            trials.schedule(writing.by("root", via="command"), draft.key, NOW + HOUR)
        agent = writing.by("agent:bob", via="api", kind="agent")
        with pytest.raises(errors.Refused):
            trials.schedule(agent, draft.key, NOW + HOUR)
