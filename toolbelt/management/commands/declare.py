"""``manage.py declare PLUGIN FILE``: declare the tools that an agent's own program runs."""

from __future__ import annotations

import argparse
import getpass
import json
from typing import Any

from django.core.management.base import CommandError

from toolbelt.control import writing
from toolbelt.control.servers import client_plugins
from toolbelt.core import errors
from toolbelt.management import files, terminal


class Command(terminal.Command):
    """Declare the tools of a plugin that an agent's own program runs."""

    help = (
        "Declare tools of a plugin that an agent's own program runs. New and changed tools await review, unless the"
        " plugin is trusted."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the plugin, the file, and the reason."""
        parser.add_argument("plugin", metavar="PLUGIN", help="the plugin's name")
        parser.add_argument(
            "file", metavar="FILE", help="a JSON or YAML list of tools; - reads it from standard input"
        )
        parser.add_argument(
            "--complete", action="store_true", help="these are all tools of the plugin: retire the others"
        )
        parser.add_argument(
            "--hashes",
            action="store_true",
            help="store nothing, and print the hash of each tool, for `mcp approve --file`",
        )
        parser.add_argument("--reason", default="", metavar="TEXT", help="the reason, for the audit log")

    def handle(self, *args: Any, **options: Any) -> None:
        """Declare the tools, and print what changed."""
        try:
            if options["hashes"]:
                hashes = client_plugins.hashes(options["plugin"], _tools(options["file"]))
                self.stdout.write_json(json.dumps(hashes, indent=2, sort_keys=True))
                return
            declaration = client_plugins.declare(
                writing.by(getpass.getuser(), via="command", reason=options["reason"]),
                options["plugin"],
                _tools(options["file"]),
                complete=options["complete"],
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
        state = client_plugins.state_of(options["plugin"], _tools(options["file"]))
        if state.waiting or state.withdrawn:
            parts = [("To review", state.waiting), ("withdrawn", state.withdrawn)]
            named = "; ".join(f"{word}: {', '.join(keys)}" for word, keys in parts if keys)
            self.stdout.write(f"{named}. See `{state.show}`.")
        if not any(lines.values()):
            self.stdout.write("No changes: these tools were declared already.")


def _tools(file: str) -> list[dict[str, Any]]:
    document = files.read(file)
    if isinstance(document, list) and all(isinstance(tool, dict) for tool in document):
        return document
    raise CommandError(f"{file}: This is not a list of tools. Each is a mapping with a name.")
