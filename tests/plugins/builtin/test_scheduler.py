"""Tests of the scheduler: times as text, schedules per agent, and a single delivery for each due time."""

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


class SchedulerHarness(fakes.Harness):
    """A harness with a clock, and a worker that records its deliveries."""

    def __init__(self) -> None:
        self.now = NOON
        self.runs: list[worker.Run] = []
        super().__init__(plugin.Scheduler(now=lambda: self.now), fakes.Runtime())

    def schedule(self, when: str, note: str = "look", agent: str = "ada", **options: Any) -> str:
        return str(self.call(agent, "scheduler__schedule", when=when, note=note, **options)["id"])

    def listed(self, agent: str = "ada") -> list[tuple[str, str]]:
        schedules = self.call(agent, "scheduler__list")["schedules"]
        return [(job["due"], job["note"]) for job in schedules]

    def work(self, deliver: worker.Deliver | None = None) -> worker.Round:
        async def record(run: worker.Run) -> None:
            self.runs.append(run)

        return asyncio.run(worker.run_due(self.runtime.state, self.now, deliver or record))

    def delivered(self, after: dt.timedelta) -> list[tuple[dt.timedelta, int]]:
        """Advance the clock, run the worker, and return the delivered due times, each with the runs missed before."""
        self.now += after
        return [(run.due - NOON, run.missed) for run in self.work().delivered]


@pytest.fixture
def harness() -> SchedulerHarness:
    return SchedulerHarness()


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
def test_a_time_is_parsed_from_iso_8601_or_a_duration(text: str, after: dt.timedelta) -> None:
    assert times.parse_time(text, NOON) == NOON + after


@pytest.mark.parametrize(
    ("text", "message"),
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
def test_an_invalid_or_past_time_is_refused_with_advice(text: str, message: str) -> None:
    with pytest.raises(contract.ToolError) as raised:
        times.parse_time(text, NOON)
    assert message in str(raised.value)
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize(
    ("text", "every"),
    [("10 minutes", 10 * MINUTE), ("every day", DAY), ("hour", HOUR), ("every 2 weeks", 14 * DAY)],
)
def test_an_interval_is_parsed(text: str, every: dt.timedelta) -> None:
    assert times.interval(text) == every


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("monday", "not an interval."),
        ("1 month", "not an interval."),
        ("59 seconds", "from one minute"),
        ("53 weeks", "to 366"),
    ],
)
def test_an_unsupported_interval_is_refused(text: str, message: str) -> None:
    with pytest.raises(contract.ToolError, match=message):
        times.interval(text)


def test_schedules_are_listed_in_order_of_due_time_with_the_current_time(harness: SchedulerHarness) -> None:
    harness.schedule("in 2 hours", "later", every="1 day")
    first = harness.schedule("in 1 hour", "sooner")
    answer = harness.call("ada", "scheduler__list")
    assert answer["now"] == "2026-05-01T12:00:00+00:00"
    assert answer["schedules"][0] == {"id": first, "due": "2026-05-01T13:00:00+00:00", "note": "sooner"}
    assert answer["schedules"][1]["every_seconds"] == 86_400


def test_an_agent_cannot_list_or_cancel_schedules_of_another_agent(harness: SchedulerHarness) -> None:
    job = harness.schedule("in 1 hour", "secret", agent="ada")
    for other in ("ada2", "ad", "Ada", "bob"):
        assert harness.listed(other) == []
        assert "no schedule" in harness.refusal(other, "scheduler__cancel", id=job)
    assert [note for _, note in harness.listed("ada")] == ["secret"]


def test_schedules_stay_separate_in_a_database_that_ignores_case(harness: SchedulerHarness) -> None:
    harness.runtime.state.ignores_case = True
    harness.schedule("in 1 hour", "secret", agent="Ada")
    assert harness.listed("ada") == []


@pytest.mark.parametrize("wrong", ["../bob", "", "x/y", "\x00", "ABCDEF12"])
def test_an_invalid_id_never_reaches_the_store(harness: SchedulerHarness, wrong: str) -> None:
    asyncio.run(harness.runtime.state.set(f"ada/job/{wrong}", {}))
    harness.runtime.call = contract.CallContext(agent="ada")
    with pytest.raises(contract.ToolError, match="no schedule"):
        asyncio.run(jobs.AgentJobs(harness.runtime).cancel(wrong))


