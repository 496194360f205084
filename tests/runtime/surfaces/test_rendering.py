"""Tests that a surface is rendered in each provider format, with its own fingerprint and delta."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolbelt import testing
from toolbelt.control.access import switches
from toolbelt.control.config import belts
from toolbelt.core import errors, surface
from toolbelt.runtime import surfaces
from toolbelt.runtime.surfaces import rendering

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def stored(db: None) -> None:
    kit: dict[str, Any] = {"key": "desk", "members": ["clock", "calc"], "policy": "Use {active_tools}."}
    kit["triggers"] = [{"name": "time", "any": ["what time"], "focus": ["clock"], "tool_choice": "required"}]
    belts.import_(
        testing.OPERATOR,
        {
            "tools": [{"key": "clock", "description": "Tells the time."}, {"key": "calc"}],
            "toolkits": [kit, {"key": "spare", "members": ["calc"]}],
            "agents": [{"key": "ada", "tools_config": {"desk": True}, "allowed_toolkits": ["spare"]}],
        },
    )


def ask(message: str | None = None) -> surface.Surface:
    return surfaces.ask("ada", "s", "r", message)


@pytest.mark.parametrize("form", rendering.FORMATS)
def test_every_format_contains_the_tools_and_the_policy(form: str) -> None:
    rendered = json.dumps(rendering.render(ask(), form))
    for expected in ("clock", "calc", "load_tools", "Use clock, calc."):
        assert expected in rendered


def test_a_directive_becomes_the_first_step() -> None:
    assert "first_step" not in rendering.render(ask(), "vercel")
    first = rendering.render(ask("What time is it?"), "vercel")["first_step"]
    [message] = first["messages"]
    assert message["content"].endswith("clock, list_toolkits, load_tools, search_tools, unload_tools.")


def test_the_name_of_the_model_decides_whether_a_directive_forces_a_call() -> None:
    answer = ask("What time is it?")
    assert "toolChoice" not in rendering.render(answer, "vercel", model="claude-opus-5-5")["first_step"]
    first = rendering.render(answer, "vercel", model="claude-haiku-5-5")["first_step"]
    assert first["toolChoice"] == "required"
    fingerprints = {
        rendering.fingerprint(answer, "vercel", model=model) for model in (None, "claude-haiku-5-5")
    }
    assert len(fingerprints) == 2


def test_rendering_is_deterministic() -> None:
    for form in rendering.FORMATS:
        assert json.dumps(rendering.render(ask(), form)) == json.dumps(rendering.render(ask(), form))


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(errors.Invalid, match="Unknown format 'bard'"):
        rendering.render(ask(), "bard")


def test_each_format_has_its_own_fingerprint_that_changes_with_the_content() -> None:
    before = {form: rendering.fingerprint(ask(), form) for form in rendering.FORMATS}
    assert len({ask().fingerprint, *before.values()}) == len(rendering.FORMATS) + 1
    assert before == {form: rendering.fingerprint(ask(), form) for form in rendering.FORMATS}
    switches.override(testing.OPERATOR, "ada", "calc", False)
    assert not {*before.values()} & {rendering.fingerprint(ask(), form) for form in rendering.FORMATS}


def test_the_delta_is_relative_to_the_tools_declared_before() -> None:
    first = rendering.delta(ask(), {})
    assert first["delta"]["added"] == list(first["declared"]) == ask().content()["active_tools"]
    switches.override(testing.OPERATOR, "ada", "calc", False)
    second = rendering.delta(ask(), first["declared"])
    # Nothing is left to load or unload, either.
    meta_tools = ["list_toolkits", "load_tools", "search_tools", "unload_tools"]
    assert second["delta"] == {"added": [], "removed": ["calc", *meta_tools], "changed": []}
    assert rendering.delta(ask(), second["declared"])["delta"] == {"added": [], "removed": [], "changed": []}
