"""How does a whole configuration come in, or go out, as a file? (``manage.py belt export|import|check``)"""

from __future__ import annotations

import argparse
import getpass
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from toolbelt.control import actors, belt_texts, belts
from toolbelt.core import errors
from toolbelt.management import terminal


class Command(terminal.Command):
    """Export, import or check a belt."""

    help = "Export the configuration as a belt (YAML or JSON), import one, or check one without touching anything."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Take what to do, and the file; ``-`` is the terminal."""
        parser.add_argument("act", choices=("export", "import", "check"))
        parser.add_argument(
            "file", metavar="FILE", nargs="?", default="-", help="YAML or JSON; - for the terminal"
        )
        parser.add_argument("--reason", default="", help="why, for the audit log (import)")

    def handle(self, *args: Any, act: str, file: str, **options: Any) -> None:
        """Do it; a belt that is not sound is refused whole, with every problem on a line of its own."""
        if act == "export":
            self._export(file)
            return
        document = _read(file)
        if act == "check":
            problems = belts.check(document)
            if problems:
                raise CommandError(_said(problems))
            self.stdout.write("The belt is sound.")
            return
        try:
            actor = actors.Actor(name=getpass.getuser(), via="import")
            done = belts.import_(actor, document, reason=options["reason"])
        except errors.Invalid as refused:
            raise CommandError(_said(refused.problems)) from refused
        self.stdout.write(f"{done.created} created, {done.changed} changed, {done.same} as they were.")
        for kind in done.ordered:
            self.stdout.write(f"The order of {kind.replace('_', '-')}s is the belt's now.")

    def _export(self, file: str) -> None:
        text = belt_texts.write(belts.export(), "json" if file.endswith(".json") else "yaml")
        if file == "-":
            self.stdout.write_yaml(text)
            return
        try:
            Path(file).write_text(text, encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{file}: cannot be written: {error.strerror}.") from error


def _read(file: str) -> dict[str, Any]:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        found = belt_texts.read(text)
    except OSError as error:
        raise CommandError(f"{file}: cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{file}: cannot be read: it is not UTF-8 ({error.reason}).") from error
    except errors.Invalid as error:
        raise CommandError(f"{file}: {error}") from error
    if not isinstance(found, dict):
        raise CommandError(
            f"{file}: a belt is a mapping with plugins, tools, toolkits, loadouts, agents, sub_apps."
        )
    return found


def _said(problems: Any) -> str:
    return "\n".join(["The belt is not sound:", *(f"  {problem}" for problem in problems)])
