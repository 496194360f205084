"""Tests of the built-in plugins in a registry, with its threads and its runtime, as on a server."""

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
    repository.create()
    (tmp_path / "root").mkdir()
    configs = {
        "files": {"root": str(tmp_path / "root")},
        "self_evolution": {"repository": str(repository.path)},
    }
    created = toolbelt.ToolPluginRegistry()
    for name in ("think", "toolDiscovery", "files", "self_evolution"):
        module, class_name = builtin.CLASSES[name]
        created.register(getattr(importlib.import_module(module), class_name)(), config=configs.get(name))
    created.initialize_sync()
    yield created
    created.shutdown_sync()


def test_tools_of_built_in_plugins_can_be_called(registry) -> None:
    def call(tool: str, **arguments: object) -> dict[str, object]:
        result = registry.execute_sync(tool, arguments, call=CALL)
        assert isinstance(result, dict)
        return result

    assert call("think__think", thought="Two logs disagree.")["acknowledged"] is True
    assert call("toolDiscovery__capability_list")["tool_count"] == 1
    assert call("files__write", path="a/b.txt", content="Hello\n")["created"] is True
    assert call("files__read", path="a/b.txt")["content"] == "Hello\n"
    patch = {"path": "app/main.py", "old": "'Hello'", "new": "'Hello, world'"}
    call("evolve__patch_files", branch="evolve/greet", message="Greet the world", patches=[patch])
    assert call("evolve__check_deploy", ref="evolve/greet")["ahead"] == 1


def test_a_plugin_without_its_configuration_fails_without_stopping_others() -> None:
    registry = toolbelt.ToolPluginRegistry()
    for name in ("files", "think"):
        module, class_name = builtin.CLASSES[name]
        registry.register(getattr(importlib.import_module(module), class_name)())
    registry.initialize_sync()
    files, think = registry.list_plugins()
    assert "root: Field required" in files.error
    assert think.error == ""
    registry.shutdown_sync()


def test_toolkits_have_their_documented_keys(registry) -> None:
    keys = {toolkit.key for plugin in registry.list_plugins() for toolkit in plugin.toolkits}
    assert keys == {"thinking", "discovery", "files_read", "files_write", "self_evolution_toolkit"}
