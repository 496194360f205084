"""Tests that a smaller belt is proposed from the recorded calls, and for whom none is."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.db import connection

from tests import factories
from tests.control.conftest import BELT
from tests.factories import call as recorded
from toolbelt.control import least_privilege, undo, writing
from toolbelt.control.access import switches
from toolbelt.control.catalog import entries
from toolbelt.control.config import belts
from toolbelt.core import errors, tool_versions
from toolbelt.store import audit, clock, revisions, snapshots

WRITE = writing.by("olive", via="screen").replace(confirm=True)
# Its description costs more than the tools that load tools.
LONG = {"description": "Push to the server. " * 500}
TOOLS = [{**tool, **LONG} if tool["key"] == "git__push" else tool for tool in BELT["tools"]]


@pytest.fixture(autouse=True)
def lived(db: None) -> None:
    """Configure everything before the period, and record calls in it."""
    with writing.at(clock.now() - dt.timedelta(days=40)):
        belts.import_(WRITE, {**BELT, "tools": TOOLS})
        switches.flip(WRITE, "bob", "pushing", True)
        switches.override(WRITE, "bob", "clock", True)
    calls("git__status", "bob", 30)
    calls("git__log", "bob", 30)
    calls("clock", "ada", 10)


def calls(tool: str, agent: str, number: int, **fields: Any) -> None:
    facts = factories.facts(tool)
    for at in range(number):
        recorded(tool, agent=agent, days_ago=29 - at % 29, **{**facts, **fields})


def of(agent: str, **options: Any) -> least_privilege.OfAgent:
    [proposed] = propose([agent], **options).agents
    return proposed


def propose(names: Any = (), **options: Any) -> least_privilege.Proposal:
    return least_privilege.propose(writing.by("olive", via="command"), names, **options)


def test_the_belt_refuses_no_call_and_has_only_what_changes() -> None:
    proposal = propose(["bob"])

    [bob] = proposal.belt["agents"]
    # The tool that is on by default is not needed: the agent's own loadout includes nothing.
    assert bob == {
        "key": "bob",
        "loadout": "bob-used",
        "tools_config": {"reading": True},
        "allowed_toolkits": ["pushing"],
    }
    assert [loadout["name"] for loadout in proposal.belt["loadouts"]] == ["bob-used"]
    assert proposal.proof is not None
    assert (proposal.proof.is_nothing, proposal.proof.coverage) == (True, 1.0)
    before, after = proposal.tokens
    assert before > after


def test_applied_as_a_belt_it_is_one_change_that_can_be_undone() -> None:
    before, proposal = belts.export(), propose(["bob"])

    imported = belts.import_(WRITE, proposal.belt, was=proposal.revision)

    assert propose(["bob"]).is_nothing
    assert imported.entry is not None
    undo.undo_batch(WRITE, imported.entry)
    assert belts.export() == before


def test_a_proposal_writes_nothing() -> None:
    before = revisions.number(), audit.newest_id(), belts.export()

    assert not propose().is_nothing

    assert (revisions.number(), audit.newest_id(), belts.export()) == before


def test_agents_with_few_calls_are_left_as_they_are() -> None:
    proposed = of("ada")

    assert (proposed.exception, proposed.calls, proposed.smaller) == ("few-calls", 10, None)


def test_agents_that_are_younger_than_the_period_are_left_as_they_are() -> None:
    with writing.at(clock.now() - dt.timedelta(days=10)):
        entries.create(WRITE, "agent", {"key": "new", "tools_config": {"pushing": True}})
    calls("clock", "new", 200)

    assert of("new").exception == "short-history"
    assert of("new", days=9).exception is None


def test_records_that_are_younger_than_the_period_prove_nothing() -> None:
    assert of("bob", days=33).exception == "short-history"
    assert of("bob", days=31).exception is None


def test_what_was_written_around_the_log_leaves_its_agent_as_it_is() -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE toolbelt_agent SET loadout = 'minimal' WHERE key = 'bob'")
    switches.flip(WRITE, "ada", "reading", True)

    assert of("bob").exception == "uncertain-history"


def test_what_was_granted_in_the_period_stays() -> None:
    with writing.at(clock.now() - dt.timedelta(days=3)):
        switches.flip(WRITE, "bob", "pushing", False)
        switches.flip(WRITE, "bob", "pushing", True)
        entries.change(WRITE, "toolkit", "reading", {"members": ["git__status", "git__log", "clock"]})

    smaller = of("bob").smaller

    assert smaller is not None
    # It was off in between; the tool of the other toolkit was there all the time, by its own override.
    assert dict(smaller.agent.switches) == {"pushing": True, "reading": True}
    assert smaller.unused == {"clock": "together", "git__push": "new"}


def test_what_was_approved_in_the_period_stays() -> None:
    version = tool_versions.version(snapshots.catalog().tools["git__push"])
    with writing.at(clock.now() - dt.timedelta(days=3)):
        writing.record(
            WRITE,
            "tool",
            "git__push",
            action="tool.approve",
            before={"approved": ""},
            after={"approved": version},
        )

    smaller = of("bob").smaller

    assert smaller is not None
    assert smaller.unused == {"git__push": "new"}


def test_patterns_keep_and_turning_off_is_asked_for() -> None:
    kept = of("bob", keep=["pushing", "clo*"]).smaller
    assert kept is not None
    assert (kept.steps, kept.unused) == ((), {"clock": "kept", "git__push": "kept"})
    with writing.at(clock.now() - dt.timedelta(days=35)):
        entries.change(WRITE, "toolkit", "reading", {"members": ["git__status", "git__log", "git__push"]})
    off = of("bob", turn_off=True).smaller
    assert off is not None
    assert dict(off.agent.overrides) == {"git__push": False}


def test_without_names_all_agents_are_looked_at_and_one_belt_proves_them_all() -> None:
    with writing.at(clock.now() - dt.timedelta(days=35)):
        switches.flip(WRITE, "ada", "pushing", True)
    calls("clock", "ada", 60)

    proposal = propose()

    assert [one.agent for one in proposal.agents] == ["ada", "bob"]
    assert [one["key"] for one in proposal.belt["agents"]] == ["ada", "bob"]
    assert proposal.proof is not None
    assert proposal.proof.is_nothing


def test_impossible_requests_name_what_is_wrong() -> None:
    with pytest.raises(errors.NotFound):
        propose(["nobody"])
    with pytest.raises(errors.Invalid) as invalid:
        propose(days=0, keep=["*x", ""])
    assert [problem.path for problem in invalid.value.problems] == ["days", "keep", "keep"]
