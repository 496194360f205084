"""Tests that the demo's plugins run where the database has the demo, and no plugins file is set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import fast_fixtures
from toolbelt import models
from toolbelt.runtime import demo_plugins, plugins


@pytest.fixture(autouse=True)
def demo(transactional_db: None, settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Store the demo, as `loaddata demo` does in its environment."""
    fast_fixtures.demo()
    settings.ENVIRONMENT, settings.TOOLBELT_PLUGINS_FILE = "demo", ""
    monkeypatch.setenv("DEMO_REPOSITORY", str(tmp_path))


def test_every_tool_of_the_demo_in_code_runs() -> None:
    stored = models.Tool.objects.filter(plugin__in_code=True, plugin__status="ready", retired=False)
    assert plugins.runnable() >= set(stored.values_list("key", flat=True))
    plugins.stop()


@pytest.mark.parametrize(("environment", "is_run"), [("development", True), ("production", False)])
def test_the_demo_s_plugins_run_in_environments_for_it_only(
    settings: Any, environment: str, is_run: bool
) -> None:
    settings.ENVIRONMENT = environment
    assert (plugins.file() == demo_plugins.FILE) is is_run


def test_a_plugins_file_of_the_installation_replaces_the_demo_s(settings: Any) -> None:
    settings.TOOLBELT_PLUGINS_FILE = "plugins.yaml"
    assert plugins.file() == Path("plugins.yaml")


def test_another_catalog_is_not_taken_for_the_demo() -> None:
    models.Plugin.objects.filter(name="in_house").update(in_code=False)
    assert plugins.file() is None
