"""Tests of the plugin contract: the specification's example runs unchanged, and a minimal plugin is short."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

import toolbelt
from tests.plugins import samples
from toolbelt.core import errors
from toolbelt.plugins import contract


@pytest.fixture
def example() -> contract.ToolPlugin:
    module: dict[str, type[contract.ToolPlugin]] = {}
    exec(samples.SEED, module)  # noqa: S102 - the example is text, copied from the specification
    return module["MyToolPlugin"]()


def test_the_specifications_example_runs_unchanged(example, registry):
    registry.register(example, config={"api_key": "k-123"})

    assert [tool.name for tool in registry.to_tool_definitions()] == ["mytool__search"]
    assert registry.resolve_tool("mytool__search") is example
    assert registry.execute_sync("mytool__search", {"query": "belts"}) == {"results": [...]}
    assert example.api_key == "k-123"
    [info] = registry.list_plugins()
    assert (info.name, info.namespace, info.tool_count) == ("my-tool-plugin", "mytool", 1)

    registry.shutdown_sync()
    assert registry.list_plugins()[0].state == "stopped"


def test_the_specifications_example_fails_without_its_secret_and_names_it(example, registry):
    registry.register(example)

    with pytest.raises(errors.ToolbeltError, match="no secret 'api_key' for 'mytool'"):
        registry.execute_sync("mytool__search", {"query": "belts"})
    assert registry.list_plugins()[0].state == "failed"


def test_a_minimal_plugin_has_three_attributes_and_a_plain_function(registry):
    class Minimal(contract.ToolPlugin):
        name = "least"
        namespace = "least"
        tools = (contract.ToolDefinition(name="least__one", description=""),)

        def execute(self, tool_name, args):
            return 1

    registry.register(Minimal())

    assert registry.execute_sync("least__one", {}) == 1


def test_a_plugin_without_execute_cannot_be_instantiated():
    class Unfinished(contract.ToolPlugin):
        name, namespace, tools = "unfinished", "unfinished", ()

    with pytest.raises(TypeError, match="execute"):
        Unfinished()  # type: ignore[abstract]


def test_a_tool_definition_is_frozen_and_accepts_any_object_by_default():
    definition = contract.ToolDefinition(name="kb__all", description="")

    assert definition.input_schema == {"type": "object", "properties": {}}
    with pytest.raises(dataclasses.FrozenInstanceError):
        definition.name = "other"  # type: ignore[misc]


def test_a_code_toolkit_has_no_policy_or_directive_by_default():
    kit = contract.CodeToolkit()

    assert kit.policy(contract.PolicyContext(active_tools=("a",))) is None
    assert kit.directive(contract.DirectiveContext(active_tools=("a",), message="go")) is None


@pytest.mark.parametrize("name", toolbelt.__all__)
def test_every_exported_name_can_be_imported_from_toolbelt(name):
    assert getattr(toolbelt, name).__name__ == name.replace(
        "Loadout", "", name in ("LoadoutBuilder", "LoadoutRegistry")
    )


def test_an_unknown_name_raises_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'ToolPlugins'"):
        toolbelt.ToolPlugins  # noqa: B018


def test_importing_toolbelt_imports_no_submodules():
    program = "import sys, toolbelt; sys.exit(any(name.startswith('toolbelt.') for name in sys.modules))"

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
