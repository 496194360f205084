"""What tests of attacks share: a repository with files to protect, and the plugin that protects them."""

from __future__ import annotations

import pytest

from tests.plugins.builtin import runtime
from tests.plugins.builtin.self_evolution import repositories
from toolbelt.plugins.builtin.self_evolution import plugin

MESSAGE = "Greet the world"
PATCH = {"path": "app/main.py", "old": "'Hello'", "new": "'Hello, world'"}
PROTECTED = ["secrets", "deploy/*", "*.pem", "docs/legal"]


@pytest.fixture
def repository(guarded, tmp_path) -> repositories.Repository:
    made: repositories.Repository = guarded.copy(tmp_path / "repository")
    return made


@pytest.fixture
def evolve(repository):
    running = runtime.Running(
        plugin.SelfEvolution(),
        {"repository": str(repository.path), "protected_paths": PROTECTED, "check_command": ["true"]},
    )
    yield running
    running.stop()


def write(evolve: runtime.Running, path: str, branch: str = "evolve/x") -> None:
    evolve("commit_push", branch=branch, message=MESSAGE, files=[{"path": path, "content": "owned"}])
