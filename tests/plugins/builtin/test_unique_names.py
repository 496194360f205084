"""Tests that every built-in plugin has a unique name, namespace, and keys of tools and toolkits."""

from __future__ import annotations

import importlib

import pytest

from toolbelt.core import keys
from toolbelt.plugins import builtin, contract


def make(name: str) -> contract.ToolPlugin:
    module, class_name = builtin.CLASSES[name]
    plugin = getattr(importlib.import_module(module), class_name)()
    assert isinstance(plugin, contract.ToolPlugin)
    return plugin


@pytest.mark.parametrize("name", builtin.CLASSES)
def test_a_built_in_plugin_has_the_name_it_is_listed_under(name: str) -> None:
    assert make(name).name == name


def test_namespaces_and_keys_of_built_in_plugins_are_unique() -> None:
    plugins = [make(name) for name in builtin.CLASSES]
    namespaces = [keys.fold(plugin.namespace) for plugin in plugins]
    keys_ = [keys.fold(tool.name) for plugin in plugins for tool in plugin.tools]
    keys_ += [keys.fold(toolkit.key) for plugin in plugins for toolkit in plugin.toolkits]
    assert len(set(namespaces)) == len(namespaces)
    assert len(set(keys_)) == len(keys_)
