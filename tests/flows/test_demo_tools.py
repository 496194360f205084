"""Tests that every tool of the demo can be called over HTTP, and one tool of each plugin over MCP."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import demo_plugins, fast_fixtures
from tests.api.conftest import SETUP, Asking
from tests.front.conftest import unhurried as unhurried
from tests.mcp.conftest import NEW, Client, Endpoint
from tests.mcp.conftest import on_their_own as on_their_own
from toolbelt.control.config import belts
from toolbelt.control.people import tokens
from toolbelt.control.reports import queries
from toolbelt.control.servers import plugins as configured
from toolbelt.core import catalog, schema
from toolbelt.demo import plugins as simulated
from toolbelt.plugins import builtin
from toolbelt.runtime import plugins, surfaces
from toolbelt.runtime.surfaces import prepared_answers
from toolbelt.store import snapshots

PAGE = b"<title>Greetings</title><p>Hello from a page.</p>"
EVOLVER = {"key": "evolver", "tools_config": {"self_evolution_toolkit": True}}
# Values that match the patterns of the schemas, by the ending of the argument's name.
PATTERN_VALUES = {"issue_key": "AB-1", "epic_key": "AB-1", "project_key": "AB", "path": "/user"}
SEARCH_ID = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def demo(
    transactional_db: None, settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[catalog.Catalog]:
    """Load the demo and the plugins that run its tools, with an agent that has every tool."""
    plugins.stop()
    demo_plugins.use(settings, monkeypatch, tmp_path)
    settings.TOOLBELT_API_PER_MINUTE = 0
    # The test serves the fetched page itself.
    settings.TOOLBELT_ALLOW_PRIVATE_HTTP = True

    def store() -> None:
        fast_fixtures.demo()
        belts.import_(
            SETUP, {"agents": [{"key": "caller", "tools": list(snapshots.catalog().tools)}, EVOLVER]}
        )

    fast_fixtures.stored("the demo acts", store)
    yield snapshots.catalog()
    plugins.stop()
    snapshots.forget()


@pytest.fixture
def page() -> Iterator[str]:
    """Serve a page on this machine, and yield its URL."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(PAGE)))
            self.end_headers()
            self.wfile.write(PAGE)

        def log_message(self, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def arguments(tool: catalog.Tool) -> dict[str, Any]:
    """Return arguments that the tool's schema requires."""
    root = json.loads(tool.input_schema)
    properties = root.get("properties", {})
    values = {name: simulated.sample(properties[name], root, name) for name in root.get("required", ())}
    for name in values:
        for ending, value in PATTERN_VALUES.items():
            if name.endswith(ending) and "pattern" in properties[name]:
                values[name] = value
    return values | ({"searchId": SEARCH_ID} if "searchId" in values else {})


def call(api_client: Asking, tool: str, **arguments: Any) -> Any:
    """Call a tool over HTTP, and return its content. Fail if it is an error."""
    answer = api_client.post("/agents/caller/calls", {"tool": tool, "arguments": arguments}).json()
    assert not answer["is_error"], (tool, answer)
    return answer["content"]


@pytest.mark.slow
def test_simulated_demo_tools_can_be_called_over_http_and_mcp(demo: catalog.Catalog, page: str) -> None:
    active = [demo.tools[tool.name] for tool in surfaces.ask("caller").tools if tool.name in demo.tools]
    api_client = Asking(tokens.issue(SETUP, agent="caller").text)
    called: dict[str, tuple[str, dict[str, Any]]] = {}
    for tool in active:
        if tool.plugin in builtin.CLASSES or demo.runner(tool) == "client":
            continue
        content = call(api_client, tool.key, **arguments(tool))
        called.setdefault(tool.plugin, (tool.key, arguments(tool)))
        if tool.output_schema:
            assert schema.violations(tool.output_schema, content) == ()
        else:
            assert content["result"] == f"simulated: {tool.key} did not run"
    called |= {
        "self_evolution": ("evolve__read_file", {"path": "README.md"}),
        "files": ("files__list", {}),
        "memory": ("memory__list", {}),
        "scheduler": ("scheduler__list", {}),
        "web": ("web__fetch", {"url": page}),
        "think": ("think__think", {"thought": "Nothing contradicts it."}),
        "toolDiscovery": ("toolDiscovery__capability_list", {}),
    }
    running = {
        name
        for name, plugin in demo.plugins.items()
        if plugin.status == "ready" and plugin.runner != "client"
    }
    assert called.keys() == running

    endpoint = Endpoint(prepared_answers.answers())
    client = Client(
        endpoint=endpoint,
        token=tokens.issue(SETUP, agent="caller").text,
        version=NEW,
        path="/mcp/caller",
    )
    listed = set(client.names())
    assert {tool.key for tool in active if demo.runner(tool) != "client"} <= listed
    for key, values in called.values():
        result = client.call(key, values).result
        assert result["isError"] is False, (key, result)


def test_every_built_in_tool_of_the_demo_works(demo: catalog.Catalog, page: str) -> None:
    api_client = Asking(tokens.issue(SETUP, agent="caller").text)
    called: set[str] = set()

    def do(tool: str, **arguments: Any) -> Any:
        called.add(tool)
        return call(api_client, tool, **arguments)

    greeting = {"path": "greeting.txt", "content": "Hello, world\n"}
    branch = {"branch": "evolve/greet", "message": "Greet the world"}
    assert "greeter.py" in str(do("evolve__list_files"))
    assert "Ideas" in do("evolve__read_file", path="notes/ideas.md")["content"]
    assert "greeter.py" in str(do("evolve__search_code", query="def "))
    pushed = do("evolve__commit_push", **branch, files=[greeting])
    patch = {"path": "greeting.txt", "old": "world", "new": "everybody"}
    patched = do("evolve__patch_files", **branch, head=pushed["commit"], patches=[patch])
    assert "Hello, everybody" in str(do("evolve__compare_commits", base="main", head="evolve/greet"))
    do("evolve__revert_commit", branch="evolve/greet", commit=patched["commit"], reason="It says world.")
    assert do("evolve__check_deploy", ref="evolve/greet")

    do("files__write", **greeting)
    do("files__patch", path="greeting.txt", old="world", new="you")
    assert do("files__read", path="greeting.txt")["content"] == "Hello, you\n"
    assert "greeting.txt" in str(do("files__list"))
    assert "greeting.txt" in str(do("files__search", query="Hello, you"))

    note = do("memory__remember", text="Ada reads mail in the morning.")["id"]
    assert do("memory__search", query="mail")["notes"][0]["id"] == note
    assert do("memory__list")["total"] == 1
    assert do("memory__forget", id=note)["forgotten"]

    job = do("scheduler__schedule", when="in 10 minutes", note="Ask whether it is done.")["id"]
    assert [schedule["id"] for schedule in do("scheduler__list")["schedules"]] == [job]
    assert do("scheduler__cancel", id=job)["cancelled"]

    assert do("web__fetch", url=page)["title"] == "Greetings"
    assert do("think__think", thought="It is done.")["acknowledged"]
    assert do("toolDiscovery__capability_list", plugin="files")["tool_count"] == 5
    assert called == {key for plugin in builtin.CLASSES for key in demo.tools_of_plugin[plugin]}


def test_every_built_in_toolkit_is_granted_to_an_agent_of_the_demo(demo: catalog.Catalog) -> None:
    agents = [summary for summary in queries.summaries() if summary.agent.key not in ("caller", "evolver")]
    for plugin in builtin.CLASSES:
        for key in demo.tools_of_plugin[plugin]:
            assert [summary for summary in agents if key in summary.access.active], key
            assert [
                toolkit for toolkit in demo.toolkits.values() if key in {m.tool for m in toolkit.members}
            ], key


def test_a_built_in_toolkit_adds_no_policy_for_agents_without_it(
    demo: catalog.Catalog,
) -> None:
    """The assistant can schedule, browse and write files with other tools than the built-in ones."""
    sections = {section.toolkit for section in surfaces.ask("assistant").policy.sections}
    assert sections & {kit.key for kit in demo.toolkits.values() if kit.plugin in builtin.CLASSES} == {
        "self_evolution_toolkit"
    }


def test_every_client_tool_of_the_demo_is_admitted_and_reported(demo: catalog.Catalog) -> None:
    api_client = Asking(tokens.issue(SETUP, agent="support-desk").text)
    keys = [tool.name for tool in surfaces.ask("support-desk").tools if tool.name.startswith("helpdesk__")]
    assert keys == ["helpdesk__find_customer", "helpdesk__find_order", "helpdesk__refund_order"]
    for key in keys:
        request = {"tool": key, "arguments": arguments(demo.tools[key])}
        assert api_client.post("/agents/support-desk/calls", request).json()["code"] == "run-by-client"
        (admitted,) = api_client.post("/agents/support-desk/calls/admit", {"calls": [request]}).json()[
            "calls"
        ]
        reported = api_client.post(
            f"/agents/support-desk/calls/{admitted['call_id']}/outcome", {"outcome": "ok", "duration_ms": 5}
        )
        assert reported.status_code == 204, reported.content


def test_the_demos_running_plugins_match_the_stored_ones(demo: catalog.Catalog) -> None:
    synced = configured.sync(SETUP, plugins.live())
    assert (synced.created, synced.changed, synced.problems) == ((), (), ())
    assert [plugin.name for plugin in plugins.live() if plugin.problems or plugin.error] == []


def test_one_switch_enables_the_repositorys_tools_policy_and_directive(demo: catalog.Catalog) -> None:
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
