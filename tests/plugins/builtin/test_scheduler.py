"""The scheduler: times in words, schedules per agent, and one delivery for each due time."""

from __future__ import annotations

import asyncio
import datetime as dt
from typing import Any

import pytest

from tests.plugins.builtin import fakes
from toolbelt.plugins import contract
from toolbelt.plugins.builtin.scheduler import jobs, plugin, times, toolkit, worker

NOON = dt.datetime(2026, 5, 1, 12, tzinfo=dt.UTC)
MINUTE, HOUR, DAY = dt.timedelta(minutes=1), dt.timedelta(hours=1), dt.timedelta(days=1)


class Desk(fakes.Bench):
    """A bench with a clock, and a worker that keeps what it delivers."""

    def __init__(self) -> None:
        self.now = NOON
        self.runs: list[worker.Run] = []
        super().__init__(plugin.Scheduler(now=lambda: self.now), fakes.Runtime())

    def schedule(self, when: str, note: str = "look", agent: str = "ada", **more: Any) -> str:
        return str(self.call(agent, "scheduler__schedule", when=when, note=note, **more)["id"])

    def listed(self, agent: str = "ada") -> list[tuple[str, str]]:
        found = self.call(agent, "scheduler__list")["schedules"]
        return [(job["due"], job["note"]) for job in found]

    def work(self, deliver: worker.Deliver | None = None) -> worker.Round:
        async def keep(run: worker.Run) -> None:
            self.runs.append(run)

        return asyncio.run(worker.run_due(self.runtime.state, self.now, deliver or keep))

    def delivered(self, after: dt.timedelta) -> list[tuple[dt.timedelta, int]]:
        """Let time pass and the worker run; give the due times it delivered, and how many were missed before."""
        self.now += after
        return [(run.due - NOON, run.missed) for run in self.work().delivered]


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("in 10 minutes", 10 * MINUTE),
        ("In 90 SECONDS", 1.5 * MINUTE),
        ("2h", 2 * HOUR),
        ("in an hour", HOUR),
        ("in 1 day and 2 hours", DAY + 2 * HOUR),
        ("in 1 week, 2 days, 3 hrs 4 mins", 9 * DAY + 3 * HOUR + 4 * MINUTE),
        ("2026-05-01T13:00:00Z", HOUR),
        ("2026-05-01T15:00+02:00", HOUR),
        ("2026-05-01 07:30:00-05:00", 30 * MINUTE),
    ],
)
def test_a_time_is_read_from_iso_8601_or_a_duration(text: str, after: dt.timedelta) -> None:
    assert times.parse_time(text, NOON) == NOON + after


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2026-05-02T09:00:00", "has no time zone"),
        ("2026-05-02", "has no time zone"),
        ("tomorrow", "is not a time. Write a time with its time zone"),
        ("in half an hour", "is not a time"),
        ("am", "is not a time"),
        ("", "is not a time"),
        ("in -5 minutes", "is not a time"),
        ("in 0 minutes", "is in the past"),
        ("2026-05-01T12:00:00Z", "is in the past. It is 2026-05-01T12:00:00+00:00 now"),
        ("1999-01-01T00:00Z", "is in the past"),
        ("in 9999999 weeks", "more than five years"),
        ("9999-12-31T23:59:59-12:00", "outside the range of dates"),
        ("in " + "1 day " * 10_000, "is not a time"),
        ("9" * 100_000, "is not a time"),
        ("\x00\ud800", "is not a time"),
    ],
)
def test_what_is_no_time_to_come_is_told_with_the_way_out(text: str, words: str) -> None:
    with pytest.raises(contract.ToolError) as refusal:
        times.parse_time(text, NOON)
    assert words in str(refusal.value)
    assert len(str(refusal.value)) < 300


@pytest.mark.parametrize(
    ("text", "every"),
    [("10 minutes", 10 * MINUTE), ("every day", DAY), ("hour", HOUR), ("every 2 weeks", 14 * DAY)],
)
def test_an_interval_is_read(text: str, every: dt.timedelta) -> None:
    assert times.interval(text) == every


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("monday", "not an interval."),
        ("1 month", "not an interval."),
        ("59 seconds", "from one minute"),
        ("53 weeks", "to 366"),
    ],
)
def test_an_interval_that_cannot_be_kept_is_refused(text: str, words: str) -> None:
    with pytest.raises(contract.ToolError, match=words):
        times.interval(text)


def test_schedules_are_listed_in_their_order_with_the_time_that_it_is(desk: Desk) -> None:
    desk.schedule("in 2 hours", "later", every="1 day")
    first = desk.schedule("in 1 hour", "sooner")
    answer = desk.call("ada", "scheduler__list")
    assert answer["now"] == "2026-05-01T12:00:00+00:00"
    assert answer["schedules"][0] == {"id": first, "due": "2026-05-01T13:00:00+00:00", "note": "sooner"}
    assert answer["schedules"][1]["every_seconds"] == 86_400


