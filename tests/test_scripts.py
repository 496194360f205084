"""The scripts behave the same in every shell."""

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
KEPT = {"TEST_DATABASE_URL": "postgres://127.0.0.1/x", "CI": "true", "NOT_TOOLBELT_ENV": "x"}


def test_the_settings_of_an_installation_are_forgotten() -> None:
    run = subprocess.run(
        ["sh", "-euc", '. "$0"; env', SCRIPTS / "forget_settings.sh"],
        env={"PATH": os.environ["PATH"], **INSTALLATION, **KEPT},
        capture_output=True,
        text=True,
        check=True,
    )
    left = dict(line.partition("=")[::2] for line in run.stdout.splitlines())
    assert not [name for name in left if name in INSTALLATION or name.startswith("TOOLBELT_")]
    assert KEPT.items() <= left.items()


def test_they_are_forgotten_before_the_scripts_own_are_set() -> None:
    text = (SCRIPTS / "test.sh").read_text(encoding="utf-8")
    assert 0 < text.index("\n. scripts/forget_settings.sh\n") < text.index("\nexport TOOLBELT_")
