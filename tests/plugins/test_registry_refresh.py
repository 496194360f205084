"""A plugin whose tools change: read again, or left as it was."""

from __future__ import annotations

import pytest

from tests.plugins import samples
from toolbelt.core import errors


def test_a_plugin_that_is_refreshed_offers_what_it_offers_now(registry):
    plugin = samples.Sample(tools=[samples.definition("kb__old"), samples.definition("kb__stays")])
    registry.register(plugin)
    plugin.tools = [samples.definition("kb__stays"), samples.definition("kb__new")]

    info = registry.refresh("knowledge")

    assert [tool.name for tool in info.tools] == ["kb__stays", "kb__new"]
    assert registry.resolve_tool("kb__old") is None
    assert registry.resolve_tool("kb__new") is plugin


def test_a_refresh_that_is_refused_changes_nothing(registry):
    plugin = samples.Sample()
    registry.register(plugin)
    plugin.tools = [samples.definition("git__push")]

    with pytest.raises(errors.Invalid, match="outside the namespace"):
        registry.refresh("knowledge")
    plugin.name, plugin.tools = "renamed", [samples.definition()]
    with pytest.raises(errors.Invalid, match="which a plugin cannot change"):
        registry.refresh("knowledge")

    assert registry.resolve_tool("kb__search") is plugin


def test_only_what_is_registered_can_be_refreshed(registry):
    registry.register(samples.Sample())

    with pytest.raises(errors.NotFound, match="Did you mean knowledge"):
        registry.refresh("knowlege")
