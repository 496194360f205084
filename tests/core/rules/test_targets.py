"""Tests of targets: what a name to load or unload means."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core import building
from toolbelt.core import agents, catalog
from toolbelt.core.rules import budgets, resolution, targets

STORED = building.catalog_of(
    ["docker__ps", "docker__rm", "calc", building.tool("git__log", blocked=True), "docker"],
    toolkits={"dev": "calc ghost", "empty": ""},
)


def resolved(stored: catalog.Catalog = STORED, *, session: Any = None, **fields: Any) -> budgets.Resolution:
    return budgets.resolve(
        building.snapshot(stored, building.agent(**fields), session=session or building.session())
    )


def test_a_toolkit_is_found_by_key_and_allowed_by_the_agents_list() -> None:
    assert targets.find(resolved(allowed="dev"), "dev") == targets.Target(
        kind="toolkit", name="dev", tools=("calc",), is_allowed=True
    )
    assert targets.find(resolved(), "dev") == targets.Target(
        kind="toolkit", name="dev", tools=("calc",), is_allowed=False
    )


@pytest.mark.parametrize(("name", "kind"), [("calc", "tool"), ("git", "plugin"), ("docker__ps", "tool")])
def test_a_tool_or_plugin_is_allowed_if_a_pattern_matches(name: str, kind: str) -> None:
    allowed = targets.find(resolved(loadout="minimal"), name)
    assert allowed is not None
    assert (allowed.kind, allowed.is_allowed) == (kind, True)
    refused = targets.find(resolved(allowed="dev"), name)
    assert refused is not None
    assert not refused.is_allowed


@pytest.mark.parametrize("name", ["nothing", "Dev", "CALC", "ghost", ""])
def test_an_unknown_name_has_no_target(name: str) -> None:
    assert targets.find(resolved(loadout="minimal", allowed="dev"), name) is None


def test_a_shared_name_means_the_first_allowed_target() -> None:
    one_docker = catalog.Loadout(name="x", discoverable=("docker__ps",))
    stored = building.catalog_of(STORED.tools.values(), loadouts=[one_docker])
    both = targets.find(resolved(loadout="minimal"), "docker")
    plugin = targets.find(resolved(stored, loadout="x"), "docker")
    none = targets.find(resolved(), "docker")
    assert [target and target.kind for target in (both, plugin, none)] == ["tool", "plugin", "tool"]
    assert plugin is not None
    assert plugin.tools == ("docker__ps",)


def test_a_shared_name_means_the_loaded_target_when_unloading() -> None:
    resolution_ = resolved(loadout="minimal", session=building.session(plugins="docker"))
    target = targets.find(resolution_, "docker", prefer_loaded=True)
    assert target is not None
    assert target.kind == "plugin"


def test_deferred_tools_and_plugins_are_allowed_targets() -> None:
    stored = building.catalog_of([building.tool("web__get", default_on=True)])
    resolved_budget = resolved(stored, budget=agents.Budget(max_tools=0, on_exceed="defer"))
    for name in ("web__get", "web"):
        target = targets.find(resolved_budget, name)
        assert target is not None
        assert target.is_allowed


@pytest.mark.parametrize(
    ("fields", "name", "answer"),
    [
        ({}, "empty", "denied"),
        ({}, "dev", None),
        ({"switches": {"dev": False}}, "dev", "denied"),
        ({"overrides": {"calc": False}}, "dev", "denied"),
        ({}, "git__log", "denied"),
    ],
)
def test_a_target_without_permitted_tools_is_denied(fields: Any, name: str, answer: str | None) -> None:
    resolved_budget = resolved(allowed="dev empty", loadout="minimal", **fields)
    target = targets.find(resolved_budget, name)
    assert target is not None
    assert targets.closed_state(resolved_budget.context, target) == answer


RETIRED = {"retired": True}


@pytest.mark.parametrize(
    ("tools", "plugin", "toolkit", "answer"),
    [
        ([RETIRED, RETIRED], {}, {}, "unavailable"),
        ([RETIRED, {}], {}, {}, None),
        ([RETIRED, {"blocked": True}], {}, {}, "denied"),
        ([{}, {"blocked": True}], {}, {}, None),
        ([RETIRED, RETIRED], {}, {"blocked": True}, "denied"),
        ([RETIRED, RETIRED], {"blocked": True}, {}, "unavailable"),
        ([{}, {}], {"status": "failed"}, {}, "unavailable"),
    ],
)
def test_a_toolkit_is_closed_if_no_member_can_become_active(
    tools: list[Any], plugin: Any, toolkit: Any, answer: str | None
) -> None:
    stored = building.catalog_of(
        [building.tool(f"p__{number}", **fields) for number, fields in enumerate(tools)],
        plugins=[catalog.Plugin(name="p", **plugin)],
        toolkits=[building.toolkit("kit", "p__0 p__1", **toolkit)],
    )
    resolved_budget = resolved(stored, allowed="kit")
    target = targets.find(resolved_budget, "kit")
    assert target is not None
    assert targets.closed_state(resolved_budget.context, target) == answer


@pytest.mark.parametrize(("name", "blocked"), [("p__0", "tool"), ("p", "plugin")])
def test_a_blocked_tool_or_plugin_is_denied_even_if_unavailable(name: str, blocked: str) -> None:
    stored = building.catalog_of(
        [building.tool("p__0", retired=True, blocked=blocked == "tool")],
        plugins=[catalog.Plugin(name="p", blocked=blocked == "plugin")],
    )
    resolved_budget = resolved(stored, loadout="minimal")
    target = targets.find(resolved_budget, name)
    assert target is not None
    assert targets.closed_state(resolved_budget.context, target) == "denied"


def test_the_name_to_load_is_that_of_the_toolkit_or_tool() -> None:
    resolved_budget = resolved(allowed="dev", loadout="minimal")
    names = {
        decision.tool: targets.name_to_load(resolved_budget, decision)
        for decision in resolved_budget.discoverable()
    }
    assert names == {
        "calc": "dev",
        "docker": "docker",
        "docker__ps": "docker__ps",
        "docker__rm": "docker__rm",
    }


def test_only_loadable_names_are_listed_or_suggested() -> None:
    denied = resolved(allowed="dev empty", switches={"dev": False})
    assert list(targets.loadable(denied)) == []
    assert targets.nearest(denied, "dev") == ()
    assert targets.nearest(resolved(allowed="dev"), "DEVS") == ("dev",)
    assert targets.nearest(resolved(allowed="dev"), "dockers") == ()
    assert targets.nearest(resolved(loadout="minimal"), "dockers")[0] == "docker"
    assert targets.nearest(resolved(loadout="minimal"), "git__log") == ()


def test_a_target_is_loaded_only_by_its_own_kind() -> None:
    context = resolution.build_context(
        building.snapshot(
            STORED,
            building.agent(allowed="dev"),
            session=building.session("dev", tools="calc", plugins="docker"),
        )
    )
    kinds = [
        ("toolkit", "dev"),
        ("tool", "calc"),
        ("plugin", "docker"),
        ("tool", "docker"),
        ("plugin", "calc"),
    ]
    has = [
        targets.is_loaded(context, targets.Target(kind=kind, name=name, tools=(), is_allowed=True))  # type: ignore[arg-type]
        for kind, name in kinds
    ]
    assert has == [True, True, True, False, False]
