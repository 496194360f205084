"""Tests that a tool is found by its server's own name only if no other tool of the agent can be meant."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core import building
from toolbelt.core import catalog, names_of_servers
from toolbelt.core.rules import budgets, resolution

STORED = building.catalog_of(
    [
        building.tool("pdf__read", plugin="pdf"),
        building.tool("pdf__save_as", plugin="pdf", upstream_name="save.as"),
        building.tool("web__read", plugin="web"),
        building.tool("web__read_page", plugin="web", upstream_name="page"),
        building.tool("page", plugin=""),
        building.tool("code__run", plugin="code"),
        building.tool("pdf__prompt_read", plugin="pdf", kind="prompt", upstream_name="sum"),
    ],
    plugins=[
        catalog.Plugin(name="pdf", namespace="pdf", upstream='{"url":"https://pdf.example"}'),
        catalog.Plugin(name="web", namespace="web", upstream='{"url":"https://web.example"}'),
        catalog.Plugin(name="code", namespace="code", in_code=True),
    ],
    toolkits=[building.toolkit("reading", "pdf__read web__read")],
)


def key_of(name: str, **fields: Any) -> str:
    agent = building.agent(**fields)
    return names_of_servers.key_of(budgets.resolve(resolution.Snapshot(catalog=STORED, agent=agent)), name)


@pytest.mark.parametrize(("name", "key"), [("read", "pdf__read"), ("save.as", "pdf__save_as")])
def test_a_granted_tool_is_found_by_its_servers_own_name(name: str, key: str) -> None:
    assert key_of(name, overrides={key: True}) == key


def test_a_name_of_two_granted_tools_names_neither() -> None:
    assert key_of("read", overrides={"pdf__read": True, "web__read": True}) == "read"


@pytest.mark.parametrize(
    "fields",
    [
        {"overrides": {"pdf__read": False, "web__read": True}},
        {"overrides": {"web__read": True}, "allowed_toolkits": ("reading",)},
    ],
)
def test_a_denied_or_loadable_tool_with_the_name_keeps_it_from_naming_another(
    fields: dict[str, Any],
) -> None:
    assert key_of("read", **fields) == "read"


def test_the_only_tool_with_the_name_is_found_if_it_is_denied() -> None:
    assert key_of("read", overrides={"pdf__read": False}) == "pdf__read"


@pytest.mark.parametrize("name", ["pdf__read", "run", "sum", "nothing", ""])
def test_other_names_stay_as_they_are(name: str) -> None:
    keys = ("pdf__read", "web__read_page", "code__run", "pdf__prompt_read")
    assert key_of(name, overrides=dict.fromkeys(keys, True)) == name


def test_toolbelts_name_of_a_tool_comes_before_a_servers_own_name() -> None:
    assert key_of("page", overrides={"page": True, "web__read_page": True}) == "page"


def test_the_name_of_a_tool_that_does_not_concern_the_agent_takes_no_tool_from_it() -> None:
    assert key_of("page", overrides={"web__read_page": True}) == "web__read_page"