def test_no_agent_sees_or_cancels_anothers_schedules(desk: Desk) -> None:
    job = desk.schedule("in 1 hour", "secret", agent="ada")
    for other in ("ada2", "ad", "Ada", "bob"):
        assert desk.listed(other) == []
        assert "no schedule" in desk.refuses(other, "scheduler__cancel", id=job)
    assert [note for _, note in desk.listed("ada")] == ["secret"]


def test_a_database_that_ignores_case_shows_no_agent_anothers_schedules(desk: Desk) -> None:
    desk.runtime.state.loose = True
    desk.schedule("in 1 hour", "secret", agent="Ada")
    assert desk.listed("ada") == []


@pytest.mark.parametrize("wrong", ["../bob", "", "x/y", "\x00", "ABCDEF12"])
def test_an_id_that_is_none_reaches_no_key(desk: Desk, wrong: str) -> None:
    asyncio.run(desk.runtime.state.set(f"ada/job/{wrong}", {}))
    desk.runtime.call = contract.CallContext(agent="ada")
    with pytest.raises(contract.ToolError, match="no schedule"):
        asyncio.run(jobs.AgentJobs(desk.runtime).cancel(wrong))


def test_outside_of_a_call_there_are_no_schedules(desk: Desk) -> None:
    with pytest.raises(contract.ToolError, match="not by an agent"):
        jobs.AgentJobs(desk.runtime)


def test_the_same_schedule_once_more_is_the_one_there_is(desk: Desk) -> None:
    assert desk.schedule("2026-05-01T13:00Z") == desk.schedule("2026-05-01T15:00+02:00")
    assert desk.schedule("2026-05-01T13:00Z", every="1 day") != desk.schedule("2026-05-01T13:00Z")


def test_notes_and_schedules_have_their_bounds(desk: Desk) -> None:
    for number in range(jobs.MAX_JOBS):
        desk.schedule("in 1 hour", f"note {number}")
    assert "at most 100 are allowed" in desk.refuses(
        "ada", "scheduler__schedule", when="in 1 hour", note="more"
    )
    assert desk.schedule("in 1 hour", agent="bob")
    long = "x" * (jobs.MAX_NOTE_LENGTH + 1)
    assert "at most 2000 are allowed" in desk.refuses(
        "bob", "scheduler__schedule", when="in 1 hour", note=long
    )
    assert "empty" in desk.refuses("bob", "scheduler__schedule", when="in 1 hour", note="\x00 ")


def test_a_schedule_is_delivered_when_it_is_due_and_once(desk: Desk) -> None:
    job = desk.schedule("in 1 hour", "call\x00 Kim")
    assert desk.delivered(59 * MINUTE) == []
    assert desk.delivered(MINUTE) == [(HOUR, 0)]
    assert desk.delivered(DAY) == []
    assert desk.listed() == []
    assert desk.runtime.state.texts == {}
    key = f"ada/{job}@2026-05-01T13:00:00+00:00"
    assert desk.runs == [worker.Run(key=key, agent="ada", job=job, note="call Kim", due=NOON + HOUR)]


def test_a_repeated_one_is_delivered_once_for_each_due_time(desk: Desk) -> None:
    desk.schedule("in 10 minutes", every="1 hour")
    found = [run for _ in range(20) for run in desk.delivered(10 * MINUTE)]
    assert found == [(10 * MINUTE + hour * HOUR, 0) for hour in range(4)]
    assert desk.listed() == [("2026-05-01T16:10:00+00:00", "look")]


def test_missed_times_are_one_run_and_the_times_stay_where_they_are(desk: Desk) -> None:
    desk.schedule("in 10 minutes", every="1 hour")
    assert desk.delivered(5 * HOUR + 15 * MINUTE) == [(5 * HOUR + 10 * MINUTE, 5)]
    assert desk.delivered(54 * MINUTE) == []
    assert desk.delivered(MINUTE) == [(6 * HOUR + 10 * MINUTE, 0)]


def test_a_clock_that_goes_back_delivers_nothing_twice(desk: Desk) -> None:
    desk.schedule("in 1 hour", every="1 hour")
    assert desk.delivered(HOUR) == [(HOUR, 0)]
    assert desk.delivered(-2 * HOUR) == []
    assert desk.delivered(2 * HOUR) == []
    assert desk.delivered(HOUR) == [(2 * HOUR, 0)]


def test_what_fails_is_tried_again_and_holds_up_nobody(desk: Desk) -> None:
    desk.schedule("in 1 hour", "bad", agent="ada")
    desk.schedule("in 1 hour", "good", agent="bob")
    desk.now += HOUR

    async def deliver(run: worker.Run) -> None:
        if run.note == "bad":
            raise RuntimeError("no room")
        desk.runs.append(run)

    found = desk.work(deliver)
    assert [run.note for run in found.delivered] == ["good"]
    assert [(run.note, str(error)) for run, error in found.failed] == [("bad", "no room")]
    assert [run.note for run in desk.work().delivered] == ["bad"]


