"""Tests that every scenario in tests/scenarios passes on the core, and that the runner reports what fails."""

from __future__ import annotations

import copy
import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest

from toolbelt.core import errors, scenarios, surface
from toolbelt.core.request_key import RequestKey

HERE = Path(__file__).parent.parent / "scenarios"
FILES = sorted(HERE.rglob("*.json"))
SCENARIOS: list[dict[str, Any]] = [
    scenario for file in FILES for scenario in json.loads(file.read_text("utf-8"))
]


def failures(scenario: dict[str, Any]) -> list[str]:
    return [str(failure) for failure in scenarios.run(scenario, scenarios.CoreWorld(count_tokens=len))]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario["id"] for scenario in SCENARIOS])
def test_the_core_passes_the_scenario(scenario: dict[str, Any]) -> None:
    assert failures(scenario) == []


def test_scenario_ids_are_unique() -> None:
    names = [scenario["id"] for scenario in SCENARIOS]
    assert len(names) > 89
    assert len(names) == len(set(names))


BELT: dict[str, Any] = {
    "tools": [
        {"key": "read"},
        {"key": "push"},
        {"key": "clock", "default_on": True},
        {"key": "dice", "retired": True},
    ],
    "toolkits": [
        {
            "key": "repo",
            "members": ["read", "push"],
            "policy": "Use {active_tools}.",
            "triggers": [{"name": "t", "any": ["fix"], "tool_choice": "required"}],
        }
    ],
    "agents": [
        {
            "key": "ada",
            "allowed_toolkits": ["repo"],
            "initial_toolkits": ["repo"],
            "tools_config": {"push": False},
        }
    ],
}
REQUEST = {"agent": "ada", "session": "s", "request_id": "r1", "message": "fix it"}


def run_steps(*steps: Any, belt: Any = None, **scenario: Any) -> list[str]:
    return failures({"id": "x", "belt": copy.deepcopy(belt or BELT), "steps": list(steps), **scenario})


def surface_with(**expect: Any) -> list[str]:
    return run_steps({"surface": REQUEST, "expect": expect})


HOLDING: dict[str, Any] = {
    "active": ["read", "clock"],
    "denied": ["push"],
    "unavailable": ["dice"],
    "discoverable": [],
    "dormant": [],
    "active_includes": ["clock"],
    "active_excludes": ["push"],
    "because": {"read": "initial", "push": "override-off", "dice": "tool-retired"},
    "policy": [{"toolkit": "repo", "state": "on"}],
    "policy_includes": ["Use read."],
    "policy_excludes": ["push"],
    "directive": {"active_tools": ["read"], "tool_choice": "required"},
    "meta_tools": [],
}


def test_expectations_that_hold_are_not_reported() -> None:
    assert surface_with(**HOLDING) == []


@pytest.mark.parametrize(
    ("key", "wrong", "expected_failure"),
    [
        ("active", ["read"], "x: step 1: expected active = ['read'], got ['clock', 'read']"),
        ("active", ["read", "clock", "dice"], "expected active ="),
        ("active", "read", "expected active = 'read'"),
        ("active", [["read"]], "expected active ="),
        ("denied", [], "expected denied = [], got ['push']"),
        ("unavailable", [], "expected unavailable ="),
        ("discoverable", ["push"], "expected discoverable ="),
        ("dormant", ["clock"], "expected dormant ="),
        ("active_includes", ["push"], "expected active to include ['push']"),
        ("denied_includes", ["read"], "expected denied to include ['read']"),
        ("active_includes", "clock", "expected a list of tools for active_includes"),
        ("active_excludes", ["clock", "push"], "expected active without ['clock']"),
        ("unavailable_excludes", ["dice"], "expected unavailable without ['dice']"),
        ("active_excludes", "push", "expected a list of tools for active_excludes"),
        ("because", {"read": "loaded"}, "expected read because loaded, got initial"),
        ("because", {"ghost": "loaded"}, "expected ghost because loaded, got no such tool"),
        ("because", ["read"], "expected reason codes by tool"),
        ("policy", [], "expected policy sections []"),
        ("policy", [{"toolkit": "repo", "state": "off"}], "expected policy sections"),
        ("policy_includes", ["Never."], "expected policy with 'Never.'"),
        ("policy_includes", "Use", "expected a list of texts"),
        ("policy_excludes", ["Use"], "expected policy without 'Use'"),
        ("policy_excludes", "zz", "expected a list of texts"),
        ("directive", None, "expected directive None"),
        ("directive", "required", "expected directive required"),
        ("directive", {"active_tools": ["push"]}, "expected directive active_tools = ['push']"),
        ("directive", {"tool_choice": "auto"}, "expected directive tool_choice = 'auto', got 'required'"),
        ("directive", {"tool_chioce": "required"}, "expected directive tool_chioce"),
        ("meta_tools", ["search_tools"], "expected meta_tools = ['search_tools'], got []"),
        ("meta_tools", ["load_tools"], "expected meta_tools ="),
        (
            "activ",
            ["read"],
            "expected a known expectation, got the unknown key 'activ' (did you mean active?)",
        ),
        ("active_contains", ["read"], "the unknown key 'active_contains' (did you mean active_includes or"),
        ("policy_is", ["read"], "the unknown key 'policy_is' (did you mean policy or"),
    ],
)
def test_a_failed_expectation_of_a_surface_is_reported(key: str, wrong: Any, expected_failure: str) -> None:
    (failure,) = surface_with(**{key: wrong})
    assert expected_failure in failure


