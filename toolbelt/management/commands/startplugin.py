"""``manage.py startplugin NAME [DIR]``: create the package of a new plugin."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from toolbelt.management import plugin_package, terminal


class Command(terminal.Command):
    """Create the package of a new plugin."""

    help = "Create a package with a working plugin, its tests and its entry point. Does not use the database."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the plugin's name and the directory."""
        parser.add_argument("name", metavar="NAME", help="the plugin's name")
        parser.add_argument(
            "directory", metavar="DIR", nargs="?", type=Path, help="the package's directory (default: ./NAME)"
        )

    def handle(self, *args: Any, name: str, directory: Path | None, **options: Any) -> None:
        """Write the files, without overwriting any."""
        if problem := plugin_package.name_problem(name):
            raise CommandError(problem)
        home = directory or Path(name)
        if home.exists() and (not home.is_dir() or any(home.iterdir())):
            raise CommandError(f"{home} already exists. Choose a new or empty directory.")
        try:
            for path, text in plugin_package.files(name).items():
                file = home / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
        except OSError as error:
            raise CommandError(f"Cannot write {home}: {error.strerror}.") from error
        self.stdout.write(
            f"Created {home}. In Toolbelt's environment, run python -m pip install -e '{home}[test]', "
            f"then python -m pytest {home}"
        )
