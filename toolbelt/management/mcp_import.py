"""``manage.py mcp import FILE``: add the servers of an MCP client's configuration file."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from toolbelt import conf
from toolbelt.control import writing
from toolbelt.control.servers.client_files import importing, reading
from toolbelt.core import errors


def add_arguments(parser: Any) -> None:
    """Add the arguments."""
    parser.add_argument(
        "file", metavar="FILE", help="mcp.json, a client's settings, a bundle, or - for standard input"
    )
    parser.add_argument(
        "--only", metavar="NAME", action="append", default=[], help="only this server; may be repeated"
    )
    parser.add_argument("--toml", action="store_true", help="the file is TOML (default: by its name)")
    parser.add_argument("--dry-run", action="store_true", help="only print what would be stored")
    parser.add_argument("--reason", metavar="TEXT", default="", help="a reason, for the audit log")


def run(write: writing.Write, options: dict[str, Any]) -> Iterator[str]:
    """Import the file, and yield what to print. Raise CommandError with the line and reason of each problem."""
    file = options["file"]
    is_toml = options["toml"] or file.endswith(".toml")
    try:
        text = _text(file)
        preview = importing.preview(text, is_toml=is_toml, only=options["only"], directory=_directory(file))
    except errors.Invalid as error:
        lines = [f"Nothing was imported from {file}:", *(f"  {problem}" for problem in error.problems)]
        if isinstance(error, importing.UnusableServers):
            lines.append("To import only some of its servers, add --only NAME.")
        raise CommandError("\n".join(lines)) from error
    yield from _described(preview)
    names = () if options["dry_run"] else importing.store(write, preview)
    if names:
        yield f"Stored {', '.join(names)}. Their tools will await review."
    on = [name for name in names if name not in preview.off]
    if preview.variables:
        values = "are" if options["dry_run"] else "were"
        yield f"Set these variables in the environment of Toolbelt's servers; their values {values} not stored:"
        yield from (f"  {name}" for name in preview.variables)
    if on:
        yield f"Then list their tools: {conf.COMMAND} mcp refresh {' '.join(on)}"
    if not names:
        yield "Nothing was stored."


def _text(file: str) -> str:
    if file == "-":
        return sys.stdin.read()
    try:
        with Path(file).open("rb") as opened:
            return reading.text_of(opened)
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}.") from error


def _directory(file: str) -> str:
    """Return where the file is, with what is beside it; nothing for a bundle and for standard input."""
    if file == "-" or zipfile.is_zipfile(file):
        return ""
    directory = Path(file).resolve().parent
    # Claude Code has the manifest of a plugin in there.
    return str(directory.parent if directory.name == ".claude-plugin" else directory)


def _described(preview: importing.Preview) -> Iterator[str]:
    for server in preview.servers:
        source = "" if server.name == server.source else f" (in the file: {server.source})"
        yield f"{server.name}{source}: {importing.connection_text(server)}"
        for section in ("env", "headers"):
            for name, value in server.connection.get(section, {}).items():
                yield f"  {name}: {value}"
        for place, name in server.withheld.items():
            yield f"  Withheld: {place}. Set {name}."
        if not server.active:
            yield "  It is off in the file, and arrives off."
        yield from (f"  {note}" for note in (*server.rejections, *server.notes))
        if server.unused:
            yield f"  Not taken over: {', '.join(server.unused)}."
    yield from preview.notes
    if preview.unused:
        yield f"Not taken over from the file: {', '.join(preview.unused)}."
