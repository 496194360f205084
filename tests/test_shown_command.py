"""How commands of an installation are run, as what it prints says."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolbelt import conf
from toolbelt.settings import shown_command

ROOT = Path(__file__).resolve().parent.parent


def derived(base: Path, prefix: Path, **environ: str) -> str:
    return shown_command.derive(base, prefix=str(prefix), environ=environ)


def test_the_python_of_the_installation_is_named_from_its_directory_on(tmp_path: Path) -> None:
    assert derived(tmp_path, tmp_path / ".venv") == ".venv/bin/python manage.py"
    assert derived(tmp_path, tmp_path / "my venv") == "'my venv/bin/python' manage.py"


def test_a_python_from_elsewhere_is_called_by_its_name_alone(tmp_path: Path) -> None:
    assert derived(tmp_path / "app", tmp_path / "python") == "python manage.py"
    assert derived(tmp_path / "app", tmp_path / "app") == "python manage.py"


def test_an_installation_that_is_reached_by_a_link_is_found_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "real/.venv").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert derived(tmp_path / "real", tmp_path / "link/.venv") == ".venv/bin/python manage.py"


@pytest.mark.parametrize(
    ("file", "named"),
    [
        (".demo.env", ".demo.env"),
        ("{base}/.demo.env", ".demo.env"),
        ("my settings", "'my settings'"),
        ("/etc/toolbelt.env", "/etc/toolbelt.env"),
    ],
)
def test_the_file_of_settings_that_was_read_is_read_again(tmp_path: Path, file: str, named: str) -> None:
    said = derived(tmp_path, tmp_path / ".venv", TOOLBELT_ENV_FILE=file.format(base=tmp_path))
    assert said == f"TOOLBELT_ENV_FILE={named} .venv/bin/python manage.py"


def test_without_settings_it_is_as_the_documentation_writes_it() -> None:
    assert conf.COMMAND == ".venv/bin/python manage.py"


def test_an_installed_package_has_a_command(tmp_path: Path) -> None:
    said = shown_command.derive(
        tmp_path, prefix="/usr", environ={"TOOLBELT_ENV_FILE": ".demo.env"}, is_checkout=False
    )
    assert said == "TOOLBELT_ENV_FILE=.demo.env toolbelt"


def test_the_command_of_a_package_is_named_with_its_directory_unless_that_is_on_the_path(
    tmp_path: Path,
) -> None:
    command = tmp_path / "my env/bin/toolbelt"
    command.parent.mkdir(parents=True)
    command.touch(mode=0o755)
    links = tmp_path / "links"
    links.mkdir()
    (links / "toolbelt").symlink_to(command)
    for path, named in (
        ("/nowhere", f"'{command}'"),
        (str(command.parent), "toolbelt"),
        (str(links), "toolbelt"),
    ):
        environ = {"PATH": path}
        said = shown_command.derive(
            tmp_path, prefix=str(tmp_path / "my env"), environ=environ, is_checkout=False
        )
        assert said == named
