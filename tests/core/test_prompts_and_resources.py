"""Tests that prompts, resources and templates are granted like tools, but are not among an agent's tools."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core import building
from toolbelt.core import admitting, agents, catalog, dispatch, loading, risks, surface, tool_versions
from toolbelt.core.rules import budgets, inventory, resolution
from toolbelt.core.search import current

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


def resolved(agent: agents.Agent, catalog_: catalog.Catalog) -> budgets.Resolution:
    return budgets.resolve(resolution.Snapshot(catalog=catalog_, agent=agent))


@pytest.mark.parametrize("kind", KINDS)
def test_a_switch_grants_a_prompt_or_resource_outside_the_budget(kind: catalog.Kind) -> None:
    agent = building.agent(switches={"notes": True}, budget=agents.Budget(max_tools=1, max_tokens=10))
    resolved_agent = resolved(agent, stored(kind))

    assert list(resolved_agent.active) == ["kb__find"]
    assert (resolved_agent.spent.tools, resolved_agent.spent.tokens) == (1, 0)
    assert not resolved_agent.spent.is_exceeded
    assert resolved_agent.non_tools["kb__prompt_sum"].code == "switch-on"
    assert [prompt.key for prompt in resolved_agent.non_tools_of(kind)] == ["kb__prompt_sum"]
    assert resolved_agent.decision("kb__prompt_sum").state == "active"


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
def test_a_prompt_is_denied_by_the_same_rules_as_a_tool(agent: agents.Agent, fields: dict[str, Any]) -> None:
    resolved_agent = resolved(agent, stored(**fields))

    assert resolved_agent.non_tools_of("prompt") == ()
    assert resolved_agent.decision("kb__prompt_sum").state != "active"


def test_a_surface_does_not_contain_prompts() -> None:
    agent = building.agent(switches={"notes": True})
    answer = surface.build(resolution.Snapshot(catalog=stored(), agent=agent))

    assert answer.document()["active_tools"] == ["kb__find"]
    assert [tool.name for tool in answer.tools] == ["kb__find"]
    assert "kb__prompt_sum" not in str(answer.document())
    assert "\nUse kb__find.\n" in answer.policy.text


def test_an_inventory_and_a_resolution_have_the_same_prompts() -> None:
    agent = building.agent(switches={"notes": True}, tools="kb__prompt_sum")
    result, counted = resolved(agent, stored()), inventory.take(stored(), agent)

    assert counted.active == result.active.keys()
    assert counted.non_tools == result.non_tools.keys() == {"kb__prompt_sum"}
    assert counted.spent == result.spent


def test_a_prompt_is_not_discoverable_searchable_or_loadable_by_name() -> None:
    agent = building.agent(loadout="finds")
    resolved_agent = resolved(agent, stored())

    assert [decision.tool for decision in resolved_agent.discoverable()] == ["kb__find"]
    assert current.of(stored()).keys == ["kb__find"]
    snapshot = resolution.Snapshot(catalog=stored(), agent=agent)
    assert loading.load(snapshot, "kb__prompt_sum").status == "unknown"


def test_a_matching_prompt_alone_does_not_enable_the_meta_tools() -> None:
    resolved_agent = building.catalog_of(
        [building.tool("kb__prompt_sum", kind="prompt")],
        loadouts=[catalog.Loadout(name="finds", discoverable=("kb*",))],
    )
    answer = resolved(building.agent(loadout="finds"), resolved_agent)

    assert not answer.has_discoverable()
    assert not surface.may_load(answer)


def test_loading_a_toolkit_grants_its_prompts_but_does_not_list_them() -> None:
    agent = building.agent(allowed="notes", initial="notes")
    snapshot = resolution.Snapshot(catalog=stored(), agent=agent)

    assert [prompt.key for prompt in budgets.resolve(snapshot).non_tools_of("prompt")] == ["kb__prompt_sum"]
    assert loading.list_toolkits(snapshot)["toolkits"][0]["tool_names"] == ["kb__find"]


def test_calling_a_prompt_as_a_tool_is_refused_as_unknown() -> None:
    agent = building.agent(switches={"notes": True})
    resolved_agent = resolved(agent, stored())

    for answer in (
        admitting.admit(resolved_agent, "kb__prompt_sum", {}),
        dispatch.admit(
            resolved_agent, resolution.Snapshot(catalog=stored(), agent=agent), "kb__prompt_sum", {}
        ),
    ):
        assert isinstance(answer, admitting.Refusal)
        assert answer.code == "unknown-tool"


def test_a_prompt_that_matches_a_pattern_cannot_be_dispatched() -> None:
    agent = building.agent(loadout="finds")
    snapshot = resolution.Snapshot(catalog=stored(), agent=agent)

    answer = dispatch.admit(budgets.resolve(snapshot), snapshot, "kb__prompt_sum", {})

    assert isinstance(answer, admitting.Refusal)
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
def test_a_prompts_version_depends_on_every_field_of_its_server(change: dict[str, Any]) -> None:
    upstream_fields: dict[str, Any] = {
        "kind": "prompt",
        "title": "T",
        "description": "d",
        "details": '{"arguments":[]}',
        "upstream_name": "n",
    }

    assert tool_versions.version(catalog.Tool(key="p", **upstream_fields)) != tool_versions.version(
        catalog.Tool(key="p", **upstream_fields | change)
    )


def test_a_resource_counts_as_read_only() -> None:
    assert risks.of(catalog.Tool(key="p", kind="resource")) == "read-only"


FOR_APPS = '{"_meta":{"ui":{"visibility":["app"]}}}'


@pytest.mark.parametrize(
    "fields",
    [
        {"details": FOR_APPS},
        # A version that models would have awaits review.
        {"details": '{"_meta":{}}', "approved_version": f'{{"details":{FOR_APPS}}}'},
    ],
)
def test_a_tool_for_apps_only_is_granted_but_costs_no_budget_and_is_not_found(fields: dict[str, Any]) -> None:
    agent = building.agent(switches={"notes": True}, budget=agents.Budget(max_tools=1, max_tokens=10))
    catalog_ = stored("tool", **fields)
    resolved_agent = resolved(agent, catalog_)

    assert list(resolved_agent.active) == ["kb__find"]
    assert resolved_agent.spent.tools == 1
    assert [tool.key for tool in resolved_agent.non_tools_of("tool")] == ["kb__prompt_sum"]
    assert current.of(catalog_).keys == ["kb__find"]
    refused = admitting.admit(resolved_agent, "kb__prompt_sum", {})
    assert isinstance(refused, admitting.Refusal)
    assert refused.code == "unknown-tool"
    assert isinstance(
        admitting.admit(resolved_agent, "kb__prompt_sum", {}, by_host=True), admitting.Admission
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_host_cannot_call_what_is_no_tool(kind: catalog.Kind) -> None:
    agent = building.agent(switches={"notes": True})
    refused = admitting.admit(resolved(agent, stored(kind)), "kb__prompt_sum", {}, by_host=True)
    assert isinstance(refused, admitting.Refusal)
