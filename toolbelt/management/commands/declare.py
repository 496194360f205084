"""``manage.py declare PLUGIN FILE``: declare the tools that an agent's own program runs."""

from __future__ import annotations

import argparse
import getpass
from typing import Any

from django.core.management.base import CommandError

from toolbelt.control import writing
from toolbelt.control.servers import client_plugins
from toolbelt.core import errors
from toolbelt.management import files, terminal


class Command(terminal.Command):
    """Declare the tools of a plugin that an agent's own program runs."""

    help = (
        "Declare all tools of a plugin that an agent's own program runs, in place of those declared before. New and"
        " changed tools await review, unless the plugin is trusted."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the plugin, the file, and the reason."""
        parser.add_argument("plugin", metavar="PLUGIN", help="the plugin's name")
        parser.add_argument(
            "file", metavar="FILE", help="a JSON or YAML list of tools; - reads it from standard input"
        )
        parser.add_argument("--reason", default="", metavar="TEXT", help="the reason, for the audit log")

    def handle(self, *args: Any, **options: Any) -> None:
        """Declare the tools, and print what changed."""
        try:
            declaration = client_plugins.declare(
                writing.by(getpass.getuser(), via="command", reason=options["reason"]),
                options["plugin"],
                _tools(options["file"]),
            )
        except errors.ToolbeltError as error:
            raise CommandError(str(error)) from error
        lines = {
            "created": declaration.created,
            "changed": declaration.changed,
            "retired": declaration.retired,
        }
        for word, keys in lines.items():
            for key in keys:
                self.stdout.write(f"{word} {key}")
        if waiting := len(declaration.unseen) + len(declaration.held):
            self.stdout.write(f"To review: {waiting}. See the page of the plugin {options['plugin']}.")
        if not any(lines.values()):
            self.stdout.write("No changes: these tools were declared already.")


def _tools(file: str) -> list[dict[str, Any]]:
    document = files.read(file)
    if isinstance(document, list) and all(isinstance(tool, dict) for tool in document):
        return document
    raise CommandError(f"{file}: This is not a list of tools. Each is a mapping with a name.")
