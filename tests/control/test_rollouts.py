"""Tests that a draft is rolled out to some sessions: only to those, as it was approved, and back at once."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib import auth

from tests import factories
from toolbelt import models
from toolbelt.control import drafts, proofs, self_checks, trial_rounds, trials, writing
from toolbelt.control.access import bulk, switches, tools_config
from toolbelt.control.alerts import events
from toolbelt.control.catalog import blocking, entries
from toolbelt.control.config import belts
from toolbelt.control.people import roles
from toolbelt.core import agents, errors, request_key, rollouts
from toolbelt.core.rules import resolution
from toolbelt.runtime import calls, surfaces
from toolbelt.runtime.calls import admissions
from toolbelt.runtime.records import record_writer
from toolbelt.runtime.surfaces import appending, documents
from toolbelt.runtime.surfaces import snapshots as request_snapshots
from toolbelt.store import audit, clock, revisions, snapshots

WRITE = writing.by("olive", via="screen")
CONFIRMED = WRITE.replace(confirm=True)
NOW = dt.datetime(2026, 11, 29, 12, 0, tzinfo=dt.UTC)
HOUR, DAY = dt.timedelta(hours=1), dt.timedelta(days=1)


@pytest.fixture
def olive(db: None) -> Any:
    auth.get_user_model().objects.create_user("olive")
    roles.assign(WRITE, "olive", "operator")
    return auth.get_user_model().objects.get(username="olive")


def flip(agent: str = "bob", key: str = "reading", on: bool | None = False) -> Callable[[writing.Write], Any]:
    return lambda write: switches.flip(write, agent, key, on)


def saved(*acts: Callable[[writing.Write], Any]) -> drafts.Draft:
    def act(write: writing.Write) -> None:
        for each in acts:
            each(write)

    with clock.stopped(NOW):
        return drafts.save(WRITE, act)


def rolled_out(draft: drafts.Draft, **options: Any) -> trials.Trial:
    with clock.stopped(NOW):
        return trials.roll_out(CONFIRMED, draft.key, **{"percent": 50, **options})


@pytest.fixture
def draft(stored: None, olive: Any) -> drafts.Draft:
    return saved(flip())


def of(draft: drafts.Draft) -> trials.Trial:
    trial = trials.latest(draft.key)
    assert trial is not None
    return trial


def in_arm(trial: trials.Trial, is_new: bool, agent: str = "bob") -> str:
    """Return a session of the new arm, or of the old one."""
    rollout = agents.Rollout(trial=trial.pk, percent=trial.percent, changes="[]")
    names = (f"s{number}" for number in range(1000))
    return next(name for name in names if rollouts.includes(rollout, agent, name) is is_new)


def active(session: str | None = None, agent: str = "bob") -> set[str]:
    return set(surfaces.ask(agent, session).resolution.active)


def round_at(moment: dt.datetime) -> int:
    with clock.stopped(moment):
        return trial_rounds.run()


def test_only_sessions_of_the_new_arm_have_the_draft(draft: drafts.Draft) -> None:
    before = active()
    trial = rolled_out(draft)
    new, old = in_arm(trial, True), in_arm(trial, False)

    assert active(new) == before - {"git__status", "git__log"}
    assert active(old) == active(None) == before
    assert snapshots.find("bob", None).agent.switches == {"reading": True}
    assert belts.export()["agents"][1]["tools_config"] == {"reading": True}
    assert surfaces.ask("bob", new).fingerprint != surfaces.ask("bob", old).fingerprint
    assert surfaces.ask("ada", new).fingerprint == surfaces.ask("ada", old).fingerprint


def test_its_start_and_its_end_are_seen_by_every_process_for_its_agents_only(draft: drafts.Draft) -> None:
    def numbers() -> tuple[int, int]:
        return revisions.number_of("bob"), revisions.number_of("ada")

    begun = numbers()
    state = snapshots.find("bob", "s1").state
    rolled_out(draft)
    running = numbers()
    assert (running[0] > begun[0], running[1]) == (True, begun[1])
    # So that a call that waits is checked again.
    assert snapshots.find("bob", "s1").state != state

    with clock.stopped(NOW):
        trials.stop(WRITE, draft.key)
    ended = numbers()
    assert (ended[0] > running[0], ended[1]) == (True, begun[1])
    # Both are in the log, which is complete.
    assert revisions.find_unlogged() is None


def test_a_conversation_that_runs_is_told_what_changed_and_goes_on(draft: drafts.Draft) -> None:
    def asked(session: str, token: str | None) -> dict[str, Any]:
        conversation = appending.Conversation(token=token)
        document = documents.of(
            surfaces.ask("bob", session), "anthropic", None, "claude-opus-5-5", conversation
        )
        answer: dict[str, Any] = document["append"]
        return answer

    token = asked("s1", None)["token"]
    rolled_out(draft, percent=100)
    told = asked("s1", token)
    assert (told["prefix"], told["restart"]) == (None, None)
    assert told["changes"]["removed"] == ["git__log", "git__status"]
    assert asked("s1", told["token"])["messages"] == []

    with clock.stopped(NOW):
        trials.stop(WRITE, draft.key)
    back = asked("s1", told["token"])
    assert (back["prefix"], back["restart"]) == (None, None)
    assert back["changes"]["added"] == ["git__log", "git__status"]


def test_it_counts_in_all_sessions_when_it_is_applied_and_in_none_when_it_is_stopped(
    draft: drafts.Draft,
) -> None:
    before = active()
    trial = rolled_out(draft)
    new, old = in_arm(trial, True), in_arm(trial, False)
    with clock.stopped(NOW):
        trials.stop(WRITE, draft.key)
    assert active(new) == active(old) == before
    assert of(draft).state == "stopped"

    rolled_out(draft)
    with clock.stopped(NOW):
        drafts.apply(CONFIRMED, draft.key)
    assert active(new) == active(old) == active() == before - {"git__status", "git__log"}
    assert of(draft).state == "applied"
    assert not models.Rollout.objects.exists()
    actions = [entry.action for entry in audit.page(subject_kind="draft").entries]
    assert actions == ["draft.rollout", "draft.stop", "draft.rollout", "draft.save"]
    [entry] = audit.of_batch(draft.key)
    assert (entry.action, entry.after) == ("switch.set", False)


def test_it_goes_back_at_its_end_and_waits_to_be_decided_about(draft: drafts.Draft) -> None:
    trial = rolled_out(draft)
    assert trial.ends == NOW + 14 * DAY

    assert round_at(NOW + 14 * DAY - HOUR) == 0
    assert not active(in_arm(trial, True)) & {"git__status"}
    assert round_at(NOW + 14 * DAY) == 1

    assert active(in_arm(trial, True)) == active(None)
    [undecided] = trials.undecided()
    assert (undecided.state, drafts.find(draft.key).applied) == ("ended", None)
    newest = audit.page(subject_kind="draft").entries[0]
    assert (newest.action, newest.actor, newest.actor_kind) == ("draft.revert", "system", "clock")
    assert newest.reason


def test_what_has_to_be_confirmed_to_apply_it_has_to_be_confirmed(stored: None, olive: Any) -> None:
    entries.change(WRITE, "agent", "bob", {"protected": True})
    draft = saved(flip())
    with clock.stopped(NOW), pytest.raises(errors.ConfirmationRequired):
        trials.roll_out(WRITE, draft.key)

    assert not models.Trial.objects.exists()
    assert not models.Rollout.objects.exists()
    assert rolled_out(draft).confirmed == ("bob is protected.",)


def test_other_changes_count_in_both_arms(draft: drafts.Draft) -> None:
    trial = rolled_out(draft)
    new, old = in_arm(trial, True), in_arm(trial, False)
    switches.flip(CONFIRMED, "bob", "pushing", True)
    assert all("git__push" in active(session) for session in (new, old))

    blocking.set_blocked(CONFIRMED, "tool", "clock", True)
    assert not any("clock" in active(session) for session in (new, old))


def test_a_denial_of_what_is_rolled_out_counts_at_once(stored: None, olive: Any) -> None:
    draft = saved(flip("bob", "pushing", True))
    trial = rolled_out(draft)
    new = in_arm(trial, True)
    assert "git__push" in active(new)

    switches.flip(CONFIRMED, "bob", "pushing", False)
    assert "git__push" not in active(new)
    assert active(new) == active(in_arm(trial, False))
    assert round_at(NOW + HOUR) == 1
    assert (of(draft).state, "pushing of agent bob" in of(draft).note) == ("reverted", True)
    switches.flip(CONFIRMED, "bob", "pushing", None)
    assert "git__push" not in active(new)


def flipped(write: writing.Write) -> None:
    switches.flip(write, "bob", "pushing", False)


def set_flat(write: writing.Write) -> None:
    tools_config.change(write, "bob", {"pushing": False})


def edited(write: writing.Write) -> None:
    entries.change(write, "agent", "bob", {"tools_config.pushing": False})


def edited_as_a_whole(write: writing.Write) -> None:
    entries.change(write, "agent", "bob", {"tools_config": {"pushing": False, "reading": True}})


def flipped_for_all(write: writing.Write) -> None:
    bulk.apply(write, bulk.plan(["ada", "bob"], ["pushing"], False).seen, False)


@pytest.mark.parametrize("deny", [flipped, set_flat, edited, edited_as_a_whole, flipped_for_all])
def test_turning_off_what_is_off_without_it_ends_it_at_once(
    deny: Callable[[writing.Write], None], stored: None, olive: Any
) -> None:
    for agent in ("ada", "bob"):
        switches.flip(CONFIRMED, agent, "pushing", False)
    draft = saved(flip("bob", "pushing", True))
    new = in_arm(rolled_out(draft), True)
    with writing.dry_run():
        deny(CONFIRMED)
    assert "git__push" in active(new)

    deny(CONFIRMED)

    assert "git__push" not in active(new)
    assert (of(draft).state, "olive set pushing of bob" in of(draft).note) == ("reverted", True)
    entry = audit.page(subject_kind="draft").entries[0]
    assert (entry.action, entry.actor, entry.reason) == ("draft.stop", "olive", of(draft).note)
    assert revisions.find_unlogged() is None


def test_putting_only_what_is_set_without_it_ends_it(stored: None, olive: Any) -> None:
    rolled_out(draft := saved(flip("bob", "pushing", True)), percent=100)
    assert "git__push" in active("s1")

    tools_config.put(CONFIRMED, "bob", {"reading": True})

    assert "git__push" not in active("s1")
    assert of(draft).state == "reverted"


def test_denying_risks_that_are_denied_without_it_ends_it_and_other_writes_do_not(
    stored: None, olive: Any
) -> None:
    entries.change(CONFIRMED, "agent", "bob", {"denied_risks": ["writes"]})
    draft = saved(lambda write: entries.change(write, "agent", "bob", {"denied_risks": None}))
    rolled_out(draft, percent=100)
    entries.change(CONFIRMED, "agent", "bob", {"title": "Bob"})
    entries.change(CONFIRMED, "agent", "bob", {"title": "Bob"})
    switches.flip(CONFIRMED, "bob", "reading", True)
    entries.change(CONFIRMED, "agent", "ada", {"denied_risks": None})
    assert snapshots.find("bob", "s1").agent.denied_risks == ()

    entries.change(CONFIRMED, "agent", "bob", {"denied_risks": ["writes"]})

    assert snapshots.find("bob", "s1").agent.denied_risks == ("writes",)
    assert of(draft).state == "reverted"


def test_its_end_counts_before_anything_is_written(stored: None, olive: Any) -> None:
    draft = saved(flip("bob", "pushing", True))
    rolled_out(draft, percent=100, ends=NOW + HOUR)
    with clock.stopped(NOW):
        snapshot, before = taken("s1")
        assert "git__push" in active("s1")
        assert not request_snapshots.has_expired(snapshot)

    with clock.stopped(NOW + HOUR):
        assert "git__push" not in active("s1")
        assert request_snapshots.has_expired(snapshot)
        # So that a call that waits is checked again.
        assert taken("s1")[1].state != before.state
    assert of(draft).is_running


def taken(session: str) -> tuple[resolution.Snapshot, snapshots.StoredState]:
    return request_snapshots.take(request_key.RequestKey("bob", session, None, None))


def test_the_new_arm_has_toolkits_in_the_order_of_the_draft(stored: None, olive: Any) -> None:
    entries.change(CONFIRMED, "agent", "bob", {"allowed_toolkits": ["pushing", "reading"]})
    changes = {"allowed_toolkits": ["reading", "pushing"]}
    rolled_out(saved(lambda write: entries.change(write, "agent", "bob", changes)), percent=100)

    assert snapshots.find("bob", "s1").agent.allowed_toolkits == ("reading", "pushing")


def test_a_tool_does_not_get_what_was_rolled_out_of_a_toolkit_of_its_name(stored: None, olive: Any) -> None:
    new = in_arm(rolled_out(saved(flip("bob", "pushing", True))), True)
    entries.remove(CONFIRMED, "toolkit", "pushing")
    entries.put(CONFIRMED, "tool", {"key": "pushing"})

    assert active(new) == active(None)
    assert snapshots.find("bob", new).agent.overrides == {}


def test_an_override_that_is_off_counts_although_the_toolkit_is_rolled_out(stored: None, olive: Any) -> None:
    draft = saved(flip("bob", "pushing", True))
    new = in_arm(rolled_out(draft), True)
    switches.override(CONFIRMED, "bob", "git__push", False)

    assert "git__push" not in active(new)
    assert round_at(NOW + HOUR) == 0


def demoted(olive: Any) -> None:
    roles.remove(WRITE, "olive", "operator")


def deactivated(olive: Any) -> None:
    olive.is_active = False
    olive.save()


def replaced(olive: Any) -> None:
    olive.delete()
    auth.get_user_model().objects.create_user("olive")
    roles.assign(WRITE, "olive", "operator")


def protected(olive: Any) -> None:
    entries.change(WRITE, "agent", "bob", {"protected": True})


@pytest.mark.parametrize("meanwhile", [demoted, deactivated, replaced, protected])
def test_it_is_taken_back_if_who_began_it_could_not_begin_it_now(
    meanwhile: Callable[[Any], None], draft: drafts.Draft, olive: Any
) -> None:
    new = in_arm(rolled_out(draft), True)
    assert round_at(NOW + HOUR) == 0
    meanwhile(olive)

    assert round_at(NOW + 2 * HOUR) == 1

    assert "git__status" in active(new)
    [trial] = trials.undecided()
    assert trial.state == "reverted"
    assert trial.note
    entry = audit.page(subject_kind="draft").entries[0]
    assert (entry.action, entry.reason) == ("draft.revert", trial.note)


def test_one_from_the_command_line_has_no_user_whose_rights_could_end(draft: drafts.Draft) -> None:
    with clock.stopped(NOW):
        trials.roll_out(writing.by("root", via="command", reason="Try").replace(confirm=True), draft.key)

    assert round_at(NOW + HOUR) == 0
    assert of(draft).is_running


def test_an_agent_does_not_roll_out(draft: drafts.Draft) -> None:
    with clock.stopped(NOW), pytest.raises(errors.Refused):
        trials.roll_out(writing.by("agent:bob", via="api", kind="agent"), draft.key)


def changed(**fields: Any) -> Callable[[writing.Write], Any]:
    return lambda write: entries.change(write, "agent", "bob", fields)


SET: dict[str, Any] = {
    "kind": "plan",
    "loadout": "minimal",
    "tools": ["clock", {"tool": "git__push", "options": {"depth": 3}}],
    "allowed_toolkits": ["reading", "pushing"],
    "initial_toolkits": ["reading"],
    "budget": {"max_tools": 9, "on_exceed": "defer"},
    "denied_risks": ["destructive"],
}
OTHERS: dict[str, Any] = {
    "kind": None,
    "loadout": "full",
    "tools": ["clock"],
    "allowed_toolkits": ["reading", "verbose"],
    "initial_toolkits": None,
    "budget": None,
    "denied_risks": ["writes", "destructive"],
}


@pytest.mark.parametrize("is_set", [False, True])
@pytest.mark.parametrize("field", SET)
def test_every_field_that_sessions_can_differ_in_is_rolled_out(
    field: str, is_set: bool, stored: None, olive: Any
) -> None:
    assert set(SET) == rollouts.FIELDS
    changed(allowed_toolkits=["reading", "pushing"] if field == "initial_toolkits" else None)(CONFIRMED)
    if is_set:
        changed(**SET)(CONFIRMED)
    value = (OTHERS if is_set else SET)[field]
    draft = saved(changed(**{field: value}))
    before = snapshots.find("bob", "s1").agent
    trial = rolled_out(draft, percent=100)
    agent = snapshots.find("bob", "s1").agent
    assert agent.arm is not None
    assert agent.arm.trial == trial.pk
    assert getattr(agent, field) != getattr(before, field)
    assert round_at(NOW + HOUR) == 0

    with clock.stopped(NOW):
        drafts.apply(CONFIRMED, draft.key)
    applied = snapshots.find("bob", "s1").agent
    assert dataclasses.replace(agent, rollout=None, arm=None) == applied


def put_loadout(write: writing.Write) -> None:
    entries.put(write, "loadout", {"name": "house", "plugins": ["git"]})


def timed(write: writing.Write) -> None:
    switches.flip(write, "bob", "pushing", True, ends=clock.now() + DAY)


@pytest.mark.parametrize(
    ("act", "named"),
    [
        (lambda write: entries.change(write, "toolkit", "reading", {"policy": "Look."}), "toolkit reading"),
        (put_loadout, "loadout house"),
        (lambda write: entries.change(write, "agent", "bob", {"title": "Bob"}), "title of bob"),
        (lambda write: entries.change(write, "agent", "bob", {"subagent_kinds": ["plan"]}), "subagent_kinds"),
        (lambda write: entries.put(write, "agent", {"key": "eve"}), "eve"),
        (lambda write: entries.remove(write, "agent", "ada"), "ada"),
        (timed, "pushing of bob"),
    ],
)
def test_what_cannot_count_in_only_some_sessions_is_refused_with_the_way_out(
    act: Callable[[writing.Write], Any], named: str, stored: None, olive: Any
) -> None:
    draft = saved(act)
    with pytest.raises(errors.Refused, match=named):
        rolled_out(draft)

    assert not models.Trial.objects.exists()


def test_it_is_rolled_out_to_named_agents_first(stored: None, olive: Any) -> None:
    draft = saved(flip("bob"), flip("ada", "reading", True))
    before = active(agent="ada")
    trial = rolled_out(draft, percent=100, agents=["bob"])

    assert trial.agents == ("bob",)
    assert "git__log" not in active("s1")
    assert active("s1", "ada") == before
    assert "git__log" in active(None)
    with clock.stopped(NOW):
        drafts.apply(CONFIRMED, draft.key)
    assert "git__log" in active("s1", "ada")
    assert "git__log" not in active(None)


def test_an_agent_has_one_roll_out_at_a_time(draft: drafts.Draft) -> None:
    other = saved(flip("bob", "pushing", True), flip("ada", "pushing", True))
    rolled_out(draft)

    with pytest.raises(errors.Refused, match="bob"):
        rolled_out(other)
    with pytest.raises(errors.Refused):
        rolled_out(draft)
    rolled_out(other, agents=["ada"])
    with clock.stopped(NOW), pytest.raises(errors.Refused):
        drafts.discard(WRITE, draft.key)


@pytest.mark.parametrize(
    "options",
    [{"percent": 0}, {"percent": 101}, {"agents": ["ada"]}, {"ends": NOW}, {"ends": NOW + 91 * DAY}],
)
def test_what_makes_no_sense_is_an_error(options: dict[str, Any], draft: drafts.Draft) -> None:
    with pytest.raises(errors.Invalid):
        rolled_out(draft, **options)


def test_a_deleted_agent_leaves_no_roll_out(draft: drafts.Draft) -> None:
    rolled_out(draft)
    entries.remove(CONFIRMED, "agent", "bob")

    assert not models.Rollout.objects.exists()
    assert round_at(NOW + HOUR) == 1
    assert of(draft).state == "reverted"


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
