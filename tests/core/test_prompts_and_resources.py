"""Prompts, resources and templates are granted like tools, but are not among an agent's tools."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core import building
from toolbelt.core import (
    agents,
    budgets,
    calls,
    catalog,
    dispatch,
    inventory,
    loading,
    resolution,
    risks,
    search,
    surface,
    tool_versions,
)

KINDS = [kind for kind in catalog.KINDS if kind != "tool"]


def stored(kind: catalog.Kind = "prompt", **fields: Any) -> catalog.Catalog:
    return building.catalog_of(
        [
            building.tool("kb__find", description="Find notes."),
            building.tool("kb__prompt_sum", kind=kind, description="Sum notes up.", tokens=900, **fields),
        ],
        toolkits=[building.toolkit("notes", "kb__find kb__prompt_sum", policy="Use {active_tools}.")],
        loadouts=[catalog.Loadout(name="finds", discoverable=("kb*",))],
    )


def resolved(agent: agents.Agent, found: catalog.Catalog) -> budgets.Resolution:
    return budgets.resolve(resolution.Snapshot(catalog=found, agent=agent))


@pytest.mark.parametrize("kind", KINDS)
def test_a_switch_grants_it_beside_the_tools_and_it_takes_no_room(kind: catalog.Kind) -> None:
    agent = building.agent(switches={"notes": True}, budget=agents.Budget(max_tools=1, max_tokens=10))
    found = resolved(agent, stored(kind))

    assert list(found.active) == ["kb__find"]
    assert (found.spent.tools, found.spent.tokens) == (1, 0)
    assert not found.spent.is_exceeded
    assert found.non_tools["kb__prompt_sum"].code == "switch-on"
    assert [one.key for one in found.non_tools_of(kind)] == ["kb__prompt_sum"]
    assert found.decision("kb__prompt_sum").state == "active"


@pytest.mark.parametrize(
    ("agent", "fields"),
    [
        (building.agent(), {}),
        (building.agent(switches={"notes": False}, overrides={"kb__prompt_sum": True}), {}),
        (building.agent(switches={"notes": True}, overrides={"kb__prompt_sum": False}), {}),
        (building.agent(switches={"notes": True}), {"blocked": True}),
        (building.agent(switches={"notes": True}), {"seen": False}),
        (building.agent(switches={"notes": True}), {"retired": True}),
        (building.agent(switches={"notes": True}), {"approved": "sha256:of something else"}),
    ],
)
def test_whatever_denies_a_tool_denies_it(agent: agents.Agent, fields: dict[str, Any]) -> None:
    found = resolved(agent, stored(**fields))

    assert found.non_tools_of("prompt") == ()
    assert found.decision("kb__prompt_sum").state != "active"


def test_a_surface_does_not_hold_it() -> None:
    agent = building.agent(switches={"notes": True})
    answer = surface.build(resolution.Snapshot(catalog=stored(), agent=agent))

    assert answer.document()["active_tools"] == ["kb__find"]
    assert [tool.name for tool in answer.tools] == ["kb__find"]
    assert "kb__prompt_sum" not in str(answer.document())
    assert "\nUse kb__find.\n" in answer.policy.text


def test_an_inventory_says_the_same_as_a_resolution() -> None:
    agent = building.agent(switches={"notes": True}, tools="kb__prompt_sum")
    found, taken = resolved(agent, stored()), inventory.take(stored(), agent)

    assert taken.active == found.active.keys()
    assert taken.non_tools == found.non_tools.keys() == {"kb__prompt_sum"}
    assert taken.spent == found.spent


def test_it_is_not_discoverable_and_cannot_be_searched_or_loaded_by_name() -> None:
    agent = building.agent(loadout="finds")
    found = resolved(agent, stored())

    assert [decision.tool for decision in found.discoverable()] == ["kb__find"]
    assert search.index(stored()).keys == ["kb__find"]
    snapshot = resolution.Snapshot(catalog=stored(), agent=agent)
    assert loading.load(snapshot, "kb__prompt_sum").status == "unknown"


def test_what_alone_could_be_discovered_brings_no_tools_to_discover_it() -> None:
    found = building.catalog_of(
        [building.tool("kb__prompt_sum", kind="prompt")],
        loadouts=[catalog.Loadout(name="finds", discoverable=("kb*",))],
    )
    answer = resolved(building.agent(loadout="finds"), found)

    assert not answer.has_discoverable()
    assert not surface.may_load(answer)


def test_loading_a_toolkit_grants_it_and_the_list_of_toolkits_does_not_name_it() -> None:
    agent = building.agent(allowed="notes", initial="notes")
    snapshot = resolution.Snapshot(catalog=stored(), agent=agent)

    assert [one.key for one in budgets.resolve(snapshot).non_tools_of("prompt")] == ["kb__prompt_sum"]
    assert loading.list_toolkits(snapshot)["toolkits"][0]["tool_names"] == ["kb__find"]


def test_a_call_of_it_is_a_call_of_what_is_not_there() -> None:
    agent = building.agent(switches={"notes": True})
    found = resolved(agent, stored())

    for answer in (
        calls.admit(found, "kb__prompt_sum", {}),
        dispatch.admit(found, resolution.Snapshot(catalog=stored(), agent=agent), "kb__prompt_sum", {}),
    ):
        assert isinstance(answer, calls.Refusal)
        assert answer.code == "unknown-tool"


def test_a_discoverable_one_cannot_be_dispatched() -> None:
    agent = building.agent(loadout="finds")
    snapshot = resolution.Snapshot(catalog=stored(), agent=agent)

    answer = dispatch.admit(budgets.resolve(snapshot), snapshot, "kb__prompt_sum", {})

    assert isinstance(answer, calls.Refusal)
    assert answer.code == "unknown-tool"


@pytest.mark.parametrize(
    "change",
    [
        {"title": "Other"},
        {"description": "Other"},
        {"details": "{}"},
        {"upstream_name": "x"},
        {"kind": "resource"},
    ],
)
def test_its_version_covers_all_that_its_server_says_of_it(change: dict[str, Any]) -> None:
    said: dict[str, Any] = {
        "kind": "prompt",
        "title": "T",
        "description": "d",
        "details": '{"arguments":[]}',
        "upstream_name": "n",
    }

    assert tool_versions.version(catalog.Tool(key="p", **said)) != tool_versions.version(
        catalog.Tool(key="p", **said | change)
    )


def test_it_counts_as_read_only() -> None:
    assert risks.of(catalog.Tool(key="p", kind="resource")) == "read-only"
