"""The plugins of `make demo` for tests, with a separate repository."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from toolbelt.management import demo_repository

FILE = Path(__file__).parents[1] / "fixtures/demo/plugins.yaml"


def use(settings: Any, monkeypatch: pytest.MonkeyPatch, directory: Path) -> Path:
    """Configure the plugins as `make demo` does. Return the repository, which is created in the directory."""
    repository = directory / "demo-repository"
    demo_repository.create(repository)
    monkeypatch.setenv("DEMO_REPOSITORY", str(repository))
    settings.TOOLBELT_PLUGINS_FILE = str(FILE)
    return repository
