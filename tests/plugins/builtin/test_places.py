"""Every built-in plugin is in its folder, under a unique name and with a unique namespace."""

from __future__ import annotations

import importlib

import pytest

from toolbelt.core import keys
from toolbelt.plugins import builtin, contract


def made(name: str) -> contract.ToolPlugin:
    module, class_name = builtin.CLASSES[name]
    plugin = getattr(importlib.import_module(module), class_name)()
    assert isinstance(plugin, contract.ToolPlugin)
    return plugin


@pytest.mark.parametrize("name", builtin.CLASSES)
def test_a_plugin_is_what_its_name_says(name: str) -> None:
    assert made(name).name == name


def test_no_two_plugins_share_a_namespace_a_tool_or_a_toolkits_key() -> None:
    plugins = [made(name) for name in builtin.CLASSES]
    spaces = [keys.fold(plugin.namespace) for plugin in plugins]
    taken = [keys.fold(tool.name) for plugin in plugins for tool in plugin.tools]
    taken += [keys.fold(toolkit.key) for plugin in plugins for toolkit in plugin.toolkits]
    assert len(set(spaces)) == len(spaces)
    assert len(set(taken)) == len(taken)
