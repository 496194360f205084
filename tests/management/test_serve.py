"""Tests of what `manage.py serve` checks before it serves."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command

from toolbelt.control.doctor import machine
from toolbelt.control.servers import states
from toolbelt.runtime import demo_plugins


def test_a_missing_directory_for_metrics_is_refused_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path / "missing"))
    with pytest.raises(
        CommandError, match=r"No file can be written in .*missing.*change PROMETHEUS_MULTIPROC"
    ):
        call_command("serve", port=0)
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    assert not [*machine.metrics_directory()]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Any:
    """Return what runs the command and returns its output; nothing is served."""
    monkeypatch.setattr(uvicorn, "run", lambda *args, **options: None)
    settings.STATIC_ROOT = None
    # Removed after the test.
    monkeypatch.setenv(states.SERVED_AT, "")

    def serve(**options: Any) -> str:
        out = io.StringIO()
        call_command("serve", port=0, stdout=out, **options)
        return out.getvalue()

    return serve


@pytest.mark.django_db(transaction=True)
def test_a_server_prints_its_address_and_the_next_step(serve: Any, settings: Any) -> None:
    printed = serve()
    assert "Serving on http://127.0.0.1:0/ (Ctrl+C to stop)." in printed
    assert "No one can log in yet. Create a login with `" in printed
    get_user_model().objects.create_user("mia", password="given")
    assert "Log in at http://localhost:0/." in serve(host="0.0.0.0")  # noqa: S104
    assert os.environ[states.SERVED_AT] == "http://localhost:0"
    settings.ENVIRONMENT, settings.ALLOWED_HOSTS = "production", [".example.com"]
    settings.INSECURE_HTTP = False
    assert "Log in at https://example.com/, through your reverse proxy with TLS." in serve()
    settings.LOGS_AS_JSON, settings.LOG_LEVEL = True, "WARNING"
    assert (
        serve().splitlines()[-1] == "Logs go to standard error, one JSON object a line, from level WARNING."
    )
    settings.LOGS_AS_JSON = False
    assert "Logs go to standard error, as text, from" in serve()


@pytest.mark.django_db(transaction=True)
def test_a_server_of_the_demo_says_that_it_runs_its_tools(
    serve: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert "demo" not in serve()
    repository = tmp_path / "demo-repository"
    monkeypatch.setenv("DEMO_REPOSITORY", str(repository))
    monkeypatch.setattr(demo_plugins, "file", lambda: demo_plugins.FILE)
    assert "Running the demo's tools, because this database has the demo." in serve()
    assert repository.is_dir()
