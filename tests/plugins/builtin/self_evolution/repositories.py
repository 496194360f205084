"""A real git repository for a test, made by git, with a work tree in use."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess


class Repository:
    """``main`` is checked out and has two commits; ``git`` runs git there as its owner would."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path

    def begin(self) -> None:
        """Make it."""
        self.path.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")
        self.write("app/main.py", "import os\n\n\ndef hello():\n    return 'Hello'\n")
        self.write("README.md", "# App\n\nSays hello.\n")
        self.commit("Begin")
        self.write("README.md", "# App\n\nSays hello to everybody.\n")
        self.commit("Describe it better")

    def copy(self, path: pathlib.Path) -> Repository:
        """Copy it, which is faster than to make another."""
        shutil.copytree(self.path, path, symlinks=True)
        return Repository(path)

    def git(self, *arguments: str) -> str:
        around = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.path),
            "GIT_CONFIG_NOSYSTEM": "1",
            **{f"GIT_{role}_NAME": "Pat" for role in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{role}_EMAIL": "pat@example.com" for role in ("AUTHOR", "COMMITTER")},
        }
        found = subprocess.run(
            ["git", *arguments], cwd=self.path, env=around, check=True, capture_output=True, text=True
        )
        return found.stdout.strip()

    def write(self, path: str, text: str | bytes) -> None:
        place = self.path / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text if isinstance(text, bytes) else text.encode())

    def commit(self, message: str) -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--no-verify", "-m", message)
        return self.git("rev-parse", "HEAD")

    def at(self, ref: str, path: str) -> str:
        """Return the text of a file as a commit has it, without the space at its end."""
        return self.git("show", f"{ref}:{path}")
