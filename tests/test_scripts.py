"""Tests that the scripts do not depend on settings in the environment."""

from __future__ import annotations

import os
import pathlib
import subprocess

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
