"""Do these scenarios hold? (``manage.py try PATH...``)"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from toolbelt.control import scenarios
from toolbelt.core import errors
from toolbelt.management import terminal

SUFFIXES = (".json", ".yaml", ".yml")


class Unreadable(Exception):
    """A path that leads to no scenarios; the message names it and says why."""


class Command(terminal.Command):
    """Run scenario files through the pure core, without a database."""

    help = (
        "Run scenario files (JSON or YAML) and say which expectations do not hold. Touches no database. "
        "Exits with 0 if all hold, 1 if one does not, 2 if a file cannot be read."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Take files, or directories whose .json and .yaml files are run."""
        parser.add_argument(
            "paths",
            nargs="+",
            metavar="PATH",
            type=Path,
            help="a file, or a directory whose .json, .yaml and .yml files are run (not those of folders in it)",
        )

    def handle(self, *args: Any, paths: list[Path], **options: Any) -> None:
        """Exit 0 if all hold, 1 if one does not, 2 if a file cannot be read."""
        passed = failed = 0
        try:
            # Everything is read before anything runs: an unreadable file is no half-run.
            found = [_read(file) for path in paths for file in _files(path)]
        except Unreadable as error:
            self.stderr.write(_in_one_line(str(error)))
            sys.exit(2)
        for of_file in found:
            for failures in scenarios.run_all(of_file):
                for failure in failures:
                    self.stdout.write(_in_one_line(str(failure)))
                passed, failed = (passed, failed + 1) if failures else (passed + 1, failed)
        self.stdout.write(f"{passed} passed, {failed} failed")
        if failed:
            sys.exit(1)


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix.lower() in SUFFIXES and file.is_file())
        if not files:
            raise Unreadable(f"{path}: there is no .json or .yaml file in this directory.")
        yield from files
    else:
        yield path


def _read(file: Path) -> list[dict[str, Any]]:
    try:
        # Editors on Windows begin a file with a mark.
        text = file.read_text(encoding="utf-8-sig")
        return scenarios.read(text, "json" if file.suffix.lower() == ".json" else "yaml")
    except OSError as error:
        raise Unreadable(f"{file}: cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise Unreadable(f"{file}: cannot be read: it is not UTF-8 ({error.reason}).") from error
    except errors.Invalid as error:
        raise Unreadable(f"{file}: {error}") from error


def _in_one_line(text: str) -> str:
    """Write out what a terminal would obey, or could not show: what stands in the file is only said."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)
