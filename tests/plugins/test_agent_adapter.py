"""Tests that a plugin written for agent-adapter runs without changes."""

from __future__ import annotations

import asyncio
import importlib

import pytest

from tests.plugins import samples
from tests.plugins.test_loading import import_path as import_path
from tests.plugins.test_loading import load, states, write_module
from toolbelt.plugins import contract, loading, local
from toolbelt.plugins import registry as registries

SEED = (
    samples.SEED.replace(
        "from toolbelt import ToolPlugin, RuntimeAPI, ToolDefinition",
        "from agent_adapter_contracts.tool_plugins import ToolPlugin\n"
        "from agent_adapter_contracts.runtime import RuntimeAPI\n"
        "from agent_adapter_contracts.types import ToolDefinition",
    )
    .replace('return {"results": [...]}', 'return {"results": [args["query"]], "key": self.api_key}')
    .replace("pass\n", "self.api_key = None\n")
)
CONTRACTS = {
    "tool_plugins": "import abc\nclass ToolPlugin(abc.ABC): ...",
    "runtime": "class RuntimeAPI: ...",
    "types": """
        import dataclasses
        @dataclasses.dataclass
        class ToolDefinition:
            name: str
            description: str
            input_schema: dict
        """,
}
LISTED = """\
    tool_plugins:
      - id: "my-tool-plugin"
        config:
          api_key: "${MY_TOOL_API_KEY}"
    """


@pytest.fixture
def installed(import_path):
    """Install agent-adapter's contracts and the specification's plugin, in agent-adapter's entry-point group."""
    (import_path / "agent_adapter_contracts").mkdir()
    for name, text in {"__init__": "", **CONTRACTS}.items():
        write_module(import_path / "agent_adapter_contracts", name, text)
    (import_path / "my_tool_plugin.py").write_text(SEED)
    info = import_path / "my_tool-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-tool\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[agent_adapter.tool_plugins]\nmy_tool = my_tool_plugin:MyToolPlugin\n"
    )
    importlib.invalidate_caches()
    return import_path


def test_a_plugin_for_agent_adapter_is_found_initialized_and_called(installed):
    offered = [plugin for plugin in loading.installed() if plugin.name == "my_tool"]
    assert [(plugin.module, plugin.attribute) for plugin in offered] == [("my_tool_plugin", "MyToolPlugin")]

    loaded = load(
        installed,
        LISTED,
        loading.Installed(name="my-tool-plugin", module="my_tool_plugin", attribute="MyToolPlugin"),
    )

    assert loaded.problems == ()
    registry = loaded.registry
    assert [tool.name for tool in registry.to_tool_definitions()] == ["mytool__search"]
    result = registry.execute_sync("mytool__search", {"query": "é"})
    assert result == {"results": ["é"], "key": "k"}
    registry.shutdown_sync()
    assert states(loaded) == {"my-tool-plugin": "stopped"}


def test_an_instance_of_a_plugin_for_agent_adapter_can_be_registered(installed):
    registry = registries.ToolPluginRegistry(
        runtime_for=lambda namespace, config: local.LocalRuntime(namespace, {"api_key": "k"})
    )
    plugin = importlib.import_module("my_tool_plugin").MyToolPlugin()

    assert registry.register(plugin).tool_count == 1
    assert registry.resolve_tool("mytool__search") is plugin


def test_an_object_that_is_not_a_plugin_is_refused_with_its_missing_attributes():
    with pytest.raises(TypeError, match="it has no namespace and no tools and no execute"):
        registries.ToolPluginRegistry().register(type("Half", (), {"name": "half"})())


def test_a_schema_that_is_not_a_mapping_is_refused_with_its_path(installed):
    plugin = importlib.import_module("my_tool_plugin").MyToolPlugin
    broken = type("Broken", (plugin,), {"tools": [type("T", (), {"name": "mytool__x", "input_schema": 7})()]})

    with pytest.raises(Exception, match=r"mytool__x\.input_schema"):
        registries.ToolPluginRegistry().register(broken())


def test_a_missing_wallet_error_names_the_setting():
    with pytest.raises(contract.WalletMissing, match="TOOLBELT_WALLET"):
        local.LocalRuntime("pay").wallet  # noqa: B018


class Wallet:
    def __init__(self, namespace: str) -> None:
        self.namespace = namespace

    async def get_address(self) -> str:
        return f"0x{self.namespace}"


def test_a_runtime_returns_the_wallet_it_was_created_with():
    runtime = local.LocalRuntime("pay", wallet=Wallet("pay"))  # type: ignore[arg-type]

    assert asyncio.run(runtime.wallet.get_address()) == "0xpay"
