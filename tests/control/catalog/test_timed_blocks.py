"""Tests that a block ends to the second, everywhere at once, and that the audit log records it."""

import datetime as dt
from collections.abc import Iterator

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from toolbelt.control import undo, writing
from toolbelt.control.access import expirations, switches
from toolbelt.control.catalog import blocking, entries, lists
from toolbelt.control.config import belts
from toolbelt.control.reports import queries
from toolbelt.core import admitting, errors
from toolbelt.core.request_key import RequestKey
from toolbelt.runtime import calls as gate
from toolbelt.runtime import surfaces
from toolbelt.runtime.surfaces import explain
from toolbelt.runtime.surfaces import snapshots as requests
from toolbelt.store import clock, counts, expiry, snapshots

pytestmark = pytest.mark.usefixtures("stored", "noon")

NOON = dt.datetime(2031, 5, 4, 12, tzinfo=dt.UTC)
TWO = NOON + dt.timedelta(hours=2)
SECOND = dt.timedelta(seconds=1)
ENDS = "2031-05-04T14:00:00Z"


@pytest.fixture
def noon() -> Iterator[None]:
    with clock.stopped(NOON):
        yield


def active(agent: str = "bob") -> list[str]:
    return [definition.name for definition in surfaces.ask(agent).tools]


def of_block(action: str = "block.end") -> list[queries.Entry]:
    return list(queries.changes(action=action).entries)


@pytest.mark.parametrize(("kind", "name"), [("tool", "git__log"), ("toolkit", "reading"), ("plugin", "git")])
def test_a_block_ends_to_the_second_without_a_write(
    operator: writing.Write, kind: blocking.Kind, name: str
) -> None:
    before = surfaces.ask("bob").fingerprint
    change = blocking.set_blocked(operator, kind, name, True, ends=TWO)
    during = surfaces.ask("bob").fingerprint
    assert change.after == {"blocked": True, "block_ends": ENDS}
    assert during != before

    with clock.stopped(TWO - SECOND):
        assert surfaces.ask("bob").fingerprint == during
        assert isinstance(gate.admit(RequestKey("bob"), "git__log", {}), admitting.Refusal)
        assert entries.read(kind, name)["block_ends"] == ENDS
    with clock.stopped(TWO):
        assert surfaces.ask("bob").fingerprint == before
        assert isinstance(gate.admit(RequestKey("bob"), "git__log", {}), admitting.Admission)
        assert "blocked" not in entries.read(kind, name)
        assert (kind, name) not in list(blocking.blocked(snapshots.catalog()))
        assert name not in str(lists.page(kind, filters={"blocked": True}, offset=0, limit=50).entries)
        assert "block_ends" not in str(belts.export())
    with clock.stopped(TWO - SECOND):
        assert surfaces.ask("bob").fingerprint == during, "the clock alone decides"


def test_asking_takes_one_query_before_and_after_the_end(operator: writing.Write) -> None:
    blocking.set_blocked(operator, "toolkit", "reading", True, ends=TWO)
    for moment in (NOON, TWO):
        with clock.stopped(moment):
            surfaces.ask("bob")
            with CaptureQueriesContext(connection) as queried:
                surfaces.ask("bob")
            assert len(queried) == 1


def test_a_snapshot_of_a_request_is_outdated_from_the_end_of_a_block(operator: writing.Write) -> None:
    blocking.set_blocked(operator, "plugin", "git", True, ends=TWO)
    snapshot, stored = requests.take(RequestKey("bob"))
    with clock.stopped(TWO - SECOND):
        assert not requests.has_expired(snapshot)
    with clock.stopped(TWO):
        assert requests.has_expired(snapshot)
        later, stored_later = requests.take(RequestKey("bob"))
        assert not requests.has_expired(later)
        assert stored_later.state != stored.state
        assert later.catalog.stamp != snapshot.catalog.stamp


def test_the_reason_states_the_end(operator: writing.Write) -> None:
    blocking.set_blocked(operator, "plugin", "git", True, ends=TWO)
    assert explain.why(RequestKey("bob"), "git__log").line.endswith(
        "blocked: plugin git is blocked for everyone until 2031-05-04 14:00 UTC"
    )


