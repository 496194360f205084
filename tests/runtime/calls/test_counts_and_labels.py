"""Tests that rules count calls and read a session's labels on every road to a tool, exactly, over processes and
retries.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from tests import concurrently
from tests.runtime import sample_plugins
from tests.runtime.calls import asked
from tests.runtime.calls.asked import code
from tests.runtime.conftest import OPERATOR, Install
from toolbelt import models
from toolbelt.control.agents import session_changes
from toolbelt.control.catalog import entries
from toolbelt.core import admitting, errors
from toolbelt.runtime import calls, counting
from toolbelt.runtime.calls import admissions, arrival, gates, incoming, last_checks, preflight
from toolbelt.runtime.calls.incoming import Call, Caller, RequestKey
from toolbelt.runtime.surfaces import explain
from toolbelt.store import agent_sessions, clock

NOON = dt.datetime(2031, 5, 4, 12, tzinfo=dt.UTC)
ADA, IN_S = RequestKey("ada"), RequestKey("ada", "s")
GIVEN = {"query": "x"}
ONE_A_DAY: dict[str, Any] = {
    "key": "one",
    "effect": "deny",
    "tools": ["kb__search", "shop__find"],
    "more_than": {"calls": 1, "per": "day"},
}
OUT: dict[str, Any] = {"key": "out", "effect": "deny", "tools": ["kb__plain"], "labels": ["private"]}


@pytest.fixture(autouse=True)
def at_noon() -> Iterator[None]:
    with clock.stopped(NOON):
        yield


@pytest.fixture
def kb(db: None, install: Install) -> Callable[..., None]:
    def kb(*rules: dict[str, Any]) -> None:
        install("Kb", config="api_key: sesame-2000", **asked.ROADS)
        for rule in rules:
            entries.put(OPERATOR, "gate_rule", rule)

    return kb


def call(tool: str, arguments: Any = GIVEN, key: RequestKey = ADA, **about: Any) -> Call:
    return Call(key=key, tool=tool, arguments=arguments, **about)


def search(key: RequestKey = ADA, **about: Any) -> str:
    return code(calls.answer_blocking(call("kb__search", key=key), **about))


def counted() -> list[tuple[str, str, int]]:
    return list(models.CallCount.objects.order_by("rule", "subject").values_list("rule", "subject", "calls"))


def labels(key: RequestKey = IN_S) -> list[str]:
    found = session_changes.find(key.agent, key.session or "")
    return [] if found is None else [label.name for label in found.session.labels]


def bring(*names: str, tool: str = "kb__search") -> None:
    entries.change(OPERATOR.replace(confirm=True), "tool", tool, {"brings": list(names)})


ROADS: dict[str, Callable[[], Any]] = {
    "a program": lambda: calls.run("ada", "kb__search", GIVEN),
    "an event loop": lambda: async_to_sync(calls.arun)("ada", "kb__search", GIVEN),
    "a session": lambda: calls.run("ada", "kb__search", GIVEN, session="s"),
    "a dispatched call": lambda: calls.answer_blocking(
        call("call_tool", {"tool": "kb__search", "arguments": GIVEN}, by_dispatch=True)
    ),
    "a host, for an app": lambda: calls.answer_blocking(call("kb__search", by_host=True)),
    "an admission": lambda: admissions.admit(call("shop__find")),
}


@pytest.mark.parametrize("road", ROADS)
def test_each_road_to_a_tool_counts_once_and_labels_its_session(kb: Callable[..., None], road: str) -> None:
    kb(ONE_A_DAY)
    bring("private")
    assert code(ROADS[road]()) == "ok"
    assert counted() == [("one", "ada", 1)]
    assert labels() == (["private"] if road == "a session" else [])
    for again in ROADS.values():
        answer = again()
        assert isinstance(answer, admitting.Refusal)
        assert answer.code == "quota-reached"
        assert answer.document()["resets_at"] == "2031-05-05T00:00:00Z"
    assert counted() == [("one", "ada", 1)]
    made = models.CallRecord.objects.latest("id")
    assert (made.outcome, made.rule) == ("quota-reached", "one")


@pytest.mark.parametrize("effect", ["deny", "ask"])
def test_a_label_that_comes_while_a_call_waits_counts_in_its_last_check(
    kb: Callable[..., None], effect: str
) -> None:
    kb({**OUT, "effect": effect, "tools": ["kb__hold"]})
    bring("private")
    waiting = arrival.prepare(gates.CallGate(call("kb__hold", {}, IN_S), may_ask=True))
    assert isinstance(waiting, gates.Admitted)
    assert search(IN_S) == "ok"

    async def check() -> None:
        await calls.last_check(waiting)()

    with pytest.raises(last_checks.DeniedError):
        async_to_sync(check)()


def test_a_question_whether_a_call_is_admitted_counts_nothing(kb: Callable[..., None]) -> None:
    kb(ONE_A_DAY)
    for _ in range(3):
        assert code(calls.admit(ADA, "kb__search", GIVEN)) == "ok"
    assert counted() == []


def test_a_subagent_counts_as_its_agent(kb: Callable[..., None]) -> None:
    kb(ONE_A_DAY)
    entries.put(OPERATOR, "loadout", {"name": "full", "plugins": ["kb"]})
    assert search(RequestKey("ada", subagent="general")) == "ok"
    assert search() == "quota-reached"


def test_a_call_that_fails_counts_and_one_that_is_refused_does_not(kb: Callable[..., None]) -> None:
    kb({"key": "r", "effect": "deny", "more_than": {"calls": 2, "per": "day"}})
    entries.change(OPERATOR.replace(confirm=True), "agent", "ada", {"tools": ["kb__fail", "kb__search"]})
    assert code(calls.run("ada", "kb__fail", {})) == "tool-failed"
    assert code(calls.run("ada", "kb__search", {})) == "invalid-arguments"
    assert counted() == [("r", "ada", 1)]


def test_of_two_counts_of_a_call_none_is_taken_if_one_is_full_by_then(kb: Callable[..., None]) -> None:
    kb({**ONE_A_DAY, "key": "a", "more_than": {"calls": 5, "per": "day"}}, {**ONE_A_DAY, "key": "b"})
    waiting = arrival.prepare(gates.CallGate(call("kb__search")))
    assert isinstance(waiting, gates.Admitted)
    assert search() == "ok"
    with pytest.raises(last_checks.DeniedError) as denied:
        last_checks.check_again(waiting)
    assert denied.value.refusal.code == "quota-reached"
    assert counted() == [("a", "ada", 1), ("b", "ada", 1)]


def test_a_call_that_is_tried_again_counts_once(kb: Callable[..., None]) -> None:
    kb(ONE_A_DAY)
    waiting = arrival.prepare(gates.CallGate(call("kb__search")))
    assert isinstance(waiting, gates.Admitted)
    last_checks.check_again(waiting)
    # Also if something else was changed meanwhile, so that it is judged again.
    entries.put(OPERATOR, "gate_rule", OUT)
    last_checks.check_again(waiting)
    assert counted() == [("one", "ada", 1)]


@pytest.mark.parametrize("past", ["labels", "without", "a limit"])
def test_a_call_that_is_tried_again_is_judged_by_what_came_since(kb: Callable[..., None], past: str) -> None:
    kb(ONE_A_DAY)
    bring("own")
    waiting = arrival.prepare(gates.CallGate(call("kb__search", key=IN_S)))
    assert isinstance(waiting, gates.Admitted)
    last_checks.check_again(waiting)
    # What it brought itself changes nothing.
    entries.put(OPERATOR, "gate_rule", {**OUT, "tools": ["kb__search"], "labels": ["own"]})
    last_checks.check_again(waiting)
    entries.put(OPERATOR, "gate_rule", {"key": "new", "effect": "deny", **PASTS[past]})
    if past == "labels":
        last_checks.check_again(waiting)
        agent_sessions.bring("ada", "s", ["private"], "kb__plain")
    if past == "a limit":
        last_checks.check_again(waiting)
        resets = dt.datetime(2031, 5, 5, tzinfo=dt.UTC)
        models.CallCount.objects.create(rule="new", subject="kb__search", resets=resets, calls=1)
        entries.put(OPERATOR, "gate_rule", {**OUT, "tools": ["kb__hold"]})
    with pytest.raises(last_checks.DeniedError) as denied:
        last_checks.check_again(waiting)
    assert denied.value.refusal.judgement.decided_by == "new"
    assert counted()[-1] == ("one", "ada", 1)


def test_a_call_that_waited_for_its_user_continues_only_with_what_people_approved(
    kb: Callable[..., None],
) -> None:
    kb({"key": "ask", "effect": "ask", "tools": ["kb__search"]})
    made = call("kb__search")
    caller = Caller(person_name="mona")
    assert code(calls.answer_blocking(made, caller)) == "approval-pending"
    assert code(calls.check_again(made, caller)) == "approval-pending"
    asked.approve()
    waiting = arrival.prepare(gates.CallGate(made, caller, may_ask=True))
    assert isinstance(waiting, gates.Admitted)
    assert code(calls.check_again(made, caller)) == "approval-pending"
    last_checks.check_again(waiting)
    assert calls.check_again(made, caller) is None
    assert code(calls.check_again(made, incoming.PROGRAM)) == "approval-pending"
    entries.put(OPERATOR, "gate_rule", {"key": "more", "effect": "ask", "tools": ["kb__search"]})
    assert code(calls.check_again(made, caller)) == "approval-pending"


def test_a_call_that_waited_for_its_user_may_continue_although_it_was_the_last(
    kb: Callable[..., None],
) -> None:
    kb(ONE_A_DAY)
    assert search() == "ok"
    assert calls.check_again(call("kb__search"), incoming.PROGRAM) is None


@pytest.mark.django_db(transaction=True)
def test_of_calls_at_the_same_time_as_many_run_as_may(install: Install) -> None:
    rule = {**ONE_A_DAY, "more_than": {"calls": 3, "per": "day"}}
    install("Kb", config="api_key: sesame-2000", **asked.ROADS, gate_rules=[rule])
    answers = concurrently.done([search] * 8)
    assert sorted(answers) == ["ok"] * 3 + ["quota-reached"] * 5
    assert counted() == [("one", "ada", 3)]


def test_an_observed_limit_is_recorded_from_the_call_beyond_it(kb: Callable[..., None]) -> None:
    kb({**ONE_A_DAY, "observed": True})
    assert [search() for _ in range(3)] == ["ok"] * 3
    assert list(models.CallRecord.objects.order_by("id").values_list("would", flat=True)) == [
        "",
        "one",
        "one",
    ]
    assert counted() == [("one", "ada", 3)]


def test_people_are_asked_about_calls_beyond_a_limit_and_what_they_approve_counts(
    kb: Callable[..., None],
) -> None:
    kb({**ONE_A_DAY, "effect": "ask"})
    assert search() == "ok"
    assert search() == "approval-pending"
    asked.approve()
    assert search() == "ok"
    assert counted() == [("one", "ada", 2)]
    assert search() == "approval-pending"


PASTS: dict[str, dict[str, Any]] = {
    "labels": {"labels": ["private"]},
    "without": {"without": ["checked"]},
    "a limit": {"more_than": {"calls": 1, "per": "day", "of": "tool"}},
}
ROADS_OF_S: dict[str, Callable[[], Any]] = {
    "a program": lambda: calls.run("ada", "kb__search", GIVEN, session="s"),
    "an event loop": lambda: async_to_sync(calls.arun)("ada", "kb__search", GIVEN, session="s", wait=0),
    "a dispatched call": lambda: calls.answer_blocking(
        call("call_tool", {"tool": "kb__search", "arguments": GIVEN}, IN_S, by_dispatch=True)
    ),
    "a host, for an app": lambda: calls.answer_blocking(call("kb__search", key=IN_S, by_host=True)),
    "an admission": lambda: admissions.admit(call("shop__find", key=IN_S)),
}


def ask_after(kb: Callable[..., None], past: str) -> None:
    """Have people asked because of what came before a call, and because of another rule."""
    rule = {"effect": "ask", "tools": ["kb__search", "shop__find"]}
    kb({**rule, "key": "past", **PASTS[past]}, {**rule, "key": "plain"})
    if past == "labels":
        bring("private", tool="kb__hold")
        agent_sessions.bring("ada", "s", ["private"], "kb__hold")
    if past == "a limit":
        resets = dt.datetime(2031, 5, 5, tzinfo=dt.UTC)
        for tool in rule["tools"]:
            models.CallCount.objects.create(rule="past", subject=tool, resets=resets, calls=1)


@pytest.mark.parametrize("past", PASTS)
@pytest.mark.parametrize("road", ROADS_OF_S)
def test_what_is_asked_about_for_its_past_runs_once_approved(
    kb: Callable[..., None], road: str, past: str
) -> None:
    ask_after(kb, past)
    assert code(ROADS_OF_S[road]()) == "approval-pending"
    assert asked.latest().rules == ("past", "plain")
    asked.approve()
    assert code(ROADS_OF_S[road]()) == "ok"
    # Once.
    assert code(ROADS_OF_S[road]()) == "approval-pending"


@pytest.mark.parametrize("past", PASTS)
def test_an_approved_call_that_is_tried_again_is_still_the_one_that_people_approved(
    kb: Callable[..., None], past: str
) -> None:
    ask_after(kb, past)
    search(IN_S)
    asked.approve()
    waiting = arrival.prepare(gates.CallGate(call("kb__search", key=IN_S), may_ask=True))
    assert isinstance(waiting, gates.Admitted)
    last_checks.check_again(waiting)
    # Its server was not reached.
    last_checks.check_again(waiting)
    assert asked.states() == ["spent"]
    entries.put(OPERATOR, "gate_rule", {"key": "more", "effect": "ask", "tools": ["kb__search"]})
    with pytest.raises(last_checks.DeniedError) as denied:
        last_checks.check_again(waiting)
    assert denied.value.refusal.code == "approval-pending"


def test_a_count_begins_again_and_the_old_ones_are_removed(kb: Callable[..., None]) -> None:
    kb(ONE_A_DAY)
    assert search() == "ok"
    with clock.stopped(NOON + dt.timedelta(days=3)):
        assert search() == "ok"
    assert counted() == [("one", "ada", 1)]


class TestIdenticalCalls:
    """The limit on identical calls that applies where no rule says otherwise."""

    @pytest.fixture(autouse=True)
    def four(self, kb: Callable[..., None], settings: Any) -> None:
        settings.TOOLBELT_IDENTICAL_CALLS = 4
        kb()

    def test_a_session_that_repeats_itself_is_told_what_and_how_often(self) -> None:
        assert [search(IN_S) for _ in range(5)] == ["ok"] * 4 + ["quota-reached"]
        answer = calls.answer_blocking(call("kb__search", key=IN_S))
        assert isinstance(answer, admitting.Refusal)
        assert answer.document()["resets_at"] == "2031-05-04T12:10:00Z"
        assert answer.message.startswith("kb__search was called with exactly these arguments 4 times")
        assert code(calls.run("ada", "kb__search", {"query": "y"}, session="s")) == "ok"
        assert code(calls.run("ada", "kb__search", GIVEN, session="t")) == "ok"
        assert models.CallRecord.objects.filter(rule="identical-calls").count() == 2

    def test_without_a_session_no_one_knows_who_repeats_and_nothing_is_counted(self) -> None:
        assert [search() for _ in range(6)] == ["ok"] * 6
        assert counted() == []

    def test_a_clients_own_session_is_one(self) -> None:
        answers = [search(caller=Caller(client_session="c")) for _ in range(5)]
        assert answers == ["ok"] * 4 + ["quota-reached"]

    def test_a_rule_on_identical_calls_replaces_it_and_an_observed_one_does_not(self) -> None:
        rule = {"key": "r", "effect": "deny", "more_than": {"calls": 6, "per": "hour", "of": "identical"}}
        entries.put(OPERATOR, "gate_rule", {**rule, "observed": True})
        assert [search(IN_S) for _ in range(5)] == ["ok"] * 4 + ["quota-reached"]
        entries.put(OPERATOR, "gate_rule", rule)
        assert [search(IN_S) for _ in range(3)] == ["ok"] * 2 + ["quota-reached"]

    def test_it_can_be_turned_off(self, settings: Any) -> None:
        settings.TOOLBELT_IDENTICAL_CALLS = 0
        assert [search(IN_S) for _ in range(6)] == ["ok"] * 6

    def test_a_process_counts_the_first_ones_alone_and_no_one_is_refused_early(self, settings: Any) -> None:
        # Each process keeps 1 of 100 to itself: the second is written with the first.
        settings.TOOLBELT_IDENTICAL_CALLS = 100
        assert search(IN_S) == "ok"
        assert counted() == []
        assert search(IN_S) == "ok"
        assert [each[2] for each in counted()] == [2]
        counting.repetitions.clear()
        # As another process.
        assert [search(IN_S) for _ in range(2)] == ["ok"] * 2
        assert [each[2] for each in counted()] == [4]
        models.CallCount.objects.update(calls=100)
        assert search(IN_S) == "quota-reached"

    def test_arguments_that_are_no_json_are_not_identical(self) -> None:
        entries.change(OPERATOR.replace(confirm=True), "agent", "ada", {"tools": ["kb__plain"]})
        answers = [code(calls.run("ada", "kb__plain", {"x": float("nan")}, session="s")) for _ in range(6)]
        assert "quota-reached" not in answers


@pytest.mark.django_db(transaction=True)
def test_a_label_is_stored_before_its_tool_runs_and_stays_if_the_tool_fails(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("Kb", config="api_key: sesame-2000", **asked.ROADS)
    bring("private", "a")
    seen: list[Any] = []

    async def fails(self: Any, args: Any) -> Any:
        seen.append(await asyncio.to_thread(concurrently.done, [labels]))
        raise KeyError("row 7")

    monkeypatch.setattr(sample_plugins.Kb, "search", fails)
    assert search(IN_S) == "tool-failed"
    assert seen == [[["a", "private"]]]
    assert labels() == ["a", "private"]


def test_a_session_is_labeled_once_and_says_by_which_call(
    kb: Callable[..., None], django_assert_num_queries: Any
) -> None:
    kb()
    bring("private")
    search(IN_S)
    stored = session_changes.read("ada", "s")
    [label] = stored.session.labels
    assert (label.name, label.tool, label.at) == ("private", "kb__search", NOON.isoformat())
    with clock.stopped(NOON + dt.timedelta(hours=1)):
        search(IN_S)
    assert session_changes.read("ada", "s") == stored


def test_a_call_is_denied_by_a_label_that_another_call_brought_while_it_waited(
    kb: Callable[..., None],
) -> None:
    kb({**OUT, "tools": ["kb__hold"]})
    bring("private")
    waiting = arrival.prepare(gates.CallGate(call("kb__hold", {}, IN_S)))
    assert isinstance(waiting, gates.Admitted)
    assert search(IN_S) == "ok"
    with pytest.raises(last_checks.DeniedError) as denied:
        last_checks.check_again(waiting)
    assert denied.value.refusal.code == "denied-by-rule"


def test_an_agent_cannot_take_a_label_off_its_session_and_an_operator_can(kb: Callable[..., None]) -> None:
    kb({**OUT, "tools": ["kb__hold"]})
    bring("private")
    search(IN_S)
    hold = call("kb__hold", {}, IN_S)
    session_changes.evict(OPERATOR, "ada", "s", among=["own"])
    assert labels() == ["private"]
    assert code(calls.answer_blocking(hold)) == "denied-by-rule"
    # Nor by loading something, which replaces the rest of the session's state.
    calls.run("ada", "load_tools", {"toolkit": "more"}, session="s")
    assert labels() == ["private"]
    session_changes.clear_label(OPERATOR, "ada", "s", "private")
    assert labels() == []
    search(IN_S)
    session_changes.evict(OPERATOR, "ada", "s")
    assert labels() == []


def test_clearing_a_label_is_audited_and_one_that_there_is_not_is_named(kb: Callable[..., None]) -> None:
    kb()
    agent_id = models.Agent.objects.get(key="ada").pk
    agent_sessions.bring("ada", "s", ["private", "untrusted"], "kb__search")
    session_changes.clear_label(OPERATOR, "ada", "s", "private")
    entry = models.AuditEntry.objects.latest("id")
    assert (entry.action, entry.subject_key) == ("session.clear", "ada")
    assert (entry.before, entry.after) == ({"labels": ["private", "untrusted"]}, {"labels": ["untrusted"]})
    for session, label in (("s", "private"), ("t", "untrusted")):
        with pytest.raises(errors.NotFound):
            session_changes.clear_label(OPERATOR, "ada", session, label)
    assert agent_sessions.find(agent_id, "s") is not None


def test_the_record_of_a_call_has_the_labels_by_which_it_was_decided(kb: Callable[..., None]) -> None:
    kb()
    bring("private")
    search(IN_S)
    assert models.CallRecord.objects.latest("id").state == ""
    search(IN_S)
    digest = models.CallRecord.objects.latest("id").state
    assert models.SessionState.objects.get(digest=digest).document["labels"] == ["private"]


def test_why_says_what_was_counted_and_which_labels_are_missing(kb: Callable[..., None]) -> None:
    kb(
        {**ONE_A_DAY, "more_than": {"calls": 2, "per": "day"}},
        {"key": "order", "effect": "deny", "tools": ["kb__search"], "without": ["checked"]},
    )
    search()

    def words(key: RequestKey, given: Any = None) -> list[str]:
        return [step.words for step in explain.why(key, "kb__search", given).at_the_gate]

    assert words(ADA) == [
        "does not apply: 0 of 2 calls were made",
        "depends on the session's labels",
    ]
    agent_sessions.bring("ada", "s", ["checked"], "kb__who")
    assert words(IN_S, GIVEN) == ["does not apply: 0 of 2 calls were made", "does not apply"]
    with clock.stopped(NOON):
        models.CallCount.objects.create(
            rule="one", subject="ada", resets=NOON + dt.timedelta(hours=12), calls=2
        )
    assert words(ADA)[0] == "applies: 2 of 2 calls were made"


def test_a_preflight_says_that_a_limit_is_reached_and_counts_nothing(kb: Callable[..., None]) -> None:
    kb(ONE_A_DAY)
    assert [preflight.check(call("kb__search")).would for _ in range(2)] == ["run", "run"]
    assert search() == "ok"
    found = preflight.check(call("kb__search"))
    assert (found.would, found.document()["code"]) == ("refuse", "quota-reached")
    assert counted() == [("one", "ada", 1)]
