"""Tests that a surface reflects every change, with a fixed number of queries and without writing."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests import fast_fixtures
from toolbelt import testing
from toolbelt.control import writing
from toolbelt.control.catalog import entries
from toolbelt.control.config import belts
from toolbelt.core import admitting as admission
from toolbelt.core import errors
from toolbelt.core.request_key import RequestKey
from toolbelt.runtime import calls, surfaces
from toolbelt.runtime.calls import own_tools
from toolbelt.runtime.surfaces import explain
from toolbelt.store import snapshots

OPERATOR = writing.by("olive", via="screen")


BELT: dict[str, Any] = {
    "tools": [{"key": f"tool{n}", "description": "x"} for n in range(30)],
    "toolkits": [
        {
            "key": "kit",
            "members": [f"tool{n}" for n in range(10)],
            "policy": "Use {active_tools}.",
            "triggers": [{"name": "go", "any": ["go"], "focus": ["tool3"], "tool_choice": "required"}],
        },
        {"key": "spare", "members": ["tool20", "tool21"]},
    ],
    "agents": [{"key": "ada", "tools_config": {"kit": True}, "allowed_toolkits": ["spare"]}],
}


@pytest.fixture
def stored(db: None) -> None:
    fast_fixtures.stored("surfaces", lambda: belts.import_(OPERATOR, BELT))
    snapshots.forget()


def queries(act: Any) -> int:
    with CaptureQueriesContext(connection) as captured:
        act()
    return len(captured)


def test_a_surface_takes_one_query_while_nothing_changes(stored: None) -> None:
    surfaces.ask("ada", session="s")

    assert queries(lambda: surfaces.ask("ada", session="s", request_id="r1", message="go")) == 1
    assert queries(lambda: surfaces.ask("ada", session="t")) == 1


def test_building_a_surface_never_writes(stored: None) -> None:
    with CaptureQueriesContext(connection) as captured:
        surfaces.ask("ada", session="new", request_id="r1", message="go")

    writing = ("INSERT", "UPDATE", "DELETE", "REPLACE")
    assert len(captured) > 0
    assert [query["sql"] for query in captured if query["sql"].lstrip().upper().startswith(writing)] == []


def test_a_switch_change_does_not_recompile_the_catalog(stored: None) -> None:
    before = snapshots.find("ada", None).catalog

    with testing.switched("ada", "kit", False):
        assert snapshots.find("ada", None).catalog is before


def test_a_catalog_change_applies_to_the_next_surface(stored: None) -> None:
    surfaces.ask("ada")

    entries.change(OPERATOR, "toolkit", "kit", {"members": ["tool1"]})

    assert list(surfaces.ask("ada").because) == ["tool1"]


def test_loading_in_a_session_does_not_change_the_revision(stored: None) -> None:
    before = surfaces.ask("ada", session="s").revision

    own_tools.call(RequestKey("ada", "s", "r1"), "load_tools", {"toolkit": "spare"})

    assert surfaces.ask("ada", session="s", request_id="r2").revision == before


def test_a_cached_surface_is_not_shared_between_requests_of_different_state(stored: None) -> None:
    own_tools.call(RequestKey("ada", "s", "r1"), "load_tools", {"toolkit": "spare"})

    assert "tool20" not in surfaces.ask("ada", session="s", request_id="r1").because
    assert "tool20" in surfaces.ask("ada", session="s", request_id="r2").because
    assert surfaces.ask("ada", session="s", request_id="r2").request_id == "r2"
    assert "tool20" not in surfaces.ask("ada", session="other").because


def test_equal_requests_have_equal_documents(stored: None) -> None:
    first = surfaces.ask("ada", session="s", message="go").document()
    snapshots.forget()

    assert surfaces.ask("ada", session="s", message="go").document() == first


def test_a_surface_has_a_directive_only_with_a_message(stored: None) -> None:
    with_message = surfaces.ask("ada", message="go on")

    assert with_message.directive is not None
    assert with_message.directive.active_tools == ("tool3",)
    assert surfaces.ask("ada").directive is None
    assert with_message.fingerprint != surfaces.ask("ada").fingerprint


@pytest.mark.parametrize(
    ("named", "path"),
    [
        ({"session": ""}, "session"),
        ({"request_id": "x" * 201}, "request_id"),
        ({"session": "a\nb"}, "session"),
        ({"subagent": "spy"}, "subagent"),
    ],
)
def test_an_invalid_id_is_refused_with_its_path(stored: None, named: dict[str, str], path: str) -> None:
    with pytest.raises(errors.Invalid) as refused:
        surfaces.ask("ada", **named)

    assert [problem.path for problem in refused.value.problems] == [path]


def test_an_unknown_agent_is_reported_with_the_nearest_name(stored: None) -> None:
    with pytest.raises(errors.NotFound, match="Did you mean ada"):
        surfaces.ask("adda")


def test_why_returns_the_decision_and_the_trace_of_every_rule(stored: None) -> None:
    explanation = explain.why(RequestKey("ada"), "tool3")

    assert explanation.line == "tool3  active  switch-on: toolkit kit is on"
    assert [step.rule_number for step in explanation.trace] == list(range(1, 12))
    with pytest.raises(errors.NotFound, match="tool3"):
        explain.why(RequestKey("ada"), "tool_3")


def test_a_call_is_refused_immediately_after_its_tool_is_switched_off(stored: None) -> None:
    surfaces.ask("ada", session="s", request_id="r1")
    assert isinstance(calls.admit(RequestKey("ada", "s", "r1"), "tool3", {}), admission.Admission)

    with testing.switched("ada", "kit", False):
        refusal = calls.admit(RequestKey("ada", "s", "r1"), "tool3", {})

    assert isinstance(refusal, admission.Refusal)
    assert refusal.code == "tool-denied"


def test_a_setting_hides_denied_tools_from_agents(stored: None, settings: Any) -> None:
    settings.TOOLBELT_HIDE_DENIED = True

    with testing.overridden("ada", "tool3", False):
        refusal = calls.admit(RequestKey("ada"), "tool3", {})

    assert isinstance(refusal, admission.Refusal)
    assert refusal.code == "unknown-tool"


def test_the_surface_cache_is_limited_by_the_active_tools_in_it(
    stored: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [f"small{number}" for number in range(6)]
    belts.import_(OPERATOR, {"agents": [{"key": key} for key in keys]})
    for key in ("ada", *keys):
        surfaces.ask(key)
    assert [queries(lambda key=key: surfaces.ask(key)) for key in ("ada", *keys)] == [1] * 7
    cached = surfaces.computed(snapshots.catalog())
    assert len(cached) == 7

    # Room for ada, who has ten tools, and for one that has none.
    snapshots.forget()
    monkeypatch.setattr(surfaces, "MAX_CACHED", 2 * surfaces.SURFACE_SIZE + 10)
    for key in ("ada", *keys, "ada", keys[0]):
        surfaces.ask(key)
    cached = surfaces.computed(snapshots.catalog())
    assert [answer.agent for slot in cached if (answer := cached.get(slot))] == ["ada", keys[0]]
