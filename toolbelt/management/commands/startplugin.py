"""How does a new plugin begin? (``manage.py startplugin NAME [DIR]``)"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from toolbelt.management import plugin_package, terminal


class Command(terminal.Command):
    """Write the package of a new plugin."""

    help = "Write a package with a plugin that works, its tests and its entry point. Touches no database."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Take the plugin's name, and where to write."""
        parser.add_argument("name", metavar="NAME")
        parser.add_argument("directory", metavar="DIR", nargs="?", type=Path, help="./NAME if not given")

    def handle(self, *args: Any, name: str, directory: Path | None, **options: Any) -> None:
        """Write the files; nothing that is there is written over."""
        if problem := plugin_package.name_problem(name):
            raise CommandError(problem)
        home = directory or Path(name)
        if home.exists() and (not home.is_dir() or any(home.iterdir())):
            raise CommandError(f"{home} is there already: choose a directory that is new or empty.")
        try:
            for path, text in plugin_package.files(name).items():
                file = home / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{home}: cannot be written: {error.strerror}.") from error
        self.stdout.write(
            f"{home} is written. Where Toolbelt is installed: python -m pip install -e '{home}[test]', "
            f"then python -m pytest {home}"
        )
