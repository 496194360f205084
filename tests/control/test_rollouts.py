"""Tests that a draft is rolled out to some sessions: only to those, as it was approved, and back at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from tests.control.trying import (
    CONFIRMED,
    DAY,
    HOUR,
    NOW,
    WRITE,
    active,
    deactivated,
    demoted,
    flip,
    in_arm,
    of,
    put_loadout,
    replaced,
    rolled_out,
    round_at,
    saved,
)
from toolbelt import models
from toolbelt.control import drafts, trials, writing
from toolbelt.control.access import bulk, switches, tools_config
from toolbelt.control.catalog import blocking, entries
from toolbelt.control.config import belts
from toolbelt.core import errors, request_key, rollouts
from toolbelt.core.rules import resolution
from toolbelt.runtime import surfaces
from toolbelt.runtime.surfaces import appending, documents
from toolbelt.runtime.surfaces import snapshots as request_snapshots
from toolbelt.store import audit, clock, revisions, snapshots


@pytest.fixture
def draft(stored: None, olive: Any) -> drafts.Draft:
    return saved(flip())


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
