"""Tests that code toolkits apply in every interface and that their errors never fail a request."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runtime import sample_plugins
from tests.runtime.conftest import OPERATOR, Install
from toolbelt.control.access import switches
from toolbelt.control.reports import queries
from toolbelt.control.servers import plugins as configured
from toolbelt.plugins import contract
from toolbelt.runtime import code_toolkits, surfaces


@pytest.fixture
def notes(db: None, install: Install) -> None:
    install("Notes", "Kb", agents=[{"key": "ada", "tools": ["kb__search"], "tools_config": {"desk": True}}])


def section(toolkit: str, **about: Any) -> tuple[str, str] | None:
    sections = surfaces.ask("ada", **about).policy.sections
    return next(((entry.state, entry.text) for entry in sections if entry.toolkit == toolkit), None)


def test_a_policy_section_is_generated_from_the_active_members_in_order(notes: None) -> None:
    assert section("desk") == ("on", "Notes by notes__write and notes__read.")

    switches.override(OPERATOR, "ada", "notes__write", False)
    assert section("desk") == ("on", "Notes by notes__read.")

    switches.flip(OPERATOR, "ada", "desk", False)
    assert section("desk") == ("off", "You have no notes.")


def test_operators_see_the_same_policy_section_as_agents(notes: None) -> None:
    seen = queries.access("ada").surface

    assert seen.policy.text == surfaces.ask("ada").policy.text
    assert "Notes by notes__write" in seen.policy.text


def test_a_directive_is_limited_to_active_tools_and_has_a_reason(notes: None) -> None:
    directive = surfaces.ask("ada", message="take a note").directive

    assert directive is not None
    assert directive.active_tools == ("kb__search", "notes__write")
    assert directive.tool_choice == "required"
    assert directive.because == (("desk", "it says note"),)
    assert surfaces.ask("ada", message="hello").directive is None


def test_failing_toolkit_code_loses_only_its_own_section(notes: None) -> None:
    surface = surfaces.ask("ada", message="take a note")

    assert "notes__read" in surface.because
    assert section("shaky") is None
    assert section("desk") is not None
    assert surface.directive is not None


def test_toolkit_code_runs_once_per_state(notes: None, monkeypatch: pytest.MonkeyPatch) -> None:
    contexts: list[Any] = []

    def policy(self: Any, context: contract.PolicyContext) -> str:
        contexts.append(context.active_tools)
        return "Once."

    monkeypatch.setattr(sample_plugins.Desk, "policy", policy)
    surfaces.ask("ada")
    surfaces.ask("ada", session="s", message="hello")
    surfaces.ask("ada", session="t")

    assert contexts == [("notes__write", "notes__read")]


def test_toolkit_code_of_a_disabled_plugin_does_not_run(notes: None) -> None:
    configured.disable(OPERATOR, "notes")

    assert section("desk") == ("off", "You have no notes.")
    assert surfaces.ask("ada", message="take a note").directive is None


def test_a_surface_is_built_without_the_code_of_an_unloaded_plugin(notes: None, settings: Any) -> None:
    settings.TOOLBELT_PLUGINS_FILE = ""

    assert "notes__read" in surfaces.ask("ada").because
    assert section("desk") is None


@pytest.mark.parametrize("value", [7, b"text"])
def test_a_policy_that_is_not_a_string_is_ignored(value: Any) -> None:
    class Wrong(contract.CodeToolkit):
        key = "wrong"

        def policy(self, context: contract.PolicyContext) -> Any:
            return value

    assert code_toolkits.ToolkitHooks(Wrong()).policy(("a",)) is None


def test_a_focus_with_an_invalid_tool_choice_is_ignored() -> None:
    class Wrong(contract.CodeToolkit):
        key = "wrong"

        def directive(self, context: contract.DirectiveContext) -> Any:
            return contract.Focus(active_tools=("a",), tool_choice="maybe")  # type: ignore[arg-type]

    assert code_toolkits.ToolkitHooks(Wrong()).focus(("a",), "x") is None