def test_a_missing_expected_directive_is_reported() -> None:
    quiet = {**REQUEST, "message": "hello"}
    (failure,) = run_steps({"surface": quiet, "expect": {"directive": {"tool_choice": "required"}}})
    assert "got None" in failure
    assert run_steps({"surface": quiet, "expect": {"directive": None}}) == []


def test_every_failed_expectation_is_reported() -> None:
    assert len(surface_with(active=[], denied=[], policy=[])) == 3
    assert (
        len(
            run_steps(
                {"surface": REQUEST, "expect": {"active": []}}, {"surface": REQUEST, "expect": {"denied": []}}
            )
        )
        == 2
    )


def test_expectations_of_a_call_are_compared_by_key() -> None:
    call = {"agent": "ada", "session": "s", "request_id": "r1"}
    steps: list[Any] = [
        {"call": {**call, "tool": "read", "arguments": {}}, "expect": {"is_error": False}},
        {"call": {**call, "tool": "push"}, "expect": {"is_error": True, "code": "tool-denied"}},
        {
            "call": {**call, "tool": "load_tools", "arguments": {"toolkit": "repo"}},
            "expect": {"status": "already_loaded", "loaded_toolkits": ["repo"], "is_error": False},
        },
    ]
    assert run_steps(*steps) == []


@pytest.mark.parametrize(
    ("tool", "expect", "expected_failure"),
    [
        ("read", {"is_error": True}, "expected is_error = True, got False"),
        ("read", {"code": "tool-denied"}, "expected code = 'tool-denied', got no code (there are is_error)"),
        ("push", {"code": "unknown-tool"}, "expected code = 'unknown-tool', got 'tool-denied'"),
        ("list_toolkits", {"loaded_toolkits": []}, "expected loaded_toolkits = [], got ['repo']"),
        ("list_toolkits", {"takes_effect": "next_request"}, "expected takes_effect"),
    ],
)
def test_a_failed_expectation_of_a_call_is_reported(tool: str, expect: Any, expected_failure: str) -> None:
    step = {"call": {"agent": "ada", "session": "s", "tool": tool}, "expect": expect}
    (failure,) = run_steps(step)
    assert expected_failure in failure


