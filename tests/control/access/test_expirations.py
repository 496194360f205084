"""Tests that timed grants expire to the second, and that the audit log records it."""

import dataclasses
import datetime as dt
import uuid
from collections.abc import Iterator

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from toolbelt.control import undo, writing
from toolbelt.control.access import expirations, switches, tools_config
from toolbelt.control.catalog import entries
from toolbelt.control.config import belts
from toolbelt.control.reports import queries
from toolbelt.core import admitting, errors, grants
from toolbelt.core.request_key import RequestKey
from toolbelt.runtime import calls as gate
from toolbelt.runtime import surfaces
from toolbelt.runtime.surfaces import explain
from toolbelt.store import clock, expiry, snapshots

pytestmark = pytest.mark.usefixtures("stored", "noon")

NOON = dt.datetime(2031, 5, 4, 12, tzinfo=dt.UTC)
TWO = NOON + dt.timedelta(hours=2)
SECOND = dt.timedelta(seconds=1)


@pytest.fixture
def noon() -> Iterator[None]:
    with clock.stopped(NOON):
        yield


def active(agent: str = "ada") -> list[str]:
    return [definition.name for definition in surfaces.ask(agent).tools]


def test_a_timed_grant_expires_to_the_second_without_a_write(operator: writing.Write) -> None:
    before = surfaces.ask("ada").fingerprint
    switches.flip(operator, "ada", "reading", True, ends=TWO)
    during = surfaces.ask("ada").fingerprint

    with clock.stopped(TWO - SECOND):
        assert active() == ["clock", "git__log", "git__status"]
        assert surfaces.ask("ada").fingerprint == during
    with clock.stopped(TWO):
        assert active() == ["clock"]
        assert surfaces.ask("ada").fingerprint == before
        assert entries.read("agent", "ada") == {"key": "ada"}
        assert queries.access("ada").agent.switches == {}


def test_a_call_is_refused_from_the_second_the_grant_expires(operator: writing.Write) -> None:
    switches.override(operator, "ada", "git__log", True, ends=TWO)

    with clock.stopped(TWO - SECOND):
        assert isinstance(gate.admit(RequestKey("ada"), "git__log", {}), admitting.Admission)
    with clock.stopped(TWO):
        assert isinstance(gate.admit(RequestKey("ada"), "git__log", {}), admitting.Refusal)


def test_a_switch_that_was_off_is_off_again_after_expiry(operator: writing.Write) -> None:
    switches.flip(operator, "ada", "reading", False)
    switches.flip(operator, "ada", "reading", True, ends=TWO)

    with clock.stopped(TWO):
        assert explain.why(RequestKey("ada"), "git__log").decision.code == "switch-off"


def test_asking_takes_one_query_before_and_after_an_expiry(operator: writing.Write) -> None:
    switches.flip(operator, "ada", "reading", True, ends=TWO)
    for moment in (NOON, TWO):
        with clock.stopped(moment):
            surfaces.ask("ada")
            with CaptureQueriesContext(
                connection,
            ) as queried:
                surfaces.ask("ada")
            assert len(queried) == 1


def test_the_reason_states_the_end_and_who_set_it(operator: writing.Write) -> None:
    switches.flip(operator, "ada", "reading", True, ends=TWO)

    decision = explain.why(RequestKey("ada"), "git__log")

    assert decision.decision.origin.detail == "until 2031-05-04 14:00 UTC (set by olive)"
    assert decision.line.endswith("toolkit reading is on until 2031-05-04 14:00 UTC (set by olive)")


def test_the_audit_entry_states_the_end_and_the_value_after_it(operator: writing.Write) -> None:
    change = switches.flip(operator, "ada", "reading", True, ends=TWO)

    entry = queries.change(change.entry or 0)
    assert entry is not None
    assert entry.after == {"on": True, "ends": "2031-05-04T14:00:00Z", "then": None}


