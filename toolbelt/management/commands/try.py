"""Do these scenarios hold? (``manage.py try PATH...``)"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from django.core.management.base import BaseCommand

from toolbelt.control import scenarios

# The C one reads a large belt ten times as fast, and may be missing.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Unreadable(Exception):
    """A file that holds no scenarios; the message names it and says why."""


class Command(BaseCommand):
    """Run scenario files through the pure core, without a database."""

    help = "Run scenario files (JSON or YAML) and say which expectations do not hold. Touches no database."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Take files, or directories whose .json and .yaml files are run."""
        parser.add_argument("paths", nargs="+", metavar="PATH", type=Path)

    def handle(self, *args: Any, paths: list[Path], **options: Any) -> None:
        """Exit 0 if all hold, 1 if one does not, 2 if a file cannot be read."""
        passed = failed = 0
        try:
            # Everything is read before anything runs: an unreadable file is no half-run.
            found = [scenario for path in paths for file in _files(path) for scenario in _read(file)]
        except Unreadable as error:
            self.stderr.write(str(error))
            sys.exit(2)
        for scenario in found:
            failures = scenarios.run(scenario)
            for failure in failures:
                self.stdout.write(str(failure))
            passed, failed = (passed, failed + 1) if failures else (passed + 1, failed)
        self.stdout.write(f"{passed} passed, {failed} failed")
        if failed:
            sys.exit(1)


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in (".json", ".yaml", ".yml"))
        if not files:
            raise Unreadable(f"{path}: there is no .json or .yaml file in this directory.")
        yield from files
    else:
        yield path


def _read(file: Path) -> list[dict[str, Any]]:
    try:
        text = file.read_text(encoding="utf-8")
        found = json.loads(text) if file.suffix == ".json" else yaml.load(text, Loader=LOADER)  # noqa: S506 (both are safe)
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, yaml.YAMLError) as error:
        raise Unreadable(f"{file}: cannot be read: {error}") from error
    if not isinstance(found, list) or not all(isinstance(scenario, dict) for scenario in found):
        raise Unreadable(f"{file}: a scenario file is a list of scenarios.")
    return found
