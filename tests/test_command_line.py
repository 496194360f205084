"""Tests of what the command `toolbelt` does before it reads the settings of an installation."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from django.core import management

import toolbelt
from toolbelt import command_line, locations

INSTALLATION = {
    "TOOLBELT_ENV": "production",
    "TOOLBELT_SECRET_KB__API_KEY": "a",
    "SECRET_KEY": "x",
    "ALLOWED_HOSTS": "example.com",
    "DATABASE_URL": "postgres://example.com/x",
    "REDIS_URL": "redis://example.com",
}


def test_environment_variables_of_another_installation_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    unrelated = {"TOOLBELT_HOME": "/somewhere", "NOT_TOOLBELT_ENV": "x"}
    for name, value in {**INSTALLATION, **unrelated}.items():
        monkeypatch.setenv(name, value)
    # A copy, so that the variables of the test process are restored.
    monkeypatch.setattr(os, "environ", dict(os.environ))
    command_line._forget_settings()
    assert not INSTALLATION.keys() & os.environ.keys()
    assert unrelated.items() <= os.environ.items()


def start_demo(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run `toolbelt demo` in a directory, up to the point where it reads its settings."""

    def stop(file: str) -> None:
        sys.exit(f"would read {file}")

    monkeypatch.setattr(os, "environ", {**os.environ, **INSTALLATION, "TOOLBELT_HOME": str(home)})
    monkeypatch.setattr(command_line, "_set_up", stop)
    monkeypatch.chdir(home)
    command_line.main(["demo"])


def test_the_demo_runs_the_plugins_file_that_is_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").touch()
    monkeypatch.setenv("TOOLBELT_PLUGINS_FILE", "own.yaml")
    with pytest.raises(SystemExit, match=r"would read \.demo\.env"):
        start_demo(tmp_path, monkeypatch)
    assert os.environ["TOOLBELT_PLUGINS_FILE"] == str(tmp_path / "own.yaml")
    assert "TOOLBELT_ENV" not in os.environ


def test_the_demo_refuses_a_plugins_file_that_does_not_exist(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TOOLBELT_PLUGINS_FILE", "none.yaml")
    with pytest.raises(
        SystemExit, match=r"none\.yaml does not exist. Correct TOOLBELT_PLUGINS_FILE, or unset it"
    ):
        start_demo(tmp_path, monkeypatch)


def test_a_settings_file_is_private_and_never_overwritten(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    command_line._write_settings(file, "Settings.", {"SECRET_KEY": "a#b$c"})
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("# Settings.\nSECRET_KEY='a#b$c'\n", 0o600)
    with pytest.raises(FileExistsError):
        command_line._write_settings(file, "Settings.", {})


@pytest.mark.parametrize("value", ["a'b", "a\nb"])
def test_a_value_that_would_break_the_settings_file_is_refused(tmp_path: Path, value: str) -> None:
    with pytest.raises(SystemExit, match="DATABASE_URL must not contain"):
        command_line._write_settings(tmp_path / ".env", "Settings.", {"DATABASE_URL": value})
    assert not (tmp_path / ".env").exists()


@pytest.mark.parametrize("port", ["0", "65536", "http"])
def test_an_invalid_port_is_refused(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command_line.main(["demo", "--port", port])
    assert "is not a port" in capsys.readouterr().err


@pytest.mark.parametrize(
    "host", ["https://toolbelt.example.com", "toolbelt.example.com:8000", "a/b", "*", ""]
)
def test_an_invalid_host_is_refused_before_anything_is_created(
    host: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TOOLBELT_HOME", str(tmp_path / "home"))
    with pytest.raises(SystemExit, match="is not a host name"):
        command_line.main(["init", "--host", host])
    assert not (tmp_path / "home").exists()


def test_serve_without_the_server_extra_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SystemExit, match=r"pip install 'toolbelt-switchboard\[server\]'"):
        command_line.main(["serve"])


@pytest.mark.parametrize("word", ["--version", "version"])
def test_the_version_is_that_of_toolbelt_and_not_of_django(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command_line.main([word])
    assert capsys.readouterr().out == f"toolbelt {toolbelt.__version__}\n"


def test_the_help_lists_existing_common_commands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command_line, "manage", lambda argv: None)
    command_line.main([])
    output = capsys.readouterr().out
    own = management.get_commands().keys() | {"demo", "init"}
    named = {line.split()[1] for line in output.splitlines() if line.startswith("toolbelt ")} - {"COMMAND"}
    assert named <= own
    assert {"surface", "flip", "mcp", "token", "call", "backup", "doctor"} <= named


def test_the_home_of_an_installation_depends_on_environment_and_checkout(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("TOOLBELT_HOME", raising=False)
    assert locations.home() == locations.ASSETS
    monkeypatch.setattr(locations, "IS_CHECKOUT", False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert locations.home() == tmp_path / "toolbelt"
    monkeypatch.setenv("TOOLBELT_HOME", str(tmp_path / "own"))
    assert locations.home() == tmp_path / "own"
