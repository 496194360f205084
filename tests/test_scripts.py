"""Tests that the scripts do not depend on settings in the environment, or on a machine with nothing else to do."""

from __future__ import annotations

import os
import pathlib
import subprocess
from pathlib import Path

import pytest

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent / "scripts"

INSTALLATION = {
    "TOOLBELT_ENV": "production",
    "TOOLBELT_SECRET_KB__API_KEY": "a\nTOOLBELT_FAKE=b c",
    "TOOLBELT_CALL_SECONDS": "",
    "SECRET_KEY": "x",
    "ALLOWED_HOSTS": "example.com",
    "DATABASE_URL": "postgres://example.com/x",
    "REDIS_URL": "redis://example.com",
}
UNRELATED = {"TEST_DATABASE_URL": "postgres://127.0.0.1/x", "CI": "true", "NOT_TOOLBELT_ENV": "x"}


def test_forget_settings_removes_the_variables_of_an_installation() -> None:
    run = subprocess.run(
        ["sh", "-euc", '. "$0"; env', SCRIPTS / "forget_settings.sh"],
        env={"PATH": os.environ["PATH"], **INSTALLATION, **UNRELATED},
        capture_output=True,
        text=True,
        check=True,
    )
    remaining = dict(line.partition("=")[::2] for line in run.stdout.splitlines())
    assert not [name for name in remaining if name in INSTALLATION or name.startswith("TOOLBELT_")]
    assert UNRELATED.items() <= remaining.items()


def test_the_test_script_forgets_settings_before_it_sets_its_own() -> None:
    text = (SCRIPTS / "test.sh").read_text(encoding="utf-8")
    assert 0 < text.index("\n. scripts/forget_settings.sh\n") < text.index("\nexport TOOLBELT_")


@pytest.mark.parametrize(
    ("endings", "expected", "runs"),
    [
        ("0", 0, ["--num-workers 2"]),
        ("1", 1, ["--num-workers 2"]),
        # Its workers did not start in time.
        ("2 0", 0, ["--num-workers 2", ""]),
        ("2 1", 1, ["--num-workers 2", ""]),
    ],
)
def test_types_are_checked_without_workers_if_they_do_not_start(
    endings: str, expected: int, runs: list[str], tmp_path: Path
) -> None:
    function = (
        (SCRIPTS / "test.sh").read_text(encoding="utf-8").partition("\ntypes() {")[2].partition("\n}")[0]
    )
    (tmp_path / "endings").write_text("\n".join([*endings.split(), ""]))
    python = """
mypy() {
    shift 2
    echo "$*" >>runs
    ending=$(head -n 1 endings)
    sed -i 1d endings
    return "$ending"
}
python=mypy
"""
    script = f"{python}\ntypes() {{{function}\n}}\ntypes"
    run = subprocess.run(["sh", "-euc", script], cwd=tmp_path, check=False)
    assert run.returncode == expected
    assert (tmp_path / "runs").read_text().splitlines() == runs
