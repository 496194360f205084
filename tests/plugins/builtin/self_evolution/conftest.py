"""A real repository, and the plugin at work on it."""

from __future__ import annotations

import tempfile

import pytest

from tests.plugins.builtin import runtime
from tests.plugins.builtin.self_evolution import repositories
from toolbelt.plugins.builtin.self_evolution import plugin


@pytest.fixture(autouse=True)
def _temporary(tmp_path, monkeypatch) -> None:
    """Keep what a plugin makes for itself where pytest tidies up."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))


@pytest.fixture(scope="session")
def begun(tmp_path_factory) -> repositories.Repository:
    """A repository that tests copy and never change."""
    made = repositories.Repository(tmp_path_factory.mktemp("begun") / "repository")
    made.begin()
    return made


@pytest.fixture(scope="session")
def guarded(begun, tmp_path_factory) -> repositories.Repository:
    """Another, with files that an operator would protect; nor is it changed."""
    made: repositories.Repository = begun.copy(tmp_path_factory.mktemp("guarded") / "repository")
    made.write("secrets/key.txt", "secret\n")
    made.write("deploy/run.sh", "run\n")
    made.write("docs/legal/terms.md", "terms\n")
    made.commit("Add what is protected")
    return made


@pytest.fixture
def repository(begun, tmp_path) -> repositories.Repository:
    made: repositories.Repository = begun.copy(tmp_path / "repository")
    return made


@pytest.fixture
def evolve(repository):
    running = runtime.Running(plugin.SelfEvolution(), {"repository": str(repository.path)})
    yield running
    running.stop()
