"""Fixtures of tests with live plugins: a plugins file, and plugins that end with the test."""

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
    """Yield a function that writes a text to the plugins file, and loads it again."""

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
    """Return what lists sample plugins, syncs them, and stores agents, and whatever else a configuration has."""

    def install(*names: str, config: str = "", **belt: Any) -> configured.Synced:
        entries = [
            f"  - module: tests.runtime.sample_plugins\n    class_name: {name}\n    config: {{{config}}}"
            for name in names
        ]
        listed("tool_plugins:\n" + "\n".join(entries))

        def store() -> configured.Synced:
            done = configured.sync(OPERATOR, plugins.live())
            if belt:
                belts.import_(OPERATOR, belt)
            return done

        return fast_fixtures.stored(f"installed: {entries}, {belt}", store)

    return install