def test_the_next_write_first_records_expired_grants_with_their_end(operator: writing.Write) -> None:
    switches.flip(operator, "ada", "reading", True, ends=TWO)

    with clock.stopped(TWO + dt.timedelta(hours=3)):
        switches.flip(operator, "ada", "pushing", False)

    last, ended, _ = queries.changes(agent="ada").entries[:3]
    assert last.key == "pushing"
    assert (ended.action, ended.actor, ended.via, ended.at) == ("switch.end", "system", "system", TWO)
    assert ended.before == {"on": True, "ends": "2031-05-04T14:00:00Z", "then": None}
    assert ended.after is None


@pytest.mark.parametrize("write", ["entry", "flat", "belt"])
def test_every_kind_of_write_records_an_expiry(operator: writing.Write, write: str) -> None:
    switches.override(operator, "ada", "git__log", True, ends=TWO)

    with clock.stopped(TWO):
        if write == "entry":
            entries.change(operator, "agent", "ada", {"role": "reader"})
        elif write == "flat":
            tools_config.put(operator, "ada", {"reading": False})
        else:
            belts.import_(operator, {"agents": [{"key": "ada", "role": "reader"}]})

    assert [entry.action for entry in queries.changes(agent="ada", action="override.end").entries] == [
        "override.end"
    ]


def test_due_expirations_are_written_once(operator: writing.Write) -> None:
    switches.flip(operator, "ada", "reading", True, ends=TWO)
    switches.flip(operator, "bob", "reading", False, ends=TWO)
    switches.override(operator, "bob", "clock", False, ends=TWO + SECOND)

    with clock.stopped(TWO):
        assert expirations.record_due() == 2
        assert expirations.record_due() == 0
        assert expiry.next_ends(TWO) == {"bob": TWO + SECOND}
        assert expiry.next_ends(TWO, ["ada"]) == {}
        assert snapshots.find("bob", None).written.switches == {"reading": True}


def test_turning_a_timed_switch_on_permanently_removes_the_end(operator: writing.Write) -> None:
    switches.flip(operator, "ada", "reading", True, ends=TWO)
    change = switches.flip(operator, "ada", "reading", True)

    assert not change.is_nothing
    with clock.stopped(TWO):
        assert "git__log" in active()


def test_putting_tools_config_keeps_the_ends_of_unchanged_switches(operator: writing.Write) -> None:
    switches.flip(operator, "ada", "reading", True, ends=TWO)
    tools_config.put(operator, "ada", {"reading": True, "clock": False})

    with clock.stopped(TWO):
        assert tools_config.read("ada") == {"clock": False}


def test_an_extended_grant_reverts_to_the_value_before_the_first_one(operator: writing.Write) -> None:
    switches.flip(operator, "ada", "reading", False)
    switches.flip(operator, "ada", "reading", True, ends=TWO)
    switches.flip(operator, "ada", "reading", True, ends=TWO + SECOND)

    with clock.stopped(TWO):
        assert "git__log" in active()
    with clock.stopped(TWO + SECOND):
        assert tools_config.read("ada") == {"reading": False}


@pytest.mark.parametrize(
    ("on", "moment", "message"),
    [
        (True, NOON, "is in the past"),
        (True, NOON - SECOND, "is in the past"),
        (True, NOON.replace(tzinfo=None), "has no time zone"),
        (None, TWO, "cannot have an end"),
    ],
)
def test_an_invalid_end_is_refused_at_its_path(
    operator: writing.Write, on: bool | None, moment: dt.datetime, message: str
) -> None:
    with pytest.raises(errors.Invalid, match=message) as refused:
        switches.flip(operator, "ada", "reading", on, ends=moment)
    assert refused.value.problems[0].path == "ends"


def test_a_permanently_on_switch_cannot_be_given_an_end(operator: writing.Write) -> None:
    with pytest.raises(errors.Invalid, match="permanently on"):
        switches.flip(operator, "bob", "reading", True, ends=TWO)


def test_undoing_restores_the_end(operator: writing.Write) -> None:
    switches.flip(operator, "ada", "reading", True, ends=TWO)
    off = switches.flip(operator, "ada", "reading", False)
    undo.undo(operator, off.entry or 0)

    end = snapshots.find("ada", None).agent.ends["reading"]
    assert (end.at, end.then) == (TWO, None)


