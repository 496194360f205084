"""The repository that the demo's real tools read and change."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from django.core.management import base
from django.core.management.base import CommandError

from toolbelt import locations

SOURCE = locations.ASSETS / "fixtures/demo/repository"
# The same commit for everyone, whatever the configuration of git is.
_IDENTITY = {
    f"GIT_{role}_{field}": value
    for role in ("AUTHOR", "COMMITTER")
    for field, value in {
        "NAME": "Demo",
        "EMAIL": "demo@toolbelt.invalid",
        "DATE": "2026-01-01T00:00:00Z",
    }.items()
}
_ENVIRONMENT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", **_IDENTITY}


def create(path: Path) -> None:
    """Create a git repository with one commit at ``path``; leave a directory that exists as it is.

    Raise CommandError if git is missing or fails.
    """
    if path.exists():
        return
    # Complete or not at all.
    with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as directory:
        repository = Path(directory) / "repository"
        shutil.copytree(SOURCE, repository)
        for arguments in (
            ("init", "--quiet", "--initial-branch=main"),
            ("add", "."),
            ("commit", "--quiet", "--no-gpg-sign", "--message", "Begin"),
        ):
            _git(repository, *arguments)
        repository.rename(path)


def ensure(stderr: base.OutputWrapper) -> None:
    """Create the repository that DEMO_REPOSITORY names. Say why if that is impossible: the rest of the demo works."""
    if path := os.environ.get("DEMO_REPOSITORY"):
        try:
            create(Path(path))
        except (CommandError, OSError) as error:
            stderr.write(str(error))


def _git(repository: Path, *arguments: str) -> None:
    command = ["git", "-C", str(repository), *arguments]
    environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": os.devnull, **_ENVIRONMENT}
    try:
        subprocess.run(command, env=environment, check=True, capture_output=True, text=True)  # noqa: S603
    except FileNotFoundError:
        raise CommandError(
            "The demo's repository was not created, because git is missing: install it, and run this again."
        ) from None
    except subprocess.CalledProcessError as error:
        raise CommandError(f"git {arguments[0]} failed in {repository}: {error.stderr.strip()}") from error
