"""Tests that a proof says which recorded calls would go otherwise, counts them right, and neither calls nor writes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest
from django import db

from tests.factories import call as recorded
from tests.runtime import sample_plugins
from tests.runtime.conftest import Install, install, listed
from toolbelt import models
from toolbelt.control import proofs, writing
from toolbelt.control.access import switches
from toolbelt.control.catalog import blocking, entries
from toolbelt.control.config import belts
from toolbelt.core import errors, replay
from toolbelt.runtime import calls, environ, secrets
from toolbelt.runtime.calls.incoming import Call, RequestKey
from toolbelt.runtime.upstream import process_connections
from toolbelt.store import audit, clock, holds, recorded_facts, revisions, snapshots
from toolbelt.store import entries as rows

__all__ = ["install", "listed"]
WRITE = writing.by("olive", via="screen").replace(confirm=True)
BELT: dict[str, Any] = {
    "toolkits": [
        {"key": "desk", "members": ["kb__search", {"tool": "kb__plain", "options": {"key": "env:NOT_SET"}}]},
        {"key": "more", "members": ["kb__odd"]},
    ],
    "agents": [
        {"key": "ada", "tools_config": {"desk": True}, "allowed_toolkits": ["more"]},
        {"key": "bob", "tools_config": {"kb__search": True}},
        {"key": "eve", "tools_config": {"desk": False}},
    ],
}


@pytest.fixture
def kb(db: None, install: Install) -> None:
    install("Kb", config="api_key: sesame-2000", **BELT)


def call(agent: str, tool: str, arguments: Any = None, *, by_dispatch: bool = False, **about: Any) -> None:
    calls.answer_blocking(
        Call(key=RequestKey(agent, **about), tool=tool, arguments=arguments or {}, by_dispatch=by_dispatch)
    )


def a_month() -> None:
    """Make calls that are admitted, refused, loaded and dispatched."""
    for session in ("s1", "s2"):
        call("ada", "kb__search", {"query": "x"}, session=session)
        call("ada", "load_tools", {"toolkit": "more"}, session=session)
        call("ada", "kb__odd", session=session)
    call("ada", "kb__search", {})
    call("ada", "call_tool", {"tool": "kb__odd"}, by_dispatch=True)
    call("bob", "kb__search", {"query": "y"})
    call("eve", "kb__search", {"query": "z"})
    call("bob", "nothing")


def flip(agent: str, key: str, on: bool | None) -> Callable[[], object]:
    return lambda: switches.flip(WRITE, agent, key, on)


def block(tool: str) -> Callable[[], object]:
    return lambda: blocking.set_blocked(WRITE, "tool", tool, True)


def counts(proof: proofs.Proof) -> dict[tuple[str, str, str], int]:
    return {(row.agent, row.tool, row.after): row.calls for row in proof.rows}


def test_a_proof_of_a_switch_counts_the_calls_of_its_agent_that_it_refuses(kb: None) -> None:
    a_month()

    proof = proofs.prove(flip("ada", "desk", False))

    # The call with invalid arguments was refused, and still would be.
    assert counts(proof) == {("ada", "kb__search", "refused"): 2}
    [row] = proof.rows
    assert (row.before, row.ran, row.sessions, len(row.examples)) == ("runs", 2, {"s1", "s2"}, 2)
    assert row.words == "toolkit desk is off"
    assert proof.calls == models.CallRecord.objects.filter(agent="ada").count()
    assert (proof.coverage, dict(proof.unproven)) == (1.0, {})


def test_a_proof_of_a_block_counts_the_calls_of_all_agents(kb: None) -> None:
    a_month()

    proof = proofs.prove(block("kb__search"))

    assert counts(proof) == {("ada", "kb__search", "refused"): 2, ("bob", "kb__search", "refused"): 1}
    # Those of the tool, and loads: others cannot go otherwise.
    reached = models.CallRecord.objects.filter(tool__in=["kb__search", "load_tools", "call_tool"])
    assert proof.calls == reached.count()


def test_a_proof_counts_what_would_have_to_be_loaded_and_what_would_run(kb: None) -> None:
    a_month()

    def change() -> None:
        entries.change(WRITE, "agent", "ada", {"allowed_toolkits": ["more", "desk"]})
        switches.flip(WRITE, "ada", "desk", None)
        switches.flip(WRITE, "eve", "desk", True)

    proof = proofs.prove(change)

    assert counts(proof) == {("ada", "kb__search", "load"): 2, ("eve", "kb__search", "runs"): 1}
    assert (proof.count("load"), proof.count("runs"), proof.count("refused")) == (2, 1, 0)


def test_what_a_session_had_loaded_is_withdrawn_from_its_calls(kb: None) -> None:
    a_month()

    proof = proofs.prove(lambda: entries.change(WRITE, "agent", "ada", {"allowed_toolkits": []}))

    # Two loads, two calls in these sessions, and one through call_tool.
    assert counts(proof) == {("ada", "kb__odd", "refused"): 3, ("ada", "load_tools", "refused"): 2}


def test_the_replay_of_each_call_gives_the_verdict_that_was_recorded(kb: None) -> None:
    a_month()
    entries.create(WRITE, "gate_rule", {"key": "no", "effect": "deny", "agents": ["bob"]})
    call("bob", "kb__search", {"query": "again"})
    judge = replay.Judge(
        snapshots.catalog(), {p.agent.key: p.agent for p in snapshots.present()}, {}, clock.now()
    )

    verdicts = {}
    window = recorded_facts.Window(clock.now() - dt.timedelta(days=1))
    for facts, *_ in recorded_facts.Reader(window).grouped(clock.now()):
        row = models.CallRecord.objects.filter(agent=facts.agent, tool=facts.tool, outcome=facts.outcome)
        verdicts[row.latest("id").id] = judge.verdict(facts).kind == "runs"

    ran = {row.id: row.outcome in replay.RAN for row in models.CallRecord.objects.filter(id__in=verdicts)}
    # What the rule denies now was admitted before it was made.
    before_rule = models.CallRecord.objects.get(agent="bob", tool="kb__search", outcome="ok").id
    assert {**ran, before_rule: False} == verdicts
    assert len(set(ran.values())) == 2


def test_a_proof_calls_no_tool_and_reads_no_secret(kb: None, monkeypatch: pytest.MonkeyPatch) -> None:
    a_month()

    def forbidden(*_: Any, **__: Any) -> Any:
        raise AssertionError("a replay calls nothing, and needs no secret")

    monkeypatch.setattr(sample_plugins.Kb, "execute", forbidden)
    monkeypatch.setattr(environ, "fill_options", forbidden)
    monkeypatch.setattr(secrets, "mask", forbidden)

    proof = proofs.prove(lambda: switches.override(WRITE, "bob", "kb__plain", True))

    assert proof.calls == 2


def test_a_proof_writes_nothing(kb: None) -> None:
    a_month()
    before = (revisions.number(), audit.newest_id(), belts.export(), models.CallRecord.objects.count())

    assert not proofs.prove(block("kb__search")).is_nothing

    assert before == (
        revisions.number(),
        audit.newest_id(),
        belts.export(),
        models.CallRecord.objects.count(),
    )


def test_nobody_is_told_of_a_configuration_that_is_only_proved(kb: None) -> None:
    a_month()
    told: list[bool] = []
    snapshots.watch(lambda stored: told.append(stored.tools["kb__search"].blocked))
    try:
        proofs.prove(block("kb__search"))
        assert not any(told)
        block("kb__search")()
        snapshots.catalog()
        assert told[-1]
    finally:
        process_connections.watch_catalogs()


def test_a_block_that_is_only_proved_is_not_held_while_the_database_fails(
    kb: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise db.OperationalError("database or disk is full")

    monkeypatch.setattr(rows, "write", fail)

    with pytest.raises(db.OperationalError):
        proofs.prove(block("kb__search"))
    assert not holds.any_held()


def test_a_proof_that_is_refused_raises_as_the_change_does(kb: None) -> None:
    with pytest.raises(errors.NotFound):
        proofs.prove(flip("ada", "nothing", True))
    with pytest.raises(errors.Invalid, match="366"):
        proofs.prove(flip("ada", "desk", False), days=366)


def test_older_calls_are_out_of_reach(kb: None) -> None:
    facts = {"state": "", "subagent": "", "dispatched": False}
    recorded("kb__search", agent="ada", days_ago=8, **facts)
    recorded("kb__search", agent="ada", days_ago=3, **facts)

    assert proofs.prove(flip("ada", "desk", False), days=7).calls == 1
    assert proofs.prove(flip("ada", "desk", False), days=30).calls == 2


def test_what_cannot_be_replayed_is_counted_by_its_reason(kb: None) -> None:
    a_month()
    recorded("kb__search", agent="ada")
    recorded("kb__search", agent="gone", state="", subagent="", dispatched=False)
    recorded("kb__search", agent="ada", state="forgotten", subagent="", dispatched=False, session="s")
    rule = {"key": "no", "effect": "deny", "tools": ["kb__search"], "when": {"query": {"const": "x"}}}

    proof = proofs.prove(lambda: entries.create(WRITE, "gate_rule", rule))

    # Three calls were admitted, one of eve was refused anyway, and one did not fit.
    assert dict(proof.unproven) == {"arguments-not-recorded": 3, "no-facts": 2, "agent-gone": 1}
    assert proof.fields == {"kb__search": ["query"]}
    assert proof.coverage == 1 - 6 / proof.calls


def test_recorded_arguments_decide_about_a_rule(kb: None) -> None:
    entries.change(WRITE, "tool", "kb__search", {"recorded_fields": ["query"]})
    a_month()
    rule = {"key": "no", "effect": "deny", "tools": ["kb__search"], "when": {"query": {"const": "x"}}}

    proof = proofs.prove(lambda: entries.create(WRITE, "gate_rule", rule))

    assert counts(proof) == {("ada", "kb__search", "refused"): 2}
    assert proof.coverage == 1.0


def test_a_proof_of_an_undo_is_that_of_the_earlier_configuration(kb: None) -> None:
    change = switches.flip(WRITE, "ada", "desk", None)
    assert change.entry is not None
    switches.flip(WRITE, "ada", "desk", True)
    last = audit.newest_id()
    entries.change(WRITE, "agent", "ada", {"protected": True})
    a_month()

    # To undo it would have to be confirmed.
    proof = proofs.of_undo(WRITE.replace(confirm=False), last)

    assert counts(proof) == {("ada", "kb__search", "refused"): 2}


def test_a_proof_of_a_belt_applies_and_prunes_it(kb: None) -> None:
    a_month()
    belt = {"agents": [{"key": "ada"}, {"key": "eve", "tools_config": {"desk": False}}]}

    proof = proofs.of_belt(WRITE, belt, prune=True)

    assert counts(proof)["bob", "kb__search", "refused"] == 1
    assert counts(proof)["ada", "kb__search", "refused"] == 2
    assert proofs.of_belt(WRITE, belts.export()).is_nothing


def test_the_sentence_has_every_number(kb: None) -> None:
    a_month()

    def change() -> None:
        blocking.set_blocked(WRITE, "tool", "kb__search", True)
        switches.flip(WRITE, "ada", "more", True)

    assert proofs.prove(change).sentence == (
        "In the last 30 days this would have refused 3 calls of 2 agents in 2 sessions."
    )
    assert proofs.prove(lambda: None, days=1).sentence == (
        "In the last 1 day no call was recorded that this concerns."
    )


def test_large_numbers_are_written_with_separators() -> None:
    sessions = set(map(str, range(1200)))
    rows = (
        proofs.Row("ada", "kb__search", "runs", "refused", "a word", calls=2492, sessions=sessions),
        proofs.Row("ada", "kb__search", "runs", "load", "a word", calls=1041, sessions=sessions),
    )
    proof = proofs.Proof(
        days=30, since=clock.now(), calls=12345, rows=rows, unproven={"no-facts": 1234}, fields={}
    )

    assert proof.sentence == (
        "In the last 30 days this would have refused at least 2,492 calls of 1 agent in 1,200 sessions,"
        " and made at least 1,041 load first."
    )
    assert proof.brief == "2,492 refused, 1,041 must load first"
    assert [number in proof.coverage_sentence for number in ("12,345 recorded", "1,234 ")] == [True, True]
