"""Tests of manage.py itself, whichever command is run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize(
    ("words", "code", "unbuffered"),
    [
        (["help"], 141, ""),  # the exit code of a command ended by SIGPIPE
        (["try", "docs/examples/on_call.scenarios.yaml"], 141, "1"),
        (["try", "tests/nowhere"], 2, ""),  # prints nothing to the pipe, so it ends normally
    ],
)
def test_a_closed_output_pipe_ends_a_command_quietly(words: list[str], code: int, unbuffered: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        run = subprocess.run(
            [sys.executable, "manage.py", *words],
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], "TOOLBELT_ENV": "test", "PYTHONUNBUFFERED": unbuffered},
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
        )
    finally:
        os.close(writing)
    assert (run.returncode, "BrokenPipe" in run.stderr, "Traceback" in run.stderr) == (code, False, False)


@pytest.mark.parametrize("environment", [{}, {"TOOLBELT_ENV": "production"}])
def test_try_works_without_an_installation_and_development_packages(environment: dict[str, str]) -> None:
    program = (
        "import runpy, sys; sys.modules['django_linear_migrations'] = None;"
        "sys.argv = ['manage.py', 'try', 'docs/examples/on_call.scenarios.yaml'];"
        "runpy.run_path('manage.py', run_name='__main__')"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "2 passed, 0 failed\n", "")


NO_DIRECTORY = (
    "sqlite:///nowhere/at/all.sqlite3",
    r"The directory \S+/nowhere/at of the database file does not exist",
)
# No server listens at port 1.
NO_SERVER = (
    "postgres://127.0.0.1:1/toolbelt",
    "The database cannot be used: .*port 1 failed.*DATABASE_URL names its host",
)


# Only connections to a server depend on the environment.
@pytest.mark.parametrize(
    ("environment", "address", "words"),
    [("demo", *NO_DIRECTORY), ("demo", *NO_SERVER), ("test", *NO_SERVER)],
)
def test_a_command_reports_an_unavailable_database_in_one_line(
    environment: str, address: str, words: str
) -> None:
    settings = {
        "TOOLBELT_ENV": environment,
        "SECRET_KEY": "x7Jq2Lr9Vb4Nc6Zt" * 4,
        "ALLOWED_HOSTS": "localhost",
    }
    run = subprocess.run(
        [sys.executable, "manage.py", "surface", "ada"],
        cwd=ROOT,
        env={
            "PATH": os.environ["PATH"],
            "TOOLBELT_ENV_FILE": os.devnull,
            "DATABASE_URL": address,
            **settings,
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 1
    # One line, without warnings of the connection pool.
    assert re.fullmatch(rf"CommandError: {words}[^\n]*\n", run.stderr), run.stderr
