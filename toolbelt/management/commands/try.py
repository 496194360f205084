"""``manage.py try PATH...``: run scenario files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from toolbelt.control.config import scenarios
from toolbelt.core import errors
from toolbelt.management import terminal

SUFFIXES = (".json", ".yaml", ".yml")


class Unreadable(Exception):
    """A path has no readable scenarios. The message names the path and the reason."""


class Command(terminal.Command):
    """Run scenario files without a database."""

    help = (
        "Run scenario files (JSON or YAML) and print the expectations that fail. Does not use the database. "
        "Exits with 0 if all pass, 1 if one fails, 2 if a file cannot be read."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the paths of files and directories."""
        parser.add_argument(
            "paths",
            nargs="+",
            metavar="PATH",
            type=Path,
            help="a file, or a directory whose .json, .yaml and .yml files are run (without subdirectories)",
        )

    def handle(self, *args: Any, paths: list[Path], **options: Any) -> None:
        """Run the scenarios. Exit with 1 if one fails, and with 2 if a file cannot be read."""
        passed = failed = 0
        try:
            # Read all files before running any, so that an unreadable file stops the command at the start.
            documents = [_read(file) for path in paths for file in _files(path)]
        except Unreadable as error:
            self.stderr.write(_in_one_line(str(error)))
            sys.exit(2)
        for document in documents:
            for failures in scenarios.run_all(document):
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
            raise Unreadable(f"{path}: this directory has no .json or .yaml files.")
        yield from files
    else:
        yield path


def _read(file: Path) -> list[dict[str, Any]]:
    try:
        # Editors on Windows begin a file with a byte order mark.
        text = file.read_text(encoding="utf-8-sig")
        return scenarios.read(text, "json" if file.suffix.lower() == ".json" else "yaml")
    except OSError as error:
        raise Unreadable(f"{file}: cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise Unreadable(f"{file}: cannot be read: it is not UTF-8 ({error.reason}).") from error
    except errors.Invalid as error:
        raise Unreadable(f"{file}: {error}") from error


def _in_one_line(text: str) -> str:
    """Return the text with control and other unprintable characters escaped, so that it is safe for a terminal."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
