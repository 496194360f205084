"""The built-in plugins at work where a server has them: in the registry, with its threads and its own runtime."""

from __future__ import annotations

import importlib

import pytest

import toolbelt
from tests.plugins.builtin.self_evolution import repositories
from toolbelt.plugins import builtin

CALL = toolbelt.CallContext(agent="ada", session="s-1", active_tools={"think": ("think__think",)})


@pytest.fixture
def registry(tmp_path):
    repository = repositories.Repository(tmp_path / "repository")
    repository.begin()
    (tmp_path / "root").mkdir()
    configs = {
        "files": {"root": str(tmp_path / "root")},
        "self_evolution": {"repository": str(repository.path)},
    }
    made = toolbelt.ToolPluginRegistry()
    for name in ("think", "toolDiscovery", "files", "self_evolution"):
        module, class_name = builtin.CLASSES[name]
        made.register(getattr(importlib.import_module(module), class_name)(), config=configs.get(name))
    made.initialize_sync()
    yield made
    made.shutdown_sync()


def test_their_tools_are_called(registry) -> None:
    def call(tool: str, **arguments: object) -> dict[str, object]:
        found = registry.execute_sync(tool, arguments, call=CALL)
        assert isinstance(found, dict)
        return found

    assert call("think__think", thought="Two logs disagree.")["acknowledged"] is True
    assert call("toolDiscovery__capability_list")["tool_count"] == 1
    assert call("files__write", path="a/b.txt", content="Hello\n")["created"] is True
    assert call("files__read", path="a/b.txt")["content"] == "Hello\n"
    patch = {"path": "app/main.py", "old": "'Hello'", "new": "'Hello, world'"}
    call("evolve__patch_files", branch="evolve/greet", message="Greet the world", patches=[patch])
    assert call("evolve__check_deploy", ref="evolve/greet")["ahead"] == 1


def test_one_without_its_configuration_fails_in_a_sentence_and_stops_no_other() -> None:
    made = toolbelt.ToolPluginRegistry()
    for name in ("files", "think"):
        module, class_name = builtin.CLASSES[name]
        made.register(getattr(importlib.import_module(module), class_name)())
    made.initialize_sync()
    files, think = made.list_plugins()
    assert "root: Field required" in files.error
    assert think.error == ""
    made.shutdown_sync()


def test_their_toolkits_have_the_keys_that_configurations_name(registry) -> None:
    found = {toolkit.key for plugin in registry.list_plugins() for toolkit in plugin.toolkits}
    assert found == {"thinking", "discovery", "files_read", "files_write", "self_evolution_toolkit"}