def test_what_another_block_covers_stays_denied(operator: writing.Write) -> None:
    blocking.set_blocked(operator, "tool", "git__log", True, ends=TWO)
    blocking.set_blocked(operator, "plugin", "git", True, ends=TWO + SECOND)
    blocking.set_blocked(operator, "toolkit", "reading", True)

    with clock.stopped(TWO):
        assert explain.why(RequestKey("bob"), "git__log").decision.origin.kind == "plugin"
    with clock.stopped(TWO + SECOND):
        assert explain.why(RequestKey("bob"), "git__log").decision.origin.kind == "toolkit"
        assert "git__log" not in active()


def test_a_switch_that_was_turned_off_meanwhile_stays_off_after_the_end(operator: writing.Write) -> None:
    blocking.set_blocked(operator, "plugin", "git", True, ends=TWO)
    switches.flip(operator, "bob", "reading", False)
    assert explain.why(RequestKey("bob"), "git__log").decision.code == "blocked"
    with clock.stopped(TWO):
        assert explain.why(RequestKey("bob"), "git__log").decision.code == "switch-off"
        assert isinstance(gate.admit(RequestKey("bob"), "git__log", {}), admitting.Refusal)


def test_an_end_in_the_past_is_refused_and_blocks_nothing(operator: writing.Write) -> None:
    with pytest.raises(errors.Invalid) as refused:
        blocking.set_blocked(operator, "plugin", "git", True, ends=NOON)
    (problem,) = refused.value.problems
    assert problem.path == "plugins.git.block_ends"
    assert problem.message == "2031-05-04T12:00:00Z is in the past: choose a later time."
    assert "git__log" in active()


def test_an_end_without_a_block_is_refused(operator: writing.Write) -> None:
    with pytest.raises(errors.Invalid, match="It is not blocked, so no block can end"):
        entries.change(operator, "tool", "git__log", {"block_ends": ENDS})


def test_a_block_without_an_end_gets_none(operator: writing.Write) -> None:
    blocking.set_blocked(operator, "plugin", "git", True)
    with pytest.raises(errors.Invalid, match="git is already blocked, without an end: unblock it first"):
        blocking.set_blocked(operator, "plugin", "git", True, ends=TWO)
    with clock.stopped(TWO):
        assert "git__log" not in active()


@pytest.mark.parametrize("hours", [1, 3])
def test_a_block_is_shortened_or_extended(operator: writing.Write, hours: int) -> None:
    blocking.set_blocked(operator, "plugin", "git", True, ends=TWO)
    end = NOON + dt.timedelta(hours=hours)
    change = blocking.set_blocked(operator, "plugin", "git", True, ends=end)

    assert change.before == {"block_ends": ENDS}
    assert (change.is_moved, change.agents) == (False, {})
    with clock.stopped(end - SECOND):
        assert "git__log" not in active()
    with clock.stopped(end):
        assert "git__log" in active()
    undo.undo(operator, change.entry or 0)
    assert entries.read("plugin", "git")["block_ends"] == ENDS


@pytest.mark.parametrize("way", ["block", "entry"])
def test_blocking_again_without_an_end_removes_it(operator: writing.Write, way: str) -> None:
    blocking.set_blocked(operator, "plugin", "git", True, ends=TWO)
    if way == "block":
        blocking.set_blocked(operator, "plugin", "git", True)
    else:
        entries.change(operator, "plugin", "git", {"blocked": True})
    with clock.stopped(TWO):
        assert "git__log" not in active()


def test_other_changes_keep_the_end(operator: writing.Write) -> None:
    blocking.set_blocked(operator, "toolkit", "reading", True, ends=TWO)
    entries.change(operator, "toolkit", "reading", {"title": "Reading"})
    assert entries.read("toolkit", "reading")["block_ends"] == ENDS


