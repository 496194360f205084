"""Safe output for commands: text from agents and upstream servers cannot control the operator's terminal.

Control, bidirectional and invisible characters are written as ``[U+202E]``, and known secrets are masked.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any, Literal, NoReturn, TextIO

from django.core.management import base

from toolbelt import conf
from toolbelt.core import errors
from toolbelt.core.imported import cleaning
from toolbelt.runtime import masking

_NOT_ASCII = re.compile(r"[^\x20-\x7e\n\t]")


class Output(base.OutputWrapper):
    """A stream of text for people."""

    def write(  # type: ignore[override]
        self, msg: str = "", style_func: Any = None, ending: str | None = None
    ) -> None:
        """Write a message."""
        super().write(cleaning.escape_hidden(masking.mask(str(msg))), style_func, ending)

    def write_json(self, text: str) -> None:
        """Write a JSON document. Invisible characters are escaped, which does not change its values."""
        super().write(_NOT_ASCII.sub(_escaped, text))

    def write_yaml(self, text: str) -> None:
        """Write a YAML document. On a terminal, invisible characters are made visible."""
        super().write(cleaning.escape_hidden(text) if self.isatty() else text)


class Command(base.BaseCommand):
    """A command that writes through :class:`Output`."""

    # Toolbelt's own. Django's import every page, which takes longer than most commands; `serve`, `migrate` and `check`
    # run them.
    requires_system_checks: list[str] | tuple[str, ...] | Literal["__all__"] = ["toolbelt"]
    stdout: Output
    stderr: Output

    def __init__(
        self, stdout: TextIO | None = None, stderr: TextIO | None = None, *args: Any, **options: Any
    ) -> None:
        super().__init__(stdout, stderr, *args, **options)
        self._write_to(stdout or sys.stdout, stderr or sys.stderr)

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command, with the streams of this invocation."""
        self._write_to(options.pop("stdout", None), options.pop("stderr", None))
        return super().execute(*args, **options)

    def _write_to(self, stdout: Any, stderr: Any) -> None:
        if stdout:
            self.stdout = Output(stdout)
        if stderr:
            self.stderr = Output(stderr)
            self.stderr.style_func = self.style.ERROR


class ComparingCommand(Command):
    """A command whose exit code says whether something differs, so that wrong arguments exit with another one."""

    NOTHING, ERROR, DIFFERS = 0, 1, 2

    def create_parser(self, *args: Any, **options: Any) -> base.CommandParser:
        """Return a parser that exits with 1 for wrong arguments."""
        parser = super().create_parser(*args, **options)
        refuse = parser.error

        def error(message: str) -> NoReturn:
            try:
                refuse(message)
            except SystemExit as ended:
                raise SystemExit(self.ERROR) from ended
            raise AssertionError  # it exits, or raises CommandError

        parser.error = error  # type: ignore[method-assign]
        return parser


def explained(error: errors.ToolbeltError) -> str:
    """Return the message of an error; if a user does not exist, with how to create one."""
    if not isinstance(error, errors.NotFound) or error.what not in ("user", "operator"):
        return str(error)
    return f"{error} To create a user, use People & roles in the dashboard, or run `{conf.COMMAND} user create NAME`."


def _escaped(match: re.Match[str]) -> str:
    character = match.group()
    return json.dumps(character)[1:-1] if cleaning.is_hidden(character) else character