def test_a_worker_that_dies_before_it_noted_a_delivery_repeats_its_key(desk: Desk) -> None:
    desk.schedule("in 1 hour", every="1 hour")
    desk.now += HOUR
    whole = desk.runtime.state.set

    async def dies(key: str, value: Any) -> None:
        raise OSError("power cut")

    desk.runtime.state.set = dies  # type: ignore[method-assign]
    with pytest.raises(OSError, match="power cut"):
        desk.work()
    desk.runtime.state.set = whole  # type: ignore[method-assign]
    desk.work()
    desk.work()
    assert len(desk.runs) == 2
    assert desk.runs[0].key == desk.runs[1].key


def test_a_worker_that_dies_before_it_deleted_what_ran_does_not_repeat_it(desk: Desk) -> None:
    desk.schedule("in 1 hour")
    desk.now += HOUR
    whole = desk.runtime.state.delete

    async def dies(key: str) -> bool:
        raise OSError("power cut")

    desk.runtime.state.delete = dies  # type: ignore[method-assign]
    with pytest.raises(OSError, match="power cut"):
        desk.work()
    desk.runtime.state.delete = whole  # type: ignore[method-assign]
    assert desk.listed() == []
    assert desk.work().delivered == ()
    assert desk.runtime.state.texts == {}


def test_what_is_cancelled_during_a_round_is_not_delivered_in_it(desk: Desk) -> None:
    desk.schedule("in 1 hour", "first")
    second = desk.schedule("in 2 hours", "second")
    desk.now += 3 * HOUR

    async def deliver(run: worker.Run) -> None:
        await desk.runtime.state.delete(f"ada/job/{second}")

    assert [run.note for run in desk.work(deliver).delivered] == ["first"]


def test_what_is_cancelled_while_it_is_delivered_stays_cancelled(desk: Desk) -> None:
    job = desk.schedule("in 1 hour", every="1 hour")
    desk.now += HOUR

    async def deliver(run: worker.Run) -> None:
        await desk.runtime.state.delete(f"ada/job/{job}")

    desk.work(deliver)
    assert desk.listed() == []
    assert desk.delivered(HOUR) == []
    assert desk.runtime.state.texts == {}


@pytest.mark.parametrize(
    "value",
    [
        None,
        7,
        {},
        {"due": "soon", "note": "", "every": None},
        {"due": "2026-05-01", "note": "", "every": "x"},
    ],
)
def test_what_cannot_be_read_is_named_and_holds_up_nobody(desk: Desk, value: Any) -> None:
    asyncio.run(desk.runtime.state.set("ada/job/00000000", value))
    desk.schedule("in 1 hour")
    desk.now += HOUR
    found = desk.work()
    assert found.unreadable == ("ada/job/00000000",)
    assert len(found.delivered) == 1
    assert "ada/job/00000000" in desk.runtime.state.texts


def test_due_says_what_a_round_would_deliver(desk: Desk) -> None:
    desk.schedule("in 1 hour", "b", agent="bob")
    desk.schedule("in 30 minutes", "a", agent="ada")
    found = asyncio.run(worker.due(desk.runtime.state, NOON + HOUR))
    assert [(run.agent, run.note) for run in found] == [("ada", "a"), ("bob", "b")]
    assert asyncio.run(worker.due(desk.runtime.state, NOON)) == []


def test_every_tool_stands_in_the_namespace_and_in_the_toolkit() -> None:
    names = tuple(tool.name for tool in plugin.Scheduler().tools)
    assert names == toolkit.Reminders.members
    assert all(name.startswith("scheduler__") for name in names)


def test_the_policy_speaks_of_active_tools_alone() -> None:
    reminders = toolkit.Reminders()
    some = reminders.policy(contract.PolicyContext(active_tools=("scheduler__list",)))
    assert "to get its id" in some
    assert "zone" not in some
    assert "zone" in reminders.policy(contract.PolicyContext(active_tools=toolkit.Reminders.members))


@pytest.mark.parametrize(
    ("message", "tools"),
    [
        ("Remind me to call Kim at nine", ("scheduler__schedule", "scheduler__list")),
        ("please set a reminder", ("scheduler__schedule", "scheduler__list")),
        ("Cancel my reminder to remind me of Kim", ("scheduler__list", "scheduler__cancel")),
        ("show me my reminders", ("scheduler__list", "scheduler__cancel")),
        ("This reminds me of Rome", None),
        ("Wait ten minutes", None),
        ("", None),
    ],
)
def test_a_message_about_reminders_turns_to_them(message: str, tools: tuple[str, ...] | None) -> None:
    context = contract.DirectiveContext(active_tools=toolkit.Reminders.members, message=message)
    focus = toolkit.Reminders().directive(context)
    assert (focus.active_tools if focus else None) == tools
