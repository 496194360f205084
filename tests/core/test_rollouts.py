"""Tests of who is in the new arm of a roll-out, and of what the agent has there."""

from __future__ import annotations

import json
import random
import statistics
from typing import Any

import pytest

from toolbelt.core import agents, belts, rollouts, sessions


def rollout(*changes: dict[str, Any], trial: int = 7, percent: int = 10) -> agents.Rollout:
    return agents.Rollout(trial=trial, percent=percent, changes=json.dumps(changes))


def switch(key: str, before: Any, after: Any) -> dict[str, Any]:
    return {"action": "switch.set", "key": key, "before": before, "after": after}


def override(key: str, before: Any, after: Any) -> dict[str, Any]:
    return {**switch(key, before, after), "action": "override.set"}


def fields(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    return {"action": "agent.change", "key": "", "before": before, "after": after}


@pytest.fixture
def belt() -> belts.Belt:
    return belts.load(
        {
            "tools": [{"key": "look"}, {"key": "push"}],
            "toolkits": [{"key": "reading", "members": ["look"]}, {"key": "pushing", "members": ["push"]}],
            "loadouts": [{"name": "house"}],
            "agents": [{"key": "ada", "title": "Ada", "tools_config": {"reading": True, "push": False}}],
        }
    )


def changed(belt: belts.Belt, *changes: dict[str, Any]) -> agents.Agent:
    return rollouts.changed(belt.agents["ada"], rollout(*changes), belt.catalog)


def test_a_share_of_sessions_is_in_the_new_arm_always_the_same_ones() -> None:
    names = [f"s{number}" for number in range(4000)]
    tenth = {name for name in names if rollouts.includes(rollout(), "ada", name)}
    half = {name for name in names if rollouts.includes(rollout(percent=50), "ada", name)}
    every = {name for name in names if rollouts.includes(rollout(percent=100), "ada", name)}

    assert 340 < len(tenth) < 460
    assert 1900 < len(half) < 2100
    assert len(every) == 4000
    assert tenth < half
    # By the formula that is documented, so that a session has the same arm in every version and process.
    assert [name for name in names[:40] if name in tenth] == ["s1", "s10", "s16", "s19", "s20"]


def test_another_roll_out_and_another_agent_have_other_sessions() -> None:
    names = [f"s{number}" for number in range(1000)]
    arms = [
        {name for name in names if rollouts.includes(rollout(trial=trial), agent, name)}
        for trial, agent in ((7, "ada"), (8, "ada"), (7, "bob"))
    ]

    assert len(set(map(frozenset, arms))) == 3


def test_the_new_arm_has_the_changes_and_nothing_else(belt: belts.Belt) -> None:
    agent = changed(
        belt,
        switch("reading", True, False),
        override("push", False, None),
        fields({"loadout": None}, {"loadout": "house", "budget": {"max_tools": 3}}),
    )

    assert (agent.switches, agent.overrides) == ({"reading": False}, {})
    assert (agent.loadout, agent.budget) == ("house", agents.Budget(max_tools=3))
    assert (agent.title, agent.arm and agent.arm.trial) == ("Ada", 7)


@pytest.mark.parametrize(
    "change",
    [
        switch("reading", None, False),
        override("push", True, None),
        fields({"loadout": "other"}, {"loadout": "house"}),
        fields({}, {"title": "Lovelace"}),
    ],
)
def test_what_is_not_as_it_was_when_it_began_is_not_changed(belt: belts.Belt, change: dict[str, Any]) -> None:
    agent = changed(belt, switch("pushing", None, True), change)

    assert agent is belt.agents["ada"]


def test_a_key_that_is_changed_twice_is_compared_with_its_first_value(belt: belts.Belt) -> None:
    agent = changed(belt, switch("reading", True, None), switch("reading", None, False))

    assert agent.switches == {"reading": False}


def test_the_state_of_a_session_says_in_which_arm_it_was() -> None:
    arm = rollout(switch("reading", True, False))
    state = sessions.state(sessions.Session(key="s1"), "r1", arm)

    found = sessions.arm(state)
    assert found is not None
    assert (found.trial, json.loads(found.changes)) == (7, [switch("reading", True, False)])
    assert sessions.with_state(json.loads(state)).changes == ()
    named = sessions.with_change(sessions.NEW, "tool", '"rollout"', True, None)
    assert sessions.arm(sessions.state(named, None)) is None
    assert sessions.state(sessions.NEW, None) == ""


def simulated(dice: random.Random, failing: float, broken: float, *, percent: int, sessions: int) -> int:
    """Return after how many sessions of the new arm it is taken back; 0 if it is not."""
    before = now = rollouts.Arms()
    for _ in range(sessions):
        is_new = dice.random() * 100 < percent
        is_failed = dice.random() < failing or (is_new and dice.random() < broken)
        arm = now.new if is_new else now.old
        arm = rollouts.Arm(arm.sessions + 1, arm.failed + is_failed)
        now = now._replace(new=arm) if is_new else now._replace(old=arm)
        if rollouts.is_due(before, now):
            before = now
            if now.is_worse:
                return now.new.sessions
    return 0


@pytest.mark.parametrize("percent", [5, 10, 50])
@pytest.mark.parametrize("failing", [0.003, 0.01, 0.03, 0.1])
def test_what_harms_nothing_is_seldom_taken_back(percent: int, failing: float) -> None:
    dice = random.Random(f"{percent} {failing}")  # noqa: S311
    taken = [simulated(dice, failing, 0, percent=percent, sessions=600) for _ in range(300)]

    assert sum(map(bool, taken)) / len(taken) <= 0.04


@pytest.mark.parametrize(("broken", "within"), [(0.1, 150), (0.3, 45)])
@pytest.mark.parametrize("percent", [5, 50])
def test_what_breaks_sessions_is_found_early(percent: int, broken: float, within: int) -> None:
    dice = random.Random(f"{percent} {broken}")  # noqa: S311
    taken = [simulated(dice, 0.03, broken, percent=percent, sessions=4000) for _ in range(100)]

    assert all(taken)
    assert statistics.median(taken) <= within


def test_the_new_arm_is_worse_if_chance_hardly_explains_it() -> None:
    def arms(new: tuple[int, int], old: tuple[int, int]) -> rollouts.Arms:
        return rollouts.Arms(rollouts.Arm(*new), rollouts.Arm(*old))

    assert arms((50, 15), (500, 20)).is_worse
    assert arms((50, 15), (500, 20)).score == pytest.approx(7.18, abs=0.01)
    for new, old in (
        ((19, 15), (500, 20)),
        ((50, 15), (19, 0)),
        # Fewer than three.
        ((20, 2), (500, 1)),
        # By less than two points of a hundred.
        ((100_000, 1_500), (100_000, 1_000)),
        ((50, 2), (500, 20)),
        ((500, 20), (50, 15)),
        ((20, 0), (20, 0)),
        ((0, 0), (0, 0)),
    ):
        assert not arms(new, old).is_worse, (new, old)
