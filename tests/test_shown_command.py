"""Tests of how an installation shows the commands that its messages suggest."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolbelt import conf, locations
from toolbelt.settings import shown_command

ROOT = Path(__file__).resolve().parent.parent


def derived(base: Path, prefix: Path, **environ: str) -> str:
    return shown_command.derive(base, prefix=str(prefix), environ=environ)


def test_the_python_of_an_installation_is_shown_relative_to_its_directory(tmp_path: Path) -> None:
    assert derived(tmp_path, tmp_path / ".venv") == ".venv/bin/python manage.py"
    assert derived(tmp_path, tmp_path / "my venv") == "'my venv/bin/python' manage.py"


def test_a_python_outside_the_installation_is_shown_by_name(tmp_path: Path) -> None:
    assert derived(tmp_path / "app", tmp_path / "python") == "python manage.py"
    assert derived(tmp_path / "app", tmp_path / "app") == "python manage.py"


def test_an_installation_behind_a_symbolic_link_is_recognized(tmp_path: Path) -> None:
    (tmp_path / "real/.venv").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert derived(tmp_path / "real", tmp_path / "link/.venv") == ".venv/bin/python manage.py"


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (".demo.env", ".demo.env"),
        ("{base}/.demo.env", ".demo.env"),
        ("my settings", "'my settings'"),
        ("/etc/toolbelt.env", "/etc/toolbelt.env"),
    ],
)
def test_the_shown_command_includes_the_settings_file(tmp_path: Path, file: str, expected: str) -> None:
    shown = derived(tmp_path, tmp_path / ".venv", TOOLBELT_ENV_FILE=file.format(base=tmp_path))
    assert shown == f"TOOLBELT_ENV_FILE={expected} .venv/bin/python manage.py"


def test_the_default_command_is_that_of_the_documentation() -> None:
    assert conf.COMMAND == ".venv/bin/python manage.py"


def test_an_installed_package_shows_the_toolbelt_command(tmp_path: Path) -> None:
    shown = shown_command.derive(
        tmp_path, prefix="/usr", environ={"TOOLBELT_ENV_FILE": ".demo.env"}, is_checkout=False
    )
    assert shown == "TOOLBELT_ENV_FILE=.demo.env toolbelt"


def test_the_home_of_an_installation_is_part_of_the_command(tmp_path: Path) -> None:
    environ = {"TOOLBELT_HOME": "/srv/my home", "TOOLBELT_ENV_FILE": ".demo.env"}
    shown = shown_command.derive(Path("/srv/my home"), prefix="/usr", environ=environ, is_checkout=False)
    assert shown == "TOOLBELT_HOME='/srv/my home' TOOLBELT_ENV_FILE=.demo.env toolbelt"


def test_the_code_of_a_checkout_is_not_in_the_home_of_the_installation(tmp_path: Path) -> None:
    environ = {"TOOLBELT_HOME": "data"}
    prefix = locations.ASSETS / ".venv"
    assert derived(tmp_path / "data", prefix, **environ) == ("TOOLBELT_HOME=data .venv/bin/python manage.py")
    shown = shown_command.derive(tmp_path / "data", prefix=str(prefix), environ=environ, is_absolute=True)
    assert shown == (f"TOOLBELT_HOME={tmp_path}/data {prefix}/bin/python {locations.ASSETS}/manage.py")


def test_an_absolute_command_works_in_any_directory(tmp_path: Path) -> None:
    shown = shown_command.derive(
        tmp_path,
        prefix=str(tmp_path / ".venv"),
        environ={"TOOLBELT_ENV_FILE": ".demo.env"},
        is_absolute=True,
    )
    assert shown == (
        f"TOOLBELT_ENV_FILE={tmp_path}/.demo.env {tmp_path}/.venv/bin/python {tmp_path}/manage.py"
    )


def test_the_command_is_shown_with_its_directory_unless_on_the_path(
    tmp_path: Path,
) -> None:
    command = tmp_path / "my env/bin/toolbelt"
    command.parent.mkdir(parents=True)
    command.touch(mode=0o755)
    links = tmp_path / "links"
    links.mkdir()
    (links / "toolbelt").symlink_to(command)
    for path, expected in (
        ("/nowhere", f"'{command}'"),
        (str(command.parent), "toolbelt"),
        (str(links), "toolbelt"),
    ):
        environ = {"PATH": path}
        shown = shown_command.derive(
            tmp_path, prefix=str(tmp_path / "my env"), environ=environ, is_checkout=False
        )
        assert shown == expected