def test_unblocking_early_removes_the_end(operator: writing.Write) -> None:
    blocking.set_blocked(operator, "plugin", "git", True, ends=TWO)
    change = blocking.set_blocked(operator, "plugin", "git", False)
    assert change.agents == {"bob": 2}
    assert expiry.next_block_end(NOON) is None
    undo.undo(operator, change.entry or 0)
    assert entries.read("plugin", "git")["block_ends"] == ENDS


def test_the_next_write_first_records_the_end_at_its_time(operator: writing.Write) -> None:
    blocking.set_blocked(operator, "plugin", "git", True, ends=TWO)

    with clock.stopped(TWO + dt.timedelta(hours=3)):
        change = entries.change(operator, "plugin", "git", {"title": "Git"})
        assert change.before == {"title": None}
        (ended,) = of_block()
        assert (ended.subject_kind, ended.subject_key, ended.actor, ended.at) == (
            "plugin",
            "git",
            "system",
            TWO,
        )
        assert ended.before == {"blocked": True, "block_ends": ENDS}
        assert ended.after == {"blocked": None, "block_ends": None}
        with pytest.raises(errors.Refused, match="block it again"):
            undo.undo(operator, ended.id)


def test_ends_are_shown_before_they_are_recorded_and_recorded_once(operator: writing.Write) -> None:
    blocking.set_blocked(operator, "plugin", "git", True, ends=TWO)
    blocking.set_blocked(operator, "tool", "clock", True, ends=TWO)

    assert queries.unrecorded(action="block.end") == []
    with clock.stopped(TWO):
        shown = queries.unrecorded(action="block.end", about_kind="plugin", about="git")
        assert [(entry.id, entry.subject_key) for entry in shown] == [(0, "git")]
        assert expirations.record_due() == 2
        assert expirations.record_due() == 0
        assert queries.unrecorded() == []
        assert [entry.subject_key for entry in of_block()] == ["clock", "git"]


def test_undoing_a_block_that_has_ended_is_stale(operator: writing.Write) -> None:
    change = blocking.set_blocked(operator, "plugin", "git", True, ends=TWO)
    with clock.stopped(TWO), pytest.raises(errors.Stale):
        undo.undo(operator, change.entry or 0)


def test_undoing_an_unblock_after_the_end_does_not_block_again(operator: writing.Write) -> None:
    blocking.set_blocked(operator, "plugin", "git", True, ends=TWO)
    change = blocking.set_blocked(operator, "plugin", "git", False)
    with clock.stopped(TWO):
        undo.undo(operator, change.entry or 0)
        assert "git__log" in active()
        assert expiry.ended_blocks(TWO) == []


def test_a_belt_keeps_ends_and_an_ended_block_is_none(operator: writing.Write) -> None:
    blocking.set_blocked(operator, "toolkit", "reading", True, ends=TWO)
    belt = belts.export()
    assert next(kit for kit in belt["toolkits"] if kit["key"] == "reading")["block_ends"] == ENDS
    blocking.set_blocked(operator, "toolkit", "reading", False)

    belts.import_(operator, belt)
    assert "git__log" not in active()
    with clock.stopped(TWO):
        assert belts.preview(operator, belt).differences == ()
        belts.import_(operator, belt)
        assert "git__log" in active()
        assert "blocked" not in entries.read("toolkit", "reading")


def test_rejecting_a_tool_is_permanent(operator: writing.Write) -> None:
    blocking.set_blocked(operator, "tool", "git__log", True, ends=TWO)
    entries.change(operator, "tool", "git__log", {"blocked": True, "approved": "rejected:sha256:0"})
    with clock.stopped(TWO):
        assert "git__log" not in active()
        assert counts.count().to_review == 0


def test_a_switch_and_a_block_end_on_their_own(operator: writing.Write) -> None:
    switches.flip(operator, "ada", "reading", True, ends=TWO + SECOND)
    blocking.set_blocked(operator, "plugin", "git", True, ends=TWO)
    seen = {}
    for moment in (TWO - SECOND, TWO, TWO + SECOND):
        with clock.stopped(moment):
            seen[moment] = "git__log" in active("ada")
    assert list(seen.values()) == [False, True, False]