@pytest.mark.parametrize(
    ("step", "expected_failure"),
    [
        ({}, "a step that does one of surface, call, approve, reject, edit"),
        ("surface", "a step that does one of"),
        ({"surfaces": REQUEST}, "a step that does one of"),
        ({"surface": REQUEST, "edit": {}}, "a step that does one of"),
        ({"surface": REQUEST, "expects": {"active": []}}, "a step of surface and expect, got expects"),
        ({"surface": {**REQUEST, "sesion": "s"}}, "a key that surface has, got sesion"),
        ({"surface": {"session": "s"}}, "surface with agent"),
        ({"surface": "ada"}, "what to surface, by key"),
        ({"call": {"agent": "ada"}}, "call with tool"),
        ({"call": {"agent": "ada", "tool": "read", "args": {}}}, "a key that call has, got args"),
        ({"surface": REQUEST, "expect": ["active"]}, "expectations by key"),
        ({"edit": {"agents": [{"key": "ada"}]}, "expect": {"active": []}}, "an edit, which has no answer"),
        ({"surface": {**REQUEST, "agent": "bob"}}, "There is no agent named 'bob'"),
        ({"surface": {"agent": "ada", "subagent": "planner"}}, "There is no kind of agent named 'planner'"),
        ({"edit": {"agents": [{"key": "ada", "loadout": "ghost"}]}}, "There is no loadout named 'ghost'"),
        ({"edit": {"agents": ["ada"]}}, "a key for each of the agents, got 'ada'"),
        ({"edit": {"loadouts": [{"key": "x"}]}}, "a name for each of the loadouts"),
        ({"edit": {"agents": {"key": "ada"}}}, "a list of agents to edit"),
        ({"edit": {"agents": []}}, "a list of agents to edit"),
        ({"edit": {"agent": [{"key": "ada"}]}}, "an edit of plugins, tools, toolkits"),
        ({"edit": {}}, "something to edit"),
        ({"surface": {**REQUEST, "session": 5}}, "text for session, got 5"),
        ({"surface": {**REQUEST, "request_id": ""}}, "request_id: an id is 1 to 200 characters"),
        ({"surface": {**REQUEST, "agent": None}}, "text for agent, got None"),
        ({"call": {"agent": "ada", "tool": ["read"]}}, "text for tool"),
        ({"surface": REQUEST, "now": "tomorrow"}, "now: a time with its zone"),
        ({"surface": REQUEST, "now": "2031-05-04T14:00:00"}, "now: a time with its zone"),
    ],
)
def test_an_invalid_step_is_reported(step: Any, expected_failure: str) -> None:
    (failure,) = run_steps(step)
    assert failure.startswith("x: step 1: expected")
    assert expected_failure in failure


def test_a_steps_time_applies_to_it_and_later_steps() -> None:
    at = dt.datetime(2031, 5, 4, 14, tzinfo=dt.UTC)
    agent = {"key": "ada", "tools_config": {"read": True}, "ends": {"read": {"at": at.isoformat()}}}
    belt = {"tools": [{"key": "read"}], "agents": [agent]}
    has, has_not = ({"surface": {"agent": "ada"}, "expect": {"active": tools}} for tools in (["read"], []))

    assert run_steps(has, belt=belt) == [], "where it is no moment, nothing ends"
    # YAML parses an unquoted time as a datetime.
    before, then = {**has, "now": "2031-05-04T13:59:59Z"}, {**has_not, "now": at}
    assert run_steps(before, has, then, has_not, before, belt=belt) == []
    assert run_steps(has_not, belt=belt, now=at) == []
    (failure,) = run_steps(has_not, belt=belt, now="at noon")
    assert failure.startswith("x: belt: expected now: a time with its zone")


def test_steps_after_a_failed_step_are_run() -> None:
    reported = run_steps({"surface": {"agent": "bob"}}, {"surface": REQUEST, "expect": {"active": []}})
    assert [failure[:9] for failure in reported] == ["x: step 1", "x: step 2"]


INVALID = {"agents": [{"key": "ada", "loadout": "ghost"}]}


def test_an_invalid_belt_is_reported_before_the_steps() -> None:
    (failure,) = run_steps(belt=INVALID)
    assert failure.startswith("x: belt: expected a valid belt, got agents.ada.loadout:")


def test_an_expected_error_must_occur_at_its_path() -> None:
    assert run_steps(belt=INVALID, expect_error={"path": "agents.ada.loadout"}) == []
    (failure,) = run_steps(belt=INVALID, expect_error={"path": "agents.ada.kind"})
    assert "expected an error at agents.ada.kind, got agents.ada.loadout" in failure
    (failure,) = run_steps(expect_error={"path": "agents.ada.loadout"})
    assert "expected an error at agents.ada.loadout, got no error" in failure


def test_a_lenient_belt_is_loaded_without_validation() -> None:
    request = {"surface": {"agent": "ada"}, "expect": {"active": []}}
    assert run_steps(request, belt=INVALID, lenient=True) == []
    (failure,) = run_steps(request, belt=INVALID, lenient=False)
    assert "a valid belt" in failure


