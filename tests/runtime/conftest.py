"""What do tests with live plugins share? A plugins' file, and plugins that end with the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from toolbelt.control import actors, belts
from toolbelt.control import plugins as configured
from toolbelt.runtime import plugins
from toolbelt.store import snapshots

OPERATOR = actors.Actor(name="olive", via="command")

Install = Callable[..., configured.Synced]


@pytest.fixture
def listed(tmp_path: Path, settings: Any) -> Iterator[Callable[[str], None]]:
    """Give what makes a text the plugins' file, and loads it anew."""

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
    """Give what lists sample plugins, syncs them, and stores agents."""

    def install(*names: str, config: str = "", agents: Any = ()) -> configured.Synced:
        entries = [
            f"  - module: tests.runtime.sample_plugins\n    class_name: {name}\n    config: {{{config}}}"
            for name in names
        ]
        listed("tool_plugins:\n" + "\n".join(entries))
        done = configured.sync(OPERATOR, plugins.live())
        if agents:
            belts.import_(OPERATOR, {"agents": list(agents)})
        return done

    return install
