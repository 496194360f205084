"""Fixtures: registries that are shut down after the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.plugins import samples
from toolbelt.plugins import registry as registries


@pytest.fixture
def make_registry() -> Iterator[Callable[..., registries.ToolPluginRegistry]]:
    created: list[registries.ToolPluginRegistry] = []

    def make(**limits: Any) -> registries.ToolPluginRegistry:
        created.append(registries.ToolPluginRegistry(limits=registries.Limits(**limits)))
        return created[-1]

    yield make
    for registry in created:
        registry.shutdown_sync()


@pytest.fixture
def registry(make_registry: Callable[..., registries.ToolPluginRegistry]) -> registries.ToolPluginRegistry:
    return make_registry(shutdown=2.0)


@pytest.fixture
def fine(registry: registries.ToolPluginRegistry) -> samples.Sample:
    plugin = samples.Sample("fine", "fine")
    registry.register(plugin)
    return plugin
