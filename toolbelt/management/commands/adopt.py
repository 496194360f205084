"""``manage.py adopt FILE``: show the configuration of another program as a belt, or import it."""

from __future__ import annotations

import argparse
import getpass
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from toolbelt import conf
from toolbelt.control import writing
from toolbelt.control.config import adopting, belt_texts, belts
from toolbelt.core import errors
from toolbelt.management import files, terminal


class Command(terminal.Command):
    """Adopt the configuration of another program."""

    help = "Show the configuration of MindRoom, JD.AI, agent-adapter or SeaJelly as a belt; with --import, import it."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the file, and what it does not say."""
        parser.add_argument("file", metavar="FILE", help="a YAML or JSON file; - for standard input")
        parser.add_argument(
            "--kind", choices=adopting.KINDS, help="the program that wrote the file (default: detected)"
        )
        parser.add_argument(
            "--agent", metavar="AGENT", default="", help="the agent of a tools_config that names none"
        )
        parser.add_argument("--import", dest="imports", action="store_true", help="import the belt")
        parser.add_argument(
            "--plugins-file", metavar="PATH", help="write agent-adapter's plugins to this new plugins file"
        )
        parser.add_argument(
            "--confirm", action="store_true", help="import even changes that require confirmation"
        )
        parser.add_argument("--reason", metavar="TEXT", default="", help="a reason, for the audit log")

    def handle(self, *args: Any, file: str, **options: Any) -> None:
        """Print the belt, what is not imported, and what an import would do; or import it."""
        write = writing.by(getpass.getuser(), via="import", reason=options["reason"])
        write = write.replace(confirm=options["confirm"])
        try:
            document = files.read(file)
            adopted = adopting.convert(document, kind=options["kind"], agent=options["agent"])
            if options["imports"]:
                self._import(write, adopted, options["plugins_file"])
            else:
                self._preview(write, adopted)
        except errors.Invalid as error:
            raise CommandError(
                "\n".join([*_located(file, error.problems), "Nothing was imported."])
            ) from error
        except errors.ConfirmationRequired as error:
            raise CommandError(f"{file}: {error} To import it anyway, add --confirm.") from error
        except errors.ToolbeltError as error:
            raise CommandError(f"{file}: {error}") from error

    def _preview(self, write: writing.Write, adopted: adopting.Adopted) -> None:
        # Before anything is printed: a belt that cannot be imported is no preview.
        result = adopting.preview(write.replace(confirm=True), adopted)
        for content in (adopted.belt, adopted.plugins_file):
            if content:
                self.stdout.write_yaml(belt_texts.write(content, "yaml"))
        self._print_notes(adopted)
        self._list("Confirm or correct", map(adopted.in_file, result.warnings))
        if adopted.belt:
            self.stderr.write(f"To import: {_counted(result)} Add --import.", str)
        if adopted.plugins_file:
            self.stderr.write("To write the plugins file: add --import --plugins-file PATH.", str)

    def _import(self, write: writing.Write, adopted: adopting.Adopted, plugins_file: str | None) -> None:
        if adopted.plugins_file and not plugins_file:
            message = (
                "Plugins are code and are listed in a plugins file: name a new one with --plugins-file PATH."
            )
            raise errors.Refused(message)
        result = adopting.import_(write, adopted)
        self._print_notes(adopted)
        if adopted.plugins_file and plugins_file:
            _write_new(plugins_file, belt_texts.write(adopted.plugins_file, "yaml"))
            self.stdout.write(
                f"Wrote {plugins_file}. Set TOOLBELT_PLUGINS_FILE to it, then run"
                f" `{conf.COMMAND} plugins check` and `{conf.COMMAND} plugins sync`."
            )
        else:
            self.stdout.write(f"Imported {adopting.TITLES[adopted.kind]}: {_counted(result)}")

    def _print_notes(self, adopted: adopting.Adopted) -> None:
        self._list("Notes", adopted.notes)
        self._list("Not imported", adopted.skipped)

    def _list(self, title: str, lines: Iterable[errors.Problem]) -> None:
        """Print a list beside the belt, so that standard output holds the belt alone."""
        for number, line in enumerate(lines):
            if not number:
                self.stderr.write(f"{title}:", str)
            self.stderr.write(f"  {line}", str)


def _counted(result: belts.Imported) -> str:
    return f"{result.created} created, {result.changed} changed, {result.same} unchanged."


def _located(file: str, problems: Iterable[errors.Problem]) -> list[str]:
    return [f"{file}: {problem}" for problem in problems]


def _write_new(path: str, text: str) -> None:
    try:
        with Path(path).open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise errors.Refused(
            f"{path} already exists: name a new file, and add its entries to yours."
        ) from error
    except OSError as error:
        raise errors.Refused(f"{path} cannot be written: {error.strerror}.") from error
