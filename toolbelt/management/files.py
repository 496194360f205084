"""Reading of configuration files for commands."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from toolbelt.control.config import belt_texts
from toolbelt.core import errors


def read(file: str) -> Any:
    """Return the document of a YAML or JSON file, ``-`` for standard input; raise CommandError if it is unreadable."""
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8-sig")
        return belt_texts.read(text)
    except OSError as error:
        raise CommandError(f"{file}: cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{file}: cannot be read: it is not UTF-8 ({error.reason}).") from error
    except errors.Invalid as error:
        raise CommandError(f"{file}: {error}") from error


def read_belt(file: str) -> dict[str, Any]:
    """Return the belt in a file; raise CommandError if it is none."""
    document = read(file)
    if not isinstance(document, dict):
        raise CommandError(
            f"{file}: a belt must be a mapping of plugins, tools, toolkits, loadouts, agents, sub_apps."
        )
    return document


def invalid(problems: Iterable[errors.Problem]) -> CommandError:
    """Return the error of a belt with these problems, with a line for each."""
    return CommandError("\n".join(["The belt is not valid:", *(f"  {problem}" for problem in problems)]))
