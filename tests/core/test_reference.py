"""Tests that the core agrees with the reference (tests/reference), a second implementation of docs/semantics.md."""

from __future__ import annotations

import ast
import dataclasses
import functools
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core import reference_belts
from tests.core.reference_belts import Document, Step
from tests.core.reference_comparison import Both, prepared
from tests.reference import belts, scenarios, world
from toolbelt.core import (
    agents,
    catalog,
    conflicts,
    loadouts,
    risks,
    rules,
    sessions,
    tool_versions,
)
from toolbelt.core import policy as policies
from toolbelt.core.rules import budgets, targets

TESTS = Path(__file__).parent.parent
SCENARIOS = [
    scenario
    for file in sorted((TESTS / "scenarios").rglob("*.json"))
    for scenario in json.loads(file.read_text("utf-8"))
    # Gate rules decide about calls, and are no part of the eleven rules.
    if "expect_error" not in scenario and "gate_rules" not in scenario["belt"]
]
# How many random steps are compared in all; `make soak` takes a million.
STEPS = int(os.environ.get("REFERENCE_STEPS", "2000"))
SEEDS = range(8)

some_steps = st.lists(reference_belts.steps, min_size=6, max_size=14)


@functools.cache
def pool() -> Sequence[tuple[Document, Sequence[Step]]]:
    """Return random belts and steps, the same in each run."""
    drawn = []

    @hypothesis.seed(1)
    @hypothesis.settings(
        max_examples=40,
        database=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @given(reference_belts.belts(), some_steps)
    def draw(belt: Document, steps: Sequence[Step]) -> None:
        drawn.append((belt, steps))

    draw()
    return drawn


def differences(belt: Document, steps: Sequence[Step]) -> list[str]:
    """Return what differs between the core and the reference in these steps."""
    both = Both(belt)
    for at, (action, value) in steps:
        both.take(at, action, value)
    for request_id in ("r1", "later"):
        both.take(("ada", "s", request_id), "surface", (None, "fix code"))
    return both.differences


# Belts and steps in which the two once differed.
HISTORIES: dict[str, tuple[Document, Sequence[Step]]] = {
    "an-initial-toolkit-that-a-load-deferred-in-part-is-listed": (
        {
            "tools": [{"key": "push"}, {"key": "own"}, {"key": "ps", "default_on": True}],
            "toolkits": [{"key": "kb", "members": ["push", {"tool": "own", "options": {"n": 1}}]}],
            "agents": [
                {
                    "key": "ada",
                    "allowed_toolkits": ["kb"],
                    "initial_toolkits": ["kb"],
                    "budget": {"max_tools": 2, "on_exceed": "defer"},
                }
            ],
            "sub_apps": [{"key": "room", "tool_names": ["own"], "agents": ["ada"]}],
        },
        [(("ada", "s", "r0"), ("load_tools", "ps")), (("ada", "s", "r1"), ("list_toolkits", None))],
    ),
}


@pytest.mark.parametrize(("belt", "steps"), HISTORIES.values(), ids=HISTORIES)
def test_the_core_agrees_with_the_reference_on_the_history(belt: Document, steps: Sequence[Step]) -> None:
    assert differences(belt, steps) == []


# Rare histories may still differ, so random ones are compared by `make soak`; the suite compares all scenarios.
@pytest.mark.soak
@given(reference_belts.belts(), some_steps)
def test_the_core_agrees_with_the_reference(belt: Document, steps: Sequence[Any]) -> None:
    assert differences(belt, steps) == []


@pytest.mark.soak
@pytest.mark.parametrize("seed", SEEDS)
def test_the_core_agrees_with_the_reference_on_many_belts(seed: int) -> None:
    random, left = Random(seed), STEPS // len(SEEDS)  # noqa: S311
    while left > 0:
        belt, steps = reference_belts.recombined(pool(), random)
        assert differences(belt, steps) == [], (belt, steps)
        left -= len(steps)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario["id"] for scenario in SCENARIOS])
def test_the_reference_passes_the_scenario(scenario: Document) -> None:
    assert list(scenarios.failures(scenario, world.World(prepared, len))) == []


def test_the_reference_imports_nothing_of_toolbelt() -> None:
    files = sorted((TESTS / "reference").glob("*.py"))
    assert len(files) > 5
    for file in files:
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                assert name.partition(".")[0] != "toolbelt", file
                assert not name.startswith("tests.") or name.startswith("tests.reference"), file


def test_both_have_the_same_tables() -> None:
    assert {
        name.lower(): category for name, category in catalog.PLUGIN_CATEGORIES.items()
    } == belts.CATEGORY_OF_PLUGIN
    assert dict(agents.KIND_LOADOUTS) == belts.LOADOUT_OF_KIND
    for entry in belts.BUILT_IN_LOADOUTS:
        loadout = loadouts.BUILT_IN[entry["name"]]
        for field in ("plugins", "categories", "discoverable"):
            assert sorted(getattr(loadout, field)) == sorted(entry.get(field, ()))
        assert loadout.parent == entry.get("parent", "")


def ignoring(*_: Any, **__: Any) -> None:
    return None


MISTAKES: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "patterns-regard-case": (
        loadouts,
        "matches",
        lambda pattern, name: name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern,
    ),
    "a-load-counts-in-its-own-request": (sessions.Change, "counts_as", lambda change, _: change.on),
    "loads-are-forgotten": (sessions, "load_order", lambda *_: ()),
    "what-is-loaded-has-another-order": (
        sessions,
        "in_allowed_order",
        lambda *names, was=sessions.in_allowed_order: was(*names)[::-1],
    ),
    "ends-never-come": (agents.Agent, "as_of", lambda agent, now: agent),
    "kinds-have-no-loadout": (agents.Agent, "loadout_name", lambda agent, kinds=None: agent.loadout),
    "approved-hints-do-not-count": (risks, "_approved", lambda tool: risks.stated(tool)),
    "changes-are-not-held": (tool_versions, "is_changed", lambda tool: False),
    "a-blocked-toolkit-blocks-nothing": (
        rules,
        "block_over",
        lambda stored, tool: rules.Origin("tool", tool.key) if tool.blocked else None,
    ),
    "the-newest-load-is-deferred-first": (
        budgets,
        "_requested",
        lambda context, was=budgets._requested: (was(context)[0], was(context)[1][::-1]),
    ),
    "no-initial-toolkit-is-deferred": (
        budgets,
        "_requested",
        lambda context, was=budgets._requested: ((), was(context)[1]),
    ),
    "notes-are-left-out": (
        policies,
        "section_text",
        lambda toolkit, tools, was=policies.section_text: was(
            dataclasses.replace(toolkit, tool_notes={}), tools
        ),
    ),
    "every-load-has-room": (budgets, "has_room", lambda *_: True),
    "nothing-conflicts": (conflicts, "options_of", ignoring),
    "nothing-is-already-loaded": (targets, "is_loaded", lambda *_: False),
}


@pytest.mark.parametrize(("where", "name", "mistake"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_in_the_core_is_found(
    where: Any, name: str, mistake: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, name, mistake)
    random = Random(1)  # noqa: S311
    found = (differences(*reference_belts.recombined(pool(), random)) for _ in range(300))
    assert any(found)
