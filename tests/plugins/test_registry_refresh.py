"""Tests of refreshing a plugin whose tools change."""

from __future__ import annotations

import pytest

from tests.plugins import samples
from toolbelt.core import errors


def test_a_refreshed_plugin_has_its_current_tools(registry):
    plugin = samples.Sample(tools=[samples.definition("kb__old"), samples.definition("kb__stays")])
    registry.register(plugin)
    plugin.tools = [samples.definition("kb__stays"), samples.definition("kb__new")]

    info = registry.refresh("knowledge")

    assert [tool.name for tool in info.tools] == ["kb__stays", "kb__new"]
    assert registry.resolve_tool("kb__old") is None
    assert registry.resolve_tool("kb__new") is plugin


def test_a_refused_refresh_changes_nothing(registry):
    plugin = samples.Sample()
    registry.register(plugin)
    plugin.tools = [samples.definition("git__push")]

    with pytest.raises(errors.Invalid, match="outside the namespace"):
        registry.refresh("knowledge")
    plugin.name, plugin.tools = "renamed", [samples.definition()]
    with pytest.raises(errors.Invalid, match="which a plugin cannot change"):
        registry.refresh("knowledge")

    assert registry.resolve_tool("kb__search") is plugin


def test_refreshing_an_unknown_plugin_suggests_the_nearest_name(registry):
    registry.register(samples.Sample())

    with pytest.raises(errors.NotFound, match="Did you mean knowledge"):
        registry.refresh("knowlege")