def test_undoing_after_the_end_restores_the_value_after_it(operator: writing.Write) -> None:
    switches.flip(operator, "ada", "reading", True, ends=TWO)
    off = switches.flip(operator, "ada", "reading", False)

    with clock.stopped(TWO):
        undo.undo(operator, off.entry or 0)
        assert tools_config.read("ada") == {}


def test_undoing_a_grant_that_was_extended_since_is_refused(operator: writing.Write) -> None:
    granted = switches.flip(operator, "ada", "reading", True, ends=TWO)
    switches.flip(operator, "ada", "reading", True, ends=TWO + SECOND)

    with pytest.raises(errors.Stale):
        undo.undo(operator, granted.entry or 0)


def test_an_expiry_cannot_be_undone(operator: writing.Write) -> None:
    switches.flip(operator, "ada", "reading", True, ends=TWO)
    with clock.stopped(TWO):
        expirations.record_due()
        ended = queries.changes(agent="ada").entries[0]
        with pytest.raises(errors.Refused, match="set the switch again"):
            undo.undo(operator, ended.id)


def test_a_belt_includes_ends(operator: writing.Write) -> None:
    switches.flip(operator, "ada", "reading", True, ends=TWO)
    document = belts.export()

    assert document["agents"][0]["ends"] == {"reading": {"at": "2031-05-04T14:00:00Z", "by": "olive"}}
    assert belts.preview(operator, document).differences == ()
    tools_config.put(operator, "ada", {})
    belts.import_(operator, document)
    with clock.stopped(TWO):
        assert active() == ["clock"]
    assert "git__log" in active()


def test_an_end_of_an_unset_switch_is_refused_at_its_path(operator: writing.Write) -> None:
    with pytest.raises(errors.Invalid) as refused:
        entries.change(operator, "agent", "ada", {"ends": {"reading": {"at": "2031-05-04T14:00:00Z"}}})
    assert refused.value.problems[0].path == "agents.ada.ends.reading"


def test_extending_a_grant_of_a_protected_agent_requires_confirmation(operator: writing.Write) -> None:
    switches.flip(operator, "ada", "reading", True, ends=TWO)
    entries.change(operator, "agent", "ada", {"protected": True})

    with pytest.raises(errors.ConfirmationRequired):
        switches.flip(operator, "ada", "reading", True, ends=TWO + SECOND)


def test_a_removed_agent_does_not_prevent_other_expirations_from_being_written(
    operator: writing.Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    switches.flip(operator, "ada", "reading", True, ends=TWO)
    due = expiry.due

    with clock.stopped(TWO):
        monkeypatch.setattr(expiry, "due", lambda now: ["gone", *due(now)])
        assert expirations.record_due() == 1


def test_a_flip_based_on_an_outdated_end_is_refused(operator: writing.Write) -> None:
    switches.flip(operator, "ada", "reading", True, ends=TWO)
    seen = grants.switch_state(snapshots.find("ada", None).agent, "reading")
    switches.flip(operator, "ada", "reading", True, ends=TWO + SECOND, was=True)

    with pytest.raises(errors.Stale):
        switches.flip(operator, "ada", "reading", False, was=seen)


def test_unrecorded_expirations_are_listed_without_writing_them(
    operator: writing.Write,
) -> None:
    switches.flip(operator, "ada", "reading", True, ends=TWO)
    switches.flip(operator, "bob", "reading", False, ends=TWO + SECOND)
    assert queries.unrecorded() == []

    with clock.stopped(TWO + SECOND):
        before = queries.changes().total
        bob_expiry, ada_expiry = queries.unrecorded()
        assert queries.unrecorded(agent="ada") == [ada_expiry]
        assert (bob_expiry.subject_key, bob_expiry.at, bob_expiry.after) == ("bob", TWO + SECOND, True)
        assert queries.unrecorded(batch=uuid.uuid4()) == queries.unrecorded(actor="olive") == []
        assert queries.changes().total == before
        # The written entry equals the listed one.
        expirations.record_due()
        recorded = queries.changes(agent="ada").entries[0]
        assert dataclasses.replace(recorded, id=0, revision=None) == ada_expiry
        assert queries.unrecorded() == []
