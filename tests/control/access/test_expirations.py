"""Timed grants expire at their second, and the log records it."""

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
from toolbelt.core import calls, errors, grants
from toolbelt.runtime import calls as gate
from toolbelt.runtime import explain, surfaces
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


def test_it_is_over_at_its_second_though_nobody_wrote_anything(operator: writing.Write) -> None:
    before = surfaces.ask("ada").fingerprint
    switches.flip(operator, "ada", "reading", True, ends=TWO)
    while_it_stands = surfaces.ask("ada").fingerprint

    with clock.stopped(TWO - SECOND):
        assert active() == ["clock", "git__log", "git__status"]
        assert surfaces.ask("ada").fingerprint == while_it_stands
    with clock.stopped(TWO):
        assert active() == ["clock"]
        assert surfaces.ask("ada").fingerprint == before
        assert entries.read("agent", "ada") == {"key": "ada"}
        assert queries.access("ada").agent.switches == {}


def test_a_call_is_refused_from_that_second_on(operator: writing.Write) -> None:
    switches.override(operator, "ada", "git__log", True, ends=TWO)

    with clock.stopped(TWO - SECOND):
        assert isinstance(gate.admit("ada", "git__log", {}), calls.Admission)
    with clock.stopped(TWO):
        assert isinstance(gate.admit("ada", "git__log", {}), calls.Refusal)


def test_what_was_off_before_is_off_again(operator: writing.Write) -> None:
    switches.flip(operator, "ada", "reading", False)
    switches.flip(operator, "ada", "reading", True, ends=TWO)

    with clock.stopped(TWO):
        assert explain.why("ada", "git__log").decision.code == "switch-off"


def test_one_question_costs_one_query_before_and_after_an_end(operator: writing.Write) -> None:
    switches.flip(operator, "ada", "reading", True, ends=TWO)
    for moment in (NOON, TWO):
        with clock.stopped(moment):
            surfaces.ask("ada")
            with CaptureQueriesContext(
                connection,
            ) as queried:
                surfaces.ask("ada")
            assert len(queried) == 1


def test_the_reason_says_until_when_and_who_gave_it(operator: writing.Write) -> None:
    switches.flip(operator, "ada", "reading", True, ends=TWO)

    decision = explain.why("ada", "git__log")

    assert decision.decision.origin.detail == "until 2031-05-04 14:00 UTC (set by olive)"
    assert decision.line.endswith("toolkit reading is on until 2031-05-04 14:00 UTC (set by olive)")


def test_the_entry_says_the_end_and_what_stands_then(operator: writing.Write) -> None:
    change = switches.flip(operator, "ada", "reading", True, ends=TWO)

    entry = queries.change(change.entry or 0)
    assert entry is not None
    assert entry.after == {"on": True, "ends": "2031-05-04T14:00:00Z", "then": None}


def test_whoever_writes_next_writes_first_what_is_over_as_of_its_end(operator: writing.Write) -> None:
    switches.flip(operator, "ada", "reading", True, ends=TWO)

    with clock.stopped(TWO + dt.timedelta(hours=3)):
        switches.flip(operator, "ada", "pushing", False)

    last, ended, _ = queries.changes(agent="ada").entries[:3]
    assert last.key == "pushing"
    assert (ended.action, ended.actor, ended.via, ended.at) == ("switch.end", "system", "system", TWO)
    assert ended.before == {"on": True, "ends": "2031-05-04T14:00:00Z", "then": None}
    assert ended.after is None


@pytest.mark.parametrize("write", ["entry", "flat", "belt"])
def test_every_door_writes_it(operator: writing.Write, write: str) -> None:
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


def test_a_thread_or_a_command_writes_all_that_is_due_once(operator: writing.Write) -> None:
    switches.flip(operator, "ada", "reading", True, ends=TWO)
    switches.flip(operator, "bob", "reading", False, ends=TWO)
    switches.override(operator, "bob", "clock", False, ends=TWO + SECOND)

    with clock.stopped(TWO):
        assert expirations.write_due() == 2
        assert expirations.write_due() == 0
        assert expiry.next_ends(TWO) == {"bob": TWO + SECOND}
        assert expiry.next_ends(TWO, ["ada"]) == {}
        assert snapshots.find("bob", None).written.switches == {"reading": True}


def test_flipping_it_for_good_takes_the_end_away(operator: writing.Write) -> None:
    switches.flip(operator, "ada", "reading", True, ends=TWO)
    change = switches.flip(operator, "ada", "reading", True)

    assert not change.is_nothing
    with clock.stopped(TWO):
        assert "git__log" in active()


def test_the_flat_form_leaves_the_end_of_what_it_leaves_as_it_is(operator: writing.Write) -> None:
    switches.flip(operator, "ada", "reading", True, ends=TWO)
    tools_config.put(operator, "ada", {"reading": True, "clock": False})

    with clock.stopped(TWO):
        assert tools_config.read("ada") == {"clock": False}


def test_a_longer_while_goes_back_to_what_stood_before_the_first(operator: writing.Write) -> None:
    switches.flip(operator, "ada", "reading", False)
    switches.flip(operator, "ada", "reading", True, ends=TWO)
    switches.flip(operator, "ada", "reading", True, ends=TWO + SECOND)

    with clock.stopped(TWO):
        assert "git__log" in active()
    with clock.stopped(TWO + SECOND):
        assert tools_config.read("ada") == {"reading": False}


