"""Tests that the commands for plugins and calls work with the documentation's example plugin."""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError
from django.utils import timezone

from tests import factories
from tests.management.running import run
from tests.plugins import samples
from toolbelt import models
from toolbelt.control import writing
from toolbelt.control.config import belts
from toolbelt.control.servers import running_tools
from toolbelt.runtime import plugins
from toolbelt.store import snapshots

OLIVE = writing.by("olive", via="command")

# The specification's plugin, with a search that returns its query and the length of its secret.
EXAMPLE = samples.SEED.replace('{"results": [...]}', '{"results": [args["query"], len(self.api_key)]}')
PLUGINS_FILE = """
tool_plugins:
  - id: "my-tool-plugin"
    module: "my_tool_plugin"
    class_name: "MyToolPlugin"
    config:
      api_key: "${MY_TOOL_API_KEY}"
"""


@pytest.fixture
def example(db: None, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Install the example in its own directory, list it, and unload it afterwards."""
    (tmp_path / "my_tool_plugin.py").write_text(EXAMPLE)
    (tmp_path / "plugins.yaml").write_text(PLUGINS_FILE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("MY_TOOL_API_KEY", "sesame")
    # Set, so that the module that the test imports is removed afterwards; then deleted, so that it is imported.
    monkeypatch.setitem(sys.modules, "my_tool_plugin", sys)
    del sys.modules["my_tool_plugin"]
    settings.TOOLBELT_PLUGINS_FILE = str(tmp_path / "plugins.yaml")
    plugins.stop()
    yield tmp_path
    plugins.stop()
    snapshots.forget()


def test_the_example_is_synced_granted_and_called(example: Path) -> None:
    out, err, code = run("plugins", "sync")
    assert (out.splitlines()[:2], err, code) == (
        ["created plugin my-tool-plugin", "created tool mytool__search"],
        "",
        0,
    )
    belts.import_(OLIVE, {"agents": [{"key": "ada", "tools": ["mytool__search"]}]})

    out, _, code = run(
        "call", "ada", "mytool__search", '{"query": "x"}', "--session", "s", "--request-id", "r1"
    )

    assert code == 0
    assert json.loads(out) == {"content": {"results": ["x", 6]}, "is_error": False}
    record = models.CallRecord.objects.get()
    assert (record.session, record.request_id, record.outcome) == ("s", "r1", "ok")


def test_a_refused_call_is_printed_and_fails(example: Path) -> None:
    run("plugins", "sync")
    belts.import_(OLIVE, {"agents": [{"key": "ada", "tools": ["mytool__search"]}]})

    out, _, code = run("call", "ada", "mytool__search", "{}")

    assert code == 1
    assert json.loads(out)["code"] == "invalid-arguments"


def test_a_general_refusal_names_the_command_that_explains_it(example: Path) -> None:
    run("plugins", "sync")
    belts.import_(OLIVE, {"agents": [{"key": "ada"}]})

    out, err, code = run("call", "ada", "mytool__search", '{"query": "x"}', "--session", "room 1")

    assert (json.loads(out)["code"], code) == ("unknown-tool", 1)
    assert (
        err
        == "To see which rule decided: .venv/bin/python manage.py why ada mytool__search --session 'room 1'\n"
    )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("ada", "t", "{"), "not JSON"),
        (("adda", "t"), "Did you mean ada"),
        (("ada", "t", "--session", ""), "session"),
    ],
)
def test_an_invalid_call_is_refused_with_the_reason(
    example: Path, args: tuple[str, ...], message: str
) -> None:
    belts.import_(OLIVE, {"agents": [{"key": "ada"}]})

    with pytest.raises(CommandError, match=message):
        run("call", *args)


def test_list_shows_running_and_stored_plugins_and_their_states(example: Path) -> None:
    models.Plugin.objects.create(name="wiki", namespace="wiki")

    def states() -> dict[str, str]:
        lines = run("plugins", "list")[0].splitlines()
        return {line.split()[0]: line for line in lines[1:]}

    assert "not synced" in states()["my-tool-plugin"]
    assert "ready, not running here" in states()["wiki"]
    run("plugins", "sync")
    assert states()["my-tool-plugin"].split()[:4] == ["my-tool-plugin", "mytool", "on", "1"]
    assert run("plugins", "disable", "my-tool-plugin")[0].startswith("my-tool-plugin is off.")
    assert states()["my-tool-plugin"].split()[2] == "off"
    assert run("plugins", "disable", "my-tool-plugin")[0].startswith("my-tool-plugin is already off")
    assert run("plugins", "enable", "my-tool-plugin", "--reason", "again")[0].endswith(
        "my-tool-plugin is on.\n"
    )
    assert run("plugins", "enable", "wiki")[0] == "wiki is on.\n"
    assert models.AuditEntry.objects.filter(reason="again").count() == 1


def test_check_passes_a_valid_plugin_and_reports_a_missing_variable(
    example: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert run("plugins", "check") == ("my-tool-plugin: initialized, 1 tool\nNo problems.\n", "", 0)

    monkeypatch.delenv("MY_TOOL_API_KEY")
    plugins.stop()
    out, err, code = run("plugins", "check")

    assert code == 1
    assert "my-tool-plugin: failed" in out
    assert "MY_TOOL_API_KEY" in err
    assert "plugins.yaml" in err
    # Each problem is printed once, and not logged beside it.
    assert caplog.messages == []
    table, _, why = run("plugins", "list")[0].partition("\n\n")
    assert "MY_TOOL_API_KEY" not in table
    assert why.startswith("my-tool-plugin has failed: tool_plugins[0].config.api_key: The variable")


def test_check_reports_a_namespace_taken_by_a_stored_plugin(example: Path) -> None:
    factories.plugin("wiki", namespace="mytool")

    _, err, code = run("plugins", "check")

    assert code == 1
    assert "plugins.my-tool-plugin.namespace: The namespace 'mytool' is taken by the plugin 'wiki'" in err


def test_a_sync_with_changes_asks_to_restart_the_servers(example: Path) -> None:
    assert "Restart Toolbelt's servers" in run("plugins", "sync")[0]
    assert "Restart" not in run("plugins", "sync")[0]


def test_a_sync_names_the_tools_that_run_only_after_a_restart(example: Path) -> None:
    running_tools.report("server", [])
    out, _, _ = run("plugins", "sync")
    assert "Not running until servers are restarted: mytool__search." in out
    running_tools.report("restarted", ["mytool__search"])
    assert "Not running" not in run("plugins", "sync")[0]


def test_a_call_runs_a_tool_of_this_process_even_if_no_server_runs_it(example: Path) -> None:
    run("plugins", "sync")
    belts.import_(OLIVE, {"agents": [{"key": "ada", "tools": ["mytool__search"]}]})
    running_tools.report("server", [])
    assert "not-running: no running process can run it" in run("why", "ada", "mytool__search")[0]
    out, _, code = run("call", "ada", "mytool__search", '{"query": "x"}')
    assert (json.loads(out)["is_error"], code) == (False, 0)


def test_check_reports_a_failing_plugin_with_its_line(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = PLUGINS_FILE.replace("api_key", "key")
    (example / "plugins.yaml").write_text(text)
    monkeypatch.setenv("MY_TOOL_API_KEY", "sesame")

    _, err, code = run("plugins", "check")

    assert code == 1
    assert "plugins.yaml:3: my-tool-plugin: SecretMissing: There is no secret 'api_key'" in err


def test_an_unknown_plugin_is_reported_with_the_nearest_name(example: Path) -> None:
    run("plugins", "sync")

    with pytest.raises(CommandError, match="Did you mean my-tool-plugin"):
        run("plugins", "enable", "my-tool-plugins")


def test_an_installed_plugin_that_is_not_listed_is_shown_with_instructions(
    example: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = example / "other-1.0.dist-info"
    home.mkdir()
    (home / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (home / "entry_points.txt").write_text("[toolbelt.tool_plugins]\nother = no_such_module:Other\n")

    assert "installed, not listed" in run("plugins", "list")[0]
    with pytest.raises(CommandError, match="- id: other"):
        run("plugins", "enable", "other")


@pytest.mark.django_db
def test_old_calls_are_pruned() -> None:
    for days in (1, 29, 31):
        at = timezone.now() - dt.timedelta(days=days)
        models.CallRecord.objects.create(at=at, agent="ada", tool="t", outcome="ok", duration_ms=1)

    assert run("prune_calls", "--days", "30")[0] == "Deleted 1 call.\n"
    assert models.CallRecord.objects.count() == 2
    with pytest.raises(CommandError, match="0 or more"):
        run("prune_calls", "--days", "-1")
    with pytest.raises(CommandError, match="too large"):
        run("prune_calls", "--days", "9999999")


@pytest.mark.slow
def test_startplugin_creates_a_package_whose_tests_pass(tmp_path: Path) -> None:
    home = tmp_path / "weather"
    run("startplugin", "acme-weather", str(home))

    project = tomllib.loads((home / "pyproject.toml").read_text())
    assert project["project"]["entry-points"]["toolbelt.tool_plugins"] == {
        "acme-weather": "toolbelt_acme_weather:AcmeWeather"
    }
    # Toolbelt is not installed from an index: a package of that name there may be anyone's.
    assert project["project"]["dependencies"] == []
    here = os.pathsep.join([str(home), *filter(None, sys.path)])
    tested = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:django",
            "-p",
            "no:cacheprovider",
            "--rootdir",
            str(home),
        ],
        cwd=home,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": here},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "2 passed" in tested.stdout


@pytest.mark.parametrize("name", ["", "a b", "7up", "-", "load__tools" * 8])
def test_startplugin_refuses_an_invalid_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(CommandError):
        run("startplugin", name, str(tmp_path / "new"))


def test_startplugin_refuses_a_directory_with_files(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")

    with pytest.raises(CommandError, match="already exists"):
        run("startplugin", "weather", str(tmp_path))


def test_startplugin_reports_the_path_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")

    with pytest.raises(CommandError, match=r"Cannot write .*file/weather: Not a directory\.$"):
        run("startplugin", "weather", str(tmp_path / "file" / "weather"))


def test_a_client_plugin_is_created_with_the_agents_that_may_declare_it(db: None) -> None:
    factories.agent("ada")
    create = (
        "plugins",
        "create",
        "shop",
        "--namespace",
        "shop",
        "--declared-by",
        "ada",
        "--reason",
        "New shop",
    )
    assert run(*create)[0] == "shop created. Declare its tools, then review them.\n"
    plugin = snapshots.catalog().plugins["shop"]
    assert (plugin.runner, plugin.namespace, plugin.declared_by) == ("client", "shop", ("ada",))
    assert models.AuditEntry.objects.get().reason == "New shop"
    with pytest.raises(CommandError, match="already exists"):
        run("plugins", "create", "shop")


LATE = """
import toolbelt
class MyToolPlugin(toolbelt.ToolPlugin):
    name, namespace, version, tools = "late", "late", "1", ()
    async def initialize(self, runtime):
        self.tools = (toolbelt.ToolDefinition(name="late__find", description="Find.", input_schema={"type": "object"}),)
    async def execute(self, tool_name, args):
        return {}
    async def shutdown(self):
        pass
"""


def test_tools_known_only_after_initialize_are_reported_by_every_command(example: Path) -> None:
    (example / "my_tool_plugin.py").write_text(LATE)
    expected = "After initialize(), the plugin 'late'"

    _, err, code = run("plugins", "check")
    assert (expected in err, "new: late__find" in err, code) == (True, True, 1)

    _, err, _ = run("plugins", "sync")
    assert expected in err

    out, _, code = run("doctor", "--no-servers", "--json")
    findings = [finding for finding in json.loads(out)["findings"] if finding["code"] == "plugin-tools"]
    assert ([expected in finding["message"] for finding in findings], code) == ([True], 1)
    assert "plugins check" in findings[0]["way_out"]
