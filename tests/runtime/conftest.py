"""Fixtures for tests with live plugins: a plugins file, and plugins that stop with the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import fast_fixtures
from toolbelt.control import writing
from toolbelt.control.config import belts
from toolbelt.control.servers import plugins as configured
from toolbelt.runtime import plugins
from toolbelt.store import snapshots

OPERATOR = writing.by("olive", via="command")

Install = Callable[..., configured.Synced]


@pytest.fixture
def listed(tmp_path: Path, settings: Any) -> Iterator[Callable[[str], None]]:
    """Yield a function that replaces the content of the plugins file and unloads the plugins."""

    def listed(text: str) -> None:
        plugins.stop()
        snapshots.forget()
        file = tmp_path / "plugins.yaml"
        file.write_text(text, encoding="utf-8")
        settings.TOOLBELT_PLUGINS_FILE = str(file)

    yield listed
    plugins.stop()
    snapshots.forget()


@pytest.fixture
def install(listed: Callable[[str], None]) -> Install:
    """Return a function that lists and syncs sample plugins, and imports the rest of a configuration."""

    def install(*names: str, config: str = "", **belt: Any) -> configured.Synced:
        entries = [
            f"  - module: tests.runtime.sample_plugins\n    class_name: {name}\n    config: {{{config}}}"
            for name in names
        ]
        listed("tool_plugins:\n" + "\n".join(entries))

        def store() -> configured.Synced:
            synced = configured.sync(OPERATOR, plugins.live())
            if belt:
                belts.import_(OPERATOR, belt)
            return synced

        return fast_fixtures.stored(f"installed: {entries}, {belt}", store)

    return install