@pytest.mark.parametrize(
    ("on", "moment", "said"),
    [
        (True, NOON, "is in the past"),
        (True, NOON - SECOND, "is in the past"),
        (True, NOON.replace(tzinfo=None), "has no time zone"),
        (None, TWO, "cannot have an end"),
    ],
)
def test_an_end_that_cannot_be_is_refused_by_its_name(
    operator: writing.Write, on: bool | None, moment: dt.datetime, said: str
) -> None:
    with pytest.raises(errors.Invalid, match=said) as refused:
        switches.flip(operator, "ada", "reading", on, ends=moment)
    assert refused.value.problems[0].path == "ends"


def test_what_is_on_for_good_cannot_be_on_for_a_while(operator: writing.Write) -> None:
    with pytest.raises(errors.Invalid, match="permanently on"):
        switches.flip(operator, "bob", "reading", True, ends=TWO)


def test_undoing_brings_the_end_back(operator: writing.Write) -> None:
    switches.flip(operator, "ada", "reading", True, ends=TWO)
    off = switches.flip(operator, "ada", "reading", False)
    undo.undo(operator, off.entry or 0)

    end = snapshots.find("ada", None).agent.ends["reading"]
    assert (end.at, end.then) == (TWO, None)


def test_undoing_after_the_end_brings_back_what_stands_then(operator: writing.Write) -> None:
    switches.flip(operator, "ada", "reading", True, ends=TWO)
    off = switches.flip(operator, "ada", "reading", False)

    with clock.stopped(TWO):
        undo.undo(operator, off.entry or 0)
        assert tools_config.read("ada") == {}


def test_undoing_sees_that_somebody_gave_it_for_longer(operator: writing.Write) -> None:
    given = switches.flip(operator, "ada", "reading", True, ends=TWO)
    switches.flip(operator, "ada", "reading", True, ends=TWO + SECOND)

    with pytest.raises(errors.Stale):
        undo.undo(operator, given.entry or 0)


def test_an_end_is_not_taken_back(operator: writing.Write) -> None:
    switches.flip(operator, "ada", "reading", True, ends=TWO)
    with clock.stopped(TWO):
        expirations.write_due()
        ended = queries.changes(agent="ada").entries[0]
        with pytest.raises(errors.Refused, match="set the switch again"):
            undo.undo(operator, ended.id)


def test_a_belt_takes_the_end_along(operator: writing.Write) -> None:
    switches.flip(operator, "ada", "reading", True, ends=TWO)
    document = belts.export()

    assert document["agents"][0]["ends"] == {"reading": {"at": "2031-05-04T14:00:00Z", "by": "olive"}}
    assert belts.preview(operator, document).differences == ()
    tools_config.put(operator, "ada", {})
    belts.import_(operator, document)
    with clock.stopped(TWO):
        assert active() == ["clock"]
    assert "git__log" in active()


def test_an_end_of_what_is_not_set_is_refused_where_it_stands(operator: writing.Write) -> None:
    with pytest.raises(errors.Invalid) as refused:
        entries.change(operator, "agent", "ada", {"ends": {"reading": {"at": "2031-05-04T14:00:00Z"}}})
    assert refused.value.problems[0].path == "agents.ada.ends.reading"


def test_a_protected_agent_is_asked_about_a_longer_while(operator: writing.Write) -> None:
    switches.flip(operator, "ada", "reading", True, ends=TWO)
    entries.change(operator, "agent", "ada", {"protected": True})

    with pytest.raises(errors.ConfirmationRequired):
        switches.flip(operator, "ada", "reading", True, ends=TWO + SECOND)


def test_an_agent_that_is_gone_by_then_keeps_no_other_end_from_being_written(
    operator: writing.Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    switches.flip(operator, "ada", "reading", True, ends=TWO)
    due = expiry.due

    with clock.stopped(TWO):
        monkeypatch.setattr(expiry, "due", lambda now: ["gone", *due(now)])
        assert expirations.write_due() == 1


def test_who_saw_another_end_is_told(operator: writing.Write) -> None:
    switches.flip(operator, "ada", "reading", True, ends=TWO)
    seen = grants.switch_state(snapshots.find("ada", None).agent, "reading")
    switches.flip(operator, "ada", "reading", True, ends=TWO + SECOND, was=True)

    with pytest.raises(errors.Stale):
        switches.flip(operator, "ada", "reading", False, was=seen)


def test_what_is_over_and_not_written_yet_is_told_of_each_agent_and_writes_nothing(
    operator: writing.Write,
) -> None:
    switches.flip(operator, "ada", "reading", True, ends=TWO)
    switches.flip(operator, "bob", "reading", False, ends=TWO + SECOND)
    assert queries.unrecorded() == []

    with clock.stopped(TWO + SECOND):
        before = queries.changes().total
        bobs, adas = queries.unrecorded()
        assert queries.unrecorded(agent="ada") == [adas]
        assert (bobs.subject_key, bobs.at, bobs.after) == ("bob", TWO + SECOND, True)
        assert queries.unrecorded(batch=uuid.uuid4()) == queries.unrecorded(actor="olive") == []
        assert queries.changes().total == before
        # The entry that is written equals the one that was shown.
        expirations.write_due()
        written = queries.changes(agent="ada").entries[0]
        assert dataclasses.replace(written, id=0) == adas
        assert queries.unrecorded() == []
