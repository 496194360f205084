"""Tests that hooks in code replace the stored texts of a toolkit while its plugin works."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.core import building
from toolbelt.core import catalog, surface, toolkit_hooks


class EchoHooks:
    """Hooks that return their input."""

    def policy(self, active_tools: tuple[str, ...]) -> str | None:
        return f"code: {' '.join(active_tools)}" if "git__log" in active_tools else None

    def focus(self, active_tools: tuple[str, ...], message: str) -> toolkit_hooks.Focus | None:
        return toolkit_hooks.Focus((*active_tools, "git__push"), "required", message)


def surface_of(*tools: str, message: str | None = None, **fields: Any) -> surface.Surface:
    """Return the surface of an agent with these tools, whose toolkit belongs to the plugin git."""
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
    stored = dataclasses.replace(stored, code={("git", "repo"): EchoHooks()})
    return surface.build(building.snapshot(stored, building.agent(tools=tools)), message)


def test_a_hook_writes_the_section_from_the_active_members_in_order() -> None:
    assert [section.text for section in surface_of("git__log", "git__status").policy.sections] == [
        "code: git__status git__log"
    ]


def test_a_hook_without_a_policy_gives_no_section() -> None:
    assert surface_of("git__status").policy.sections == ()


def test_the_focus_of_a_hook_is_limited_to_active_tools() -> None:
    directive = surface_of("git__log", message="hello").directive

    assert directive is not None
    assert (directive.active_tools, directive.tool_choice) == (("git__log",), "required")
    assert directive.because == (("repo", "hello"),)


@pytest.mark.parametrize("state", [{"active": False}, {"status": "failed"}])
def test_hooks_of_an_inactive_or_failed_plugin_are_ignored(state: dict[str, Any]) -> None:
    stored = catalog.compile_(
        plugins=[catalog.Plugin(name="git", **state)], code={("git", "repo"): EchoHooks()}
    )

    assert stored.hooks(catalog.Toolkit(key="repo", plugin="git")) is None


def test_hooks_apply_only_to_toolkits_of_their_own_plugin() -> None:
    stored = catalog.compile_(
        plugins=[catalog.Plugin(name="git"), catalog.Plugin(name="kb")], code={("git", "repo"): EchoHooks()}
    )

    assert stored.hooks(catalog.Toolkit(key="repo", plugin="kb")) is None
    assert stored.hooks(catalog.Toolkit(key="repo")) is None
    assert stored.hooks(catalog.Toolkit(key="repo", plugin="git")) is not None
