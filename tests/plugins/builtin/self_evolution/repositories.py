"""A real git repository for tests, with a work tree."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess


class Repository:
    """``main`` is checked out and has two commits; ``git`` runs git there as its owner would."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path

    def create(self) -> None:
        """Create the repository."""
        self.path.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")
        self.write("app/main.py", "import os\n\n\ndef hello():\n    return 'Hello'\n")
        self.write("README.md", "# App\n\nSays hello.\n")
        self.commit("Begin")
        self.write("README.md", "# App\n\nSays hello to everybody.\n")
        self.commit("Describe it better")

    def copy(self, path: pathlib.Path) -> Repository:
        """Return a copy, which is faster than creating another repository."""
        shutil.copytree(self.path, path, symlinks=True)
        return Repository(path)

    def git(self, *arguments: str) -> str:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.path),
            "GIT_CONFIG_NOSYSTEM": "1",
            **{f"GIT_{role}_NAME": "Pat" for role in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{role}_EMAIL": "pat@example.com" for role in ("AUTHOR", "COMMITTER")},
        }
        process = subprocess.run(
            ["git", *arguments], cwd=self.path, env=environment, check=True, capture_output=True, text=True
        )
        return process.stdout.strip()

    def write(self, path: str, text: str | bytes) -> None:
        target = self.path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text if isinstance(text, bytes) else text.encode())

    def commit(self, message: str) -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--no-verify", "-m", message)
        return self.git("rev-parse", "HEAD")

    def at(self, ref: str, path: str) -> str:
        """Return the text of a file in a commit, without trailing whitespace."""
        return self.git("show", f"{ref}:{path}")