def test_schedules_are_unavailable_outside_of_a_call(harness: SchedulerHarness) -> None:
    with pytest.raises(contract.ToolError, match="not by an agent"):
        jobs.AgentJobs(harness.runtime)


def test_creating_the_same_schedule_again_returns_the_existing_schedule(harness: SchedulerHarness) -> None:
    assert harness.schedule("2026-05-01T13:00Z") == harness.schedule("2026-05-01T15:00+02:00")
    assert harness.schedule("2026-05-01T13:00Z", every="1 day") != harness.schedule("2026-05-01T13:00Z")


def test_the_number_of_schedules_and_the_note_length_are_limited(harness: SchedulerHarness) -> None:
    for number in range(jobs.MAX_JOBS):
        harness.schedule("in 1 hour", f"note {number}")
    assert "at most 100 are allowed" in harness.refusal(
        "ada", "scheduler__schedule", when="in 1 hour", note="more"
    )
    assert harness.schedule("in 1 hour", agent="bob")
    long = "x" * (jobs.MAX_NOTE_LENGTH + 1)
    assert "at most 2000 are allowed" in harness.refusal(
        "bob", "scheduler__schedule", when="in 1 hour", note=long
    )
    assert "empty" in harness.refusal("bob", "scheduler__schedule", when="in 1 hour", note="\x00 ")


def test_a_schedule_is_delivered_once_when_it_is_due(harness: SchedulerHarness) -> None:
    job = harness.schedule("in 1 hour", "call\x00 Kim")
    assert harness.delivered(59 * MINUTE) == []
    assert harness.delivered(MINUTE) == [(HOUR, 0)]
    assert harness.delivered(DAY) == []
    assert harness.listed() == []
    assert harness.runtime.state.texts == {}
    key = f"ada/{job}@2026-05-01T13:00:00+00:00"
    assert harness.runs == [worker.Run(key=key, agent="ada", job=job, note="call Kim", due=NOON + HOUR)]


def test_a_repeating_schedule_is_delivered_once_for_each_due_time(harness: SchedulerHarness) -> None:
    harness.schedule("in 10 minutes", every="1 hour")
    runs = [run for _ in range(20) for run in harness.delivered(10 * MINUTE)]
    assert runs == [(10 * MINUTE + hour * HOUR, 0) for hour in range(4)]
    assert harness.listed() == [("2026-05-01T16:10:00+00:00", "look")]


def test_missed_times_become_a_single_run_without_shifting_later_times(harness: SchedulerHarness) -> None:
    harness.schedule("in 10 minutes", every="1 hour")
    assert harness.delivered(5 * HOUR + 15 * MINUTE) == [(5 * HOUR + 10 * MINUTE, 5)]
    assert harness.delivered(54 * MINUTE) == []
    assert harness.delivered(MINUTE) == [(6 * HOUR + 10 * MINUTE, 0)]


def test_a_clock_set_back_delivers_nothing_twice(harness: SchedulerHarness) -> None:
    harness.schedule("in 1 hour", every="1 hour")
    assert harness.delivered(HOUR) == [(HOUR, 0)]
    assert harness.delivered(-2 * HOUR) == []
    assert harness.delivered(2 * HOUR) == []
    assert harness.delivered(HOUR) == [(2 * HOUR, 0)]


def test_a_failed_delivery_is_retried_without_delaying_others(harness: SchedulerHarness) -> None:
    harness.schedule("in 1 hour", "bad", agent="ada")
    harness.schedule("in 1 hour", "good", agent="bob")
    harness.now += HOUR

    async def deliver(run: worker.Run) -> None:
        if run.note == "bad":
            raise RuntimeError("no room")
        harness.runs.append(run)

    round_ = harness.work(deliver)
    assert [run.note for run in round_.delivered] == ["good"]
    assert [(run.note, str(error)) for run, error in round_.failed] == [("bad", "no room")]
    assert [run.note for run in harness.work().delivered] == ["bad"]


