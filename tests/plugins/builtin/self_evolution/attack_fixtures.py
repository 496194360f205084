"""Shared by the attack tests: a repository with protected files, and the plugin configured to protect them."""

from __future__ import annotations

import pytest

from tests.plugins.builtin import runtime
from tests.plugins.builtin.self_evolution import repositories
from toolbelt.plugins.builtin.self_evolution import plugin

MESSAGE = "Greet the world"
PATCH = {"path": "app/main.py", "old": "'Hello'", "new": "'Hello, world'"}
PROTECTED = ["secrets", "deploy/*", "*.pem", "docs/legal"]


@pytest.fixture
def repository(protected_template, tmp_path) -> repositories.Repository:
    copy: repositories.Repository = protected_template.copy(tmp_path / "repository")
    return copy


@pytest.fixture
def evolve(repository):
    running = runtime.RunningPlugin(
        plugin.SelfEvolution(),
        {"repository": str(repository.path), "protected_paths": PROTECTED, "check_command": ["true"]},
    )
    yield running
    running.stop()


def write(evolve: runtime.RunningPlugin, path: str, branch: str = "evolve/x") -> None:
    evolve("commit_push", branch=branch, message=MESSAGE, files=[{"path": path, "content": "owned"}])