class Crashing(scenarios.CoreWorld):
    """A world whose surfaces raise an error."""

    def surface(self, *_args: Any) -> surface.Surface:
        raise ZeroDivisionError("a fault")


def test_an_edit_that_would_exceed_a_refusing_budget_is_refused() -> None:
    ada = {"key": "ada", "tools": ["a"], "budget": {"max_tools": 1, "on_exceed": "refuse"}}
    belt = {
        "tools": [{"key": "a"}, {"key": "b"}],
        "toolkits": [{"key": "kit", "members": ["b"]}],
        "agents": [ada],
    }
    on = {"edit": {"agents": [{"key": "ada", "tools_config": {"kit": True}}]}}
    off = {"edit": {"agents": [{"key": "ada", "tools_config": {"kit": False}}]}}

    def has(*tools: str) -> dict[str, Any]:
        return {"surface": {"agent": "ada"}, "expect": {"active": list(tools)}}

    assert run_steps(on, has("a"), off, has("a"), belt=belt) == [
        "x: step 1: expected an answer, got The budget of ada refuses this edit, which would exceed it."
    ]
    more = {"edit": {"toolkits": [{"key": "kit", "members": ["a", "b"]}]}}
    over = {**belt, "agents": [{**ada, "tools_config": {"kit": True}}]}
    assert run_steps(more, has("a", "b"), off, has(), belt=over) == [], "who is over it may stay so"
    assert run_steps(on, has("a", "b"), belt=belt, lenient=True) == []


def test_an_archived_agent_answers_no_requests() -> None:
    belt = {"tools": [{"key": "read"}], "agents": [{"key": "ada", "archived": True, "tools": ["read"]}]}
    back = {"edit": {"agents": [{"key": "ada", "archived": False}]}}
    request = {"surface": {"agent": "ada"}, "expect": {"active": ["read"]}}
    called = {"call": {"agent": "ada", "tool": "read"}, "expect": {"is_error": False}}
    failed = run_steps(request, called, back, request, called, belt=belt)
    assert [failure[:9] for failure in failed] == ["x: step 1", "x: step 2"]
    assert all("ada is archived and answers no requests" in failure for failure in failed)


def test_a_scenario_without_expectations_fails() -> None:
    request = {"surface": REQUEST}
    (failure,) = run_steps(request, {**request, "expect": {"active_includes": [], "because": {}}})
    assert failure == "x: belt: expected an expectation, of a step or of the belt (expect_error), got none"
    assert run_steps(request, {**request, "expect": {"discoverable": []}}) == []
    assert run_steps(request, belt=INVALID | BELT, lenient=True) == [], (
        "an answer is enough of a lenient belt"
    )
    (failure,) = run_steps(lenient=True)
    assert "an expectation" in failure


def test_a_crash_is_reported_as_a_failure_of_its_scenario() -> None:
    (failure,) = scenarios.run(
        {"id": "x", "belt": BELT, "steps": [{"surface": {"agent": "ada"}}]}, Crashing()
    )
    assert str(failure) == "x: step 1: expected an answer, got ZeroDivisionError('a fault')"


def test_a_refused_edit_does_not_change_the_configuration() -> None:
    world = scenarios.CoreWorld()
    world.load(BELT, lenient=False)
    with pytest.raises(errors.Invalid):
        world.edit({"agents": [{"key": "ada", "loadout": "ghost", "tools_config": {}}]}, lenient=False)
    assert world.surface(RequestKey("ada"), None).resolution.decision("push").state == "denied"
    world.edit({"agents": [{"key": "ada", "tools_config": {}}]}, lenient=False)
    assert world.surface(RequestKey("ada"), None).resolution.decision("push").state == "active"


def test_loading_a_belt_discards_the_sessions() -> None:
    world = scenarios.CoreWorld()
    belt = {**BELT, "agents": [{"key": "ada", "allowed_toolkits": ["repo"]}]}
    world.load(belt, lenient=False)
    world.call(RequestKey("ada", "s", "r1"), "load_tools", {"toolkit": "repo"})
    assert "read" in world.surface(RequestKey("ada", "s", "r2"), None).because
    world.load(belt, lenient=False)
    assert "read" not in world.surface(RequestKey("ada", "s", "r2"), None).because
