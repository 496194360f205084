"""What a name to load means."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core import building
from toolbelt.core import agents, budgets, catalog, resolution, targets

STORED = building.catalog_of(
    ["docker__ps", "docker__rm", "calc", building.tool("git__log", blocked=True), "docker"],
    toolkits={"dev": "calc ghost", "empty": ""},
)


def resolved(stored: catalog.Catalog = STORED, *, session: Any = None, **fields: Any) -> budgets.Resolution:
    return budgets.resolve(
        building.snapshot(stored, building.agent(**fields), session=session or building.session())
    )


def test_a_toolkit_is_meant_by_its_key_and_allowed_by_the_agents_list() -> None:
    assert targets.find(resolved(allowed="dev"), "dev") == targets.Target(
        kind="toolkit", name="dev", tools=("calc",), is_allowed=True
    )
    assert targets.find(resolved(), "dev") == targets.Target(
        kind="toolkit", name="dev", tools=("calc",), is_allowed=False
    )


@pytest.mark.parametrize(("name", "kind"), [("calc", "tool"), ("git", "plugin"), ("docker__ps", "tool")])
def test_a_tool_and_a_plugin_may_be_asked_for_where_a_pattern_matches(name: str, kind: str) -> None:
    found = targets.find(resolved(loadout="minimal"), name)
    assert found is not None
    assert (found.kind, found.is_allowed) == (kind, True)
    refused = targets.find(resolved(allowed="dev"), name)
    assert refused is not None
    assert not refused.is_allowed


@pytest.mark.parametrize("name", ["nothing", "Dev", "CALC", "ghost", ""])
def test_a_name_that_nothing_has_means_nothing(name: str) -> None:
    assert targets.find(resolved(loadout="minimal", allowed="dev"), name) is None


def test_of_things_that_share_a_name_the_first_that_may_be_asked_for_is_meant() -> None:
    one_docker = catalog.Loadout(name="x", discoverable=("docker__ps",))
    stored = building.catalog_of(STORED.tools.values(), loadouts=[one_docker])
    both = targets.find(resolved(loadout="minimal"), "docker")
    plugin = targets.find(resolved(stored, loadout="x"), "docker")
    none = targets.find(resolved(), "docker")
    assert [found and found.kind for found in (both, plugin, none)] == ["tool", "plugin", "tool"]
    assert plugin is not None
    assert plugin.tools == ("docker__ps",)


def test_of_things_that_share_a_name_the_one_that_is_held_is_meant_to_be_unloaded() -> None:
    held = resolved(loadout="minimal", session=building.session(plugins="docker"))
    found = targets.find(held, "docker", held=True)
    assert found is not None
    assert found.kind == "plugin"


def test_what_the_budget_deferred_may_be_asked_for() -> None:
    stored = building.catalog_of([building.tool("web__get", default_on=True)])
    found = resolved(stored, budget=agents.Budget(max_tools=0, on_exceed="defer"))
    for name in ("web__get", "web"):
        target = targets.find(found, name)
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
def test_what_could_bring_nothing_is_closed(fields: Any, name: str, answer: str | None) -> None:
    found = resolved(allowed="dev empty", loadout="minimal", **fields)
    target = targets.find(found, name)
    assert target is not None
    assert targets.closed_state(found.context, target) == answer


OUT = {"retired": True}


@pytest.mark.parametrize(
    ("tools", "plugin", "toolkit", "answer"),
    [
        ([OUT, OUT], {}, {}, "unavailable"),
        ([OUT, {}], {}, {}, None),
        ([OUT, {"blocked": True}], {}, {}, "denied"),
        ([{}, {"blocked": True}], {}, {}, None),
        ([OUT, OUT], {}, {"blocked": True}, "denied"),
        ([OUT, OUT], {"blocked": True}, {}, "unavailable"),
        ([{}, {}], {"status": "failed"}, {}, "unavailable"),
    ],
)
def test_a_toolkit_is_closed_where_no_member_could_become_active(
    tools: list[Any], plugin: Any, toolkit: Any, answer: str | None
) -> None:
    stored = building.catalog_of(
        [building.tool(f"p__{number}", **fields) for number, fields in enumerate(tools)],
        plugins=[catalog.Plugin(name="p", **plugin)],
        toolkits=[building.toolkit("kit", "p__0 p__1", **toolkit)],
    )
    found = resolved(stored, allowed="kit")
    target = targets.find(found, "kit")
    assert target is not None
    assert targets.closed_state(found.context, target) == answer


@pytest.mark.parametrize(("name", "blocked"), [("p__0", "tool"), ("p", "plugin")])
def test_a_blocked_tool_or_plugin_is_denied_even_where_it_is_unavailable(name: str, blocked: str) -> None:
    stored = building.catalog_of(
        [building.tool("p__0", retired=True, blocked=blocked == "tool")],
        plugins=[catalog.Plugin(name="p", blocked=blocked == "plugin")],
    )
    found = resolved(stored, loadout="minimal")
    target = targets.find(found, name)
    assert target is not None
    assert targets.closed_state(found.context, target) == "denied"


def test_the_name_to_load_is_the_toolkits_or_the_tools_own() -> None:
    found = resolved(allowed="dev", loadout="minimal")
    names = {decision.tool: targets.name_to_load(decision) for decision in found.discoverable()}
    assert names == {
        "calc": "dev",
        "docker": "docker",
        "docker__ps": "docker__ps",
        "docker__rm": "docker__rm",
    }


def test_only_names_that_the_agent_may_load_are_given_away() -> None:
    denied = resolved(allowed="dev empty", switches={"dev": False})
    assert list(targets.loadable(denied)) == []
    assert targets.nearest(denied, "dev") == ()
    assert targets.nearest(resolved(allowed="dev"), "DEVS") == ("dev",)
    assert targets.nearest(resolved(allowed="dev"), "dockers") == ()
    assert targets.nearest(resolved(loadout="minimal"), "dockers")[0] == "docker"
    assert targets.nearest(resolved(loadout="minimal"), "git__log") == ()


def test_what_a_session_has_is_told_by_kind() -> None:
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
