"""A code toolkit's hooks apply while it may provide text, and its row otherwise."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.core import building
from toolbelt.core import catalog, surface, toolkit_hooks


class Saying:
    """Hooks that return their input."""

    def policy(self, active_tools: tuple[str, ...]) -> str | None:
        return f"code: {' '.join(active_tools)}" if "git__log" in active_tools else None

    def focus(self, active_tools: tuple[str, ...], message: str) -> toolkit_hooks.Focus | None:
        return toolkit_hooks.Focus((*active_tools, "git__push"), "required", message)


def asked(*tools: str, message: str | None = None, **fields: Any) -> surface.Surface:
    """Ask for the surface of an agent that has these tools, of a toolkit that the plugin git owns."""
    owned = building.toolkit(
        "repo",
        "git__status git__log",
        plugin="git",
        policy="row.",
        triggers=(catalog.Trigger(name="x", any=("go",)),),
    )
    stored = building.catalog_of(
        "git__status git__log git__push", toolkits=[owned], plugins=[catalog.Plugin(name="git", **fields)]
    )
    stored = dataclasses.replace(stored, code={("git", "repo"): Saying()})
    return surface.build(building.snapshot(stored, building.agent(tools=tools)), message)


def test_the_code_gives_the_section_from_the_active_members_in_their_order() -> None:
    assert [section.text for section in asked("git__log", "git__status").policy.sections] == [
        "code: git__status git__log"
    ]


def test_code_that_says_nothing_gives_no_section() -> None:
    assert asked("git__status").policy.sections == ()


def test_the_code_gives_the_focus_cut_to_active_tools() -> None:
    directive = asked("git__log", message="hello").directive

    assert directive is not None
    assert (directive.active_tools, directive.tool_choice) == (("git__log",), "required")
    assert directive.because == (("repo", "hello"),)


@pytest.mark.parametrize("state", [{"active": False}, {"status": "failed"}])
def test_a_plugin_that_is_off_or_has_failed_does_not_speak(state: dict[str, Any]) -> None:
    stored = catalog.compile_(plugins=[catalog.Plugin(name="git", **state)], code={("git", "repo"): Saying()})

    assert stored.hooks(catalog.Toolkit(key="repo", plugin="git")) is None


def test_no_plugin_speaks_for_a_toolkit_that_is_not_its_own() -> None:
    stored = catalog.compile_(
        plugins=[catalog.Plugin(name="git"), catalog.Plugin(name="kb")], code={("git", "repo"): Saying()}
    )

    assert stored.hooks(catalog.Toolkit(key="repo", plugin="kb")) is None
    assert stored.hooks(catalog.Toolkit(key="repo")) is None
    assert stored.hooks(catalog.Toolkit(key="repo", plugin="git")) is not None