def test_a_worker_that_dies_before_recording_a_delivery_repeats_its_key(harness: SchedulerHarness) -> None:
    harness.schedule("in 1 hour", every="1 hour")
    harness.now += HOUR
    original_set = harness.runtime.state.set

    async def fail(key: str, value: Any) -> None:
        raise OSError("power cut")

    harness.runtime.state.set = fail  # type: ignore[method-assign]
    with pytest.raises(OSError, match="power cut"):
        harness.work()
    harness.runtime.state.set = original_set  # type: ignore[method-assign]
    harness.work()
    harness.work()
    assert len(harness.runs) == 2
    assert harness.runs[0].key == harness.runs[1].key


def test_a_worker_that_dies_before_deleting_a_finished_schedule_does_not_repeat_it(
    harness: SchedulerHarness,
) -> None:
    harness.schedule("in 1 hour")
    harness.now += HOUR
    original_delete = harness.runtime.state.delete

    async def fail(key: str) -> bool:
        raise OSError("power cut")

    harness.runtime.state.delete = fail  # type: ignore[method-assign]
    with pytest.raises(OSError, match="power cut"):
        harness.work()
    harness.runtime.state.delete = original_delete  # type: ignore[method-assign]
    assert harness.listed() == []
    assert harness.work().delivered == ()
    assert harness.runtime.state.texts == {}


def test_a_schedule_cancelled_during_a_round_is_not_delivered(harness: SchedulerHarness) -> None:
    harness.schedule("in 1 hour", "first")
    second = harness.schedule("in 2 hours", "second")
    harness.now += 3 * HOUR

    async def deliver(run: worker.Run) -> None:
        await harness.runtime.state.delete(f"ada/job/{second}")

    assert [run.note for run in harness.work(deliver).delivered] == ["first"]


def test_a_schedule_cancelled_during_its_delivery_stays_cancelled(harness: SchedulerHarness) -> None:
    job = harness.schedule("in 1 hour", every="1 hour")
    harness.now += HOUR

    async def deliver(run: worker.Run) -> None:
        await harness.runtime.state.delete(f"ada/job/{job}")

    harness.work(deliver)
    assert harness.listed() == []
    assert harness.delivered(HOUR) == []
    assert harness.runtime.state.texts == {}


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
def test_an_unreadable_schedule_is_reported_without_delaying_others(
    harness: SchedulerHarness, value: Any
) -> None:
    asyncio.run(harness.runtime.state.set("ada/job/00000000", value))
    harness.schedule("in 1 hour")
    harness.now += HOUR
    round_ = harness.work()
    assert round_.unreadable == ("ada/job/00000000",)
    assert len(round_.delivered) == 1
    assert "ada/job/00000000" in harness.runtime.state.texts


def test_due_returns_the_runs_that_a_round_would_deliver(harness: SchedulerHarness) -> None:
    harness.schedule("in 1 hour", "b", agent="bob")
    harness.schedule("in 30 minutes", "a", agent="ada")
    runs = asyncio.run(worker.due(harness.runtime.state, NOON + HOUR))
    assert [(run.agent, run.note) for run in runs] == [("ada", "a"), ("bob", "b")]
    assert asyncio.run(worker.due(harness.runtime.state, NOON)) == []


def test_every_tool_is_in_the_namespace_and_the_toolkit() -> None:
    names = tuple(tool.name for tool in plugin.Scheduler().tools)
    assert names == toolkit.Reminders.members
    assert all(name.startswith("scheduler__") for name in names)


def test_the_policy_covers_only_active_tools() -> None:
    reminders = toolkit.Reminders()
    policy = reminders.policy(contract.PolicyContext(active_tools=("scheduler__list",)))
    assert "to get its id" in policy
    assert "zone" not in policy
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
def test_a_message_about_reminders_focuses_on_the_scheduler_tools(
    message: str, tools: tuple[str, ...] | None
) -> None:
    context = contract.DirectiveContext(active_tools=toolkit.Reminders.members, message=message)
    focus = toolkit.Reminders().directive(context)
    assert (focus.active_tools if focus else None) == tools
