"""Every tool of the demo can be called: over HTTP, and one of each plugin over MCP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from tests import demo_plugins, quickly
from tests.api.conftest import SETUP, Asking
from tests.front.conftest import unhurried as unhurried
from tests.mcp.conftest import NEW, Client, Endpoint
from tests.mcp.conftest import on_their_own as on_their_own
from toolbelt.control.config import belts
from toolbelt.control.people import tokens
from toolbelt.control.servers import plugins as configured
from toolbelt.core import catalog, schema
from toolbelt.demo import plugins as simulated
from toolbelt.runtime import plugins, prepared_answers, surfaces
from toolbelt.store import snapshots

READING = ("evolve__read_file", {"path": "README.md"})
# The tool to call of each plugin that really runs: one is enough here.
REAL = {"self_evolution": READING[0], "memory": "memory__list"}
EVOLVER = {"key": "evolver", "tools_config": {"self_evolution_toolkit": True}}
# What a pattern asks for.
FITTING = {"issue_key": "AB-1", "epic_key": "AB-1", "project_key": "AB", "path": "/user"}
SEARCH_ID = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def demo(
    transactional_db: None, settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[catalog.Catalog]:
    """Load the demo and what runs its tools, with an agent that has every tool that may be on."""
    plugins.stop()
    demo_plugins.use(settings, monkeypatch, tmp_path)
    settings.TOOLBELT_API_PER_MINUTE = 0

    def store() -> None:
        call_command("loaddata", "demo", verbosity=0)
        belts.import_(
            SETUP, {"agents": [{"key": "caller", "tools": list(snapshots.catalog().tools)}, EVOLVER]}
        )

    quickly.stored("the demo acts", store)
    yield snapshots.catalog()
    plugins.stop()
    snapshots.forget()


def arguments(tool: catalog.Tool) -> dict[str, Any]:
    """Return arguments that the tool's schema requires."""
    if tool.key == READING[0]:
        return READING[1]
    whole = json.loads(tool.input_schema)
    properties = whole.get("properties", {})
    made = {name: simulated.sample(properties[name], whole, name) for name in whole.get("required", ())}
    for name in made:
        for ending, value in FITTING.items():
            if name.endswith(ending) and "pattern" in properties[name]:
                made[name] = value
    return made | ({"searchId": SEARCH_ID} if "searchId" in made else {})


@pytest.mark.slow
def test_every_tool_of_the_demo_answers_over_http_and_one_of_each_plugin_over_mcp(
    demo: catalog.Catalog,
) -> None:
    active = [demo.tools[tool.name] for tool in surfaces.ask("caller").tools if tool.name in demo.tools]
    asking = Asking(tokens.issue(SETUP, agent="caller").text)
    called: dict[str, catalog.Tool] = {}
    for tool in active:
        if REAL.get(tool.plugin, tool.key) != tool.key:
            continue
        answer = asking.post("/agents/caller/calls", {"tool": tool.key, "arguments": arguments(tool)}).json()
        assert not answer["is_error"], (tool.key, answer)
        called.setdefault(tool.plugin, tool)
        if tool.output_schema:
            assert schema.violations(tool.output_schema, answer["content"]) == ()
        elif tool.plugin not in REAL:
            assert answer["content"]["result"] == f"simulated: {tool.key} did not run"
    running = {name for name, plugin in demo.plugins.items() if plugin.status == "ready"}
    assert called.keys() == running

    endpoint = Endpoint(prepared_answers.answers())
    client = Client(
        endpoint=endpoint,
        token=tokens.issue(SETUP, agent="caller").text,
        version=NEW,
        path="/mcp/caller",
    )
    listed = set(client.names())
    assert {tool.key for tool in active} <= listed
    for tool in called.values():
        result = client.call(tool.key, arguments(tool)).result
        assert result["isError"] is False, (tool.key, result)


def test_what_runs_the_demo_is_what_is_stored_of_it(demo: catalog.Catalog) -> None:
    synced = configured.sync(SETUP, plugins.live())
    assert (synced.created, synced.changed, synced.problems) == ((), (), ())
    assert [plugin.name for plugin in plugins.live() if plugin.problems or plugin.error] == []


def test_one_switch_turns_on_the_tools_policy_and_directive_of_the_repository(demo: catalog.Catalog) -> None:
    off = surfaces.ask("assistant")
    assert "You cannot read or change your own repository." in off.policy.text
    on = surfaces.ask("evolver", message="fix your code")
    assert {tool.name for tool in on.tools} >= set(demo.tools_of_plugin["self_evolution"])
    assert "You can read the repository you run from." in on.policy.text
    assert on.directive is not None
    assert set(on.directive.active_tools) == set(demo.tools_of_plugin["self_evolution"])


def test_the_simulated_plugins_are_not_loaded_in_production(
    demo: catalog.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugins.stop()
    monkeypatch.setenv("TOOLBELT_ENV", "production")
    failed = {plugin.name: plugin.error for plugin in plugins.live() if plugin.state == "failed"}
    assert len(failed) == len(simulated.plugins())
    assert "simulated" in failed["toolbelt.demo.plugins:fs"]
