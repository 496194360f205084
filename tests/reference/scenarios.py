"""Running a scenario on the reference (docs/how-to/test-your-configuration.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from tests.reference.world import Request, Surface, World

STATES = ("active", "discoverable", "denied", "dormant", "unavailable")
# What depends on search and on wording, which are no rules.
NOT_RULES = ("results", "toolkit", "message", "errors", "loaded_by_name")


def failures(scenario: Mapping[str, Any], world: World) -> Iterator[str]:
    """Yield a line for each expectation that the reference does not meet."""
    world.now = _time(scenario, None)
    world.load(scenario["belt"])
    for number, step in enumerate(scenario["steps"], start=1):
        world.now = _time(step, world.now)
        for line in _take(step, world):
            yield f"{scenario['id']}: step {number}: {line}"


def _time(section: Mapping[str, Any], before: datetime | None) -> datetime | None:
    return datetime.fromisoformat(section["now"]) if "now" in section else before


def _take(step: Mapping[str, Any], world: World) -> Iterator[str]:
    expected = step.get("expect", {})
    if "edit" in step:
        world.edit(step["edit"])
        return
    parameters = step.get("surface") or step["call"]
    request = Request(**{key: value for key, value in parameters.items() if key in Request._fields})
    if "surface" in step:
        surface = world.surface(request, parameters.get("message"))
        for key, value in expected.items():
            yield from _differences(key, value, surface)
    else:
        answer = world.call(request, parameters["tool"], parameters.get("arguments", {}))
        for key, value in expected.items():
            if key == "toolkits":
                value = [toolkit["name"] for toolkit in value]
            if key not in NOT_RULES and answer.get(key) != value:
                yield f"{key}: expected {value}, got {answer.get(key)}"


def _differences(key: str, value: Any, surface: Surface) -> Iterator[str]:
    stem, _, manner = key.rpartition("_")
    by_state = {
        state: {tool for tool, decision in surface.decisions.items() if decision.state == state}
        for state in STATES
    }
    text = surface.text
    actual: Any
    if key in STATES:
        actual, value = by_state[key], set(value)
    elif stem in STATES:
        actual, value = by_state[stem] & set(value), set(value) if manner == "includes" else set()
    elif key == "because":
        actual = {tool: surface.decisions[tool].code for tool in value}
    elif key == "policy":
        actual = [{section.kind: section.name, "state": section.state} for section in surface.sections]
    elif key == "policy_includes":
        actual, value = [part for part in value if part not in text], []
    elif key == "policy_excludes":
        actual, value = [part for part in value if part in text], []
    elif key == "directive":
        names = {"active_tools": set(value["active_tools"])} if value and "active_tools" in value else {}
        value = value and {**value, **names}
        actual = surface.directive and {
            "active_tools": set(surface.directive[0]),
            "tool_choice": surface.directive[1],
            "first_step_only": True,
        }
        actual = (value and actual and {part: actual[part] for part in value}) or actual
    else:
        actual, value = set(surface.meta_tools), set(value)
    if actual != value:
        yield f"{key}: expected {value}, got {actual}"
