"""Fixtures: a real repository, and the plugin running on it."""

from __future__ import annotations

import tempfile

import pytest

from tests.plugins.builtin import runtime
from tests.plugins.builtin.self_evolution import repositories
from toolbelt.plugins.builtin.self_evolution import plugin


@pytest.fixture(autouse=True)
def _temporary(tmp_path, monkeypatch) -> None:
    """Put the plugin's temporary files where pytest removes them."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))


@pytest.fixture(scope="session")
def template(tmp_path_factory) -> repositories.Repository:
    """Return a repository that tests copy and never change."""
    created = repositories.Repository(tmp_path_factory.mktemp("template") / "repository")
    created.create()
    return created


@pytest.fixture(scope="session")
def protected_template(template, tmp_path_factory) -> repositories.Repository:
    """Return a repository with files that an operator would protect; tests copy it and never change it."""
    copy: repositories.Repository = template.copy(tmp_path_factory.mktemp("guarded") / "repository")
    copy.write("secrets/key.txt", "secret\n")
    copy.write("deploy/run.sh", "run\n")
    copy.write("docs/legal/terms.md", "terms\n")
    copy.commit("Add what is protected")
    return copy


@pytest.fixture
def repository(template, tmp_path) -> repositories.Repository:
    copy: repositories.Repository = template.copy(tmp_path / "repository")
    return copy


@pytest.fixture
def evolve(repository):
    running = runtime.RunningPlugin(plugin.SelfEvolution(), {"repository": str(repository.path)})
    yield running
    running.stop()
