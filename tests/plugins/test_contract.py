"""The contract: the seed's own example runs, and little is asked of an author."""

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
def seed() -> contract.ToolPlugin:
    module: dict[str, type[contract.ToolPlugin]] = {}
    exec(samples.SEED, module)  # noqa: S102 - the example is text, as it stands in the seed
    return module["MyToolPlugin"]()


def test_the_seeds_example_runs_as_it_is_written(seed, registry):
    registry.register(seed, config={"api_key": "k-123"})

    assert [tool.name for tool in registry.to_tool_definitions()] == ["mytool__search"]
    assert registry.resolve_tool("mytool__search") is seed
    assert registry.execute_sync("mytool__search", {"query": "belts"}) == {"results": [...]}
    assert seed.api_key == "k-123"
    [info] = registry.list_plugins()
    assert (info.name, info.namespace, info.tool_count) == ("my-tool-plugin", "mytool", 1)

    registry.shutdown_sync()
    assert registry.list_plugins()[0].state == "stopped"


def test_the_seeds_example_without_its_secret_fails_and_says_which(seed, registry):
    registry.register(seed)

    with pytest.raises(errors.ToolbeltError, match="no secret 'api_key' for 'mytool'"):
        registry.execute_sync("mytool__search", {"query": "belts"})
    assert registry.list_plugins()[0].state == "failed"


def test_the_least_plugin_is_three_attributes_and_a_plain_function(registry):
    class Least(contract.ToolPlugin):
        name = "least"
        namespace = "least"
        tools = (contract.ToolDefinition(name="least__one", description=""),)

        def execute(self, tool_name, args):
            return 1

    registry.register(Least())

    assert registry.execute_sync("least__one", {}) == 1


def test_a_plugin_that_cannot_execute_is_none():
    class Unfinished(contract.ToolPlugin):
        name, namespace, tools = "unfinished", "unfinished", ()

    with pytest.raises(TypeError, match="execute"):
        Unfinished()  # type: ignore[abstract]


def test_a_definition_is_frozen_and_takes_any_object_by_default():
    definition = contract.ToolDefinition(name="kb__all", description="")

    assert definition.input_schema == {"type": "object", "properties": {}}
    with pytest.raises(dataclasses.FrozenInstanceError):
        definition.name = "other"  # type: ignore[misc]


def test_a_toolkit_in_code_says_nothing_unless_it_is_taught_to():
    kit = contract.CodeToolkit()

    assert kit.policy(contract.PolicyContext(active_tools=("a",))) is None
    assert kit.directive(contract.DirectiveContext(active_tools=("a",), message="go")) is None


@pytest.mark.parametrize("name", toolbelt.__all__)
def test_everything_that_an_author_needs_comes_from_toolbelt(name):
    assert getattr(toolbelt, name).__name__ == name.replace(
        "Loadout", "", name in ("LoadoutBuilder", "LoadoutRegistry")
    )


def test_toolbelt_has_no_other_names():
    with pytest.raises(AttributeError, match="has no attribute 'ToolPlugins'"):
        toolbelt.ToolPlugins  # noqa: B018


def test_importing_toolbelt_alone_imports_no_plugins():
    check = "import sys, toolbelt; sys.exit(any(name.startswith('toolbelt.') for name in sys.modules))"

    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
