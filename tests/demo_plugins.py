"""The plugins of `make demo` for tests, over a repository of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from toolbelt.management import demo_repository

FILE = Path(__file__).parents[1] / "fixtures/demo/plugins.yaml"


def use(settings: Any, monkeypatch: pytest.MonkeyPatch, directory: Path) -> Path:
    """Set what `make demo` sets, and return the repository, which is made in the directory."""
    repository = directory / "demo-repository"
    demo_repository.create(repository)
    monkeypatch.setenv("DEMO_REPOSITORY", str(repository))
    settings.TOOLBELT_PLUGINS_FILE = str(FILE)
    return repository
