"""Substitution of ``${VAR}`` in texts. ``$${`` is an escaped ``${``."""

from __future__ import annotations

import re
from collections.abc import Mapping

_OPENED = re.compile(r"\$\$\{|\$\{([^{}]*)(\}?)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def fill(text: str, environ: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return the text with variables substituted, and the problems. Values are not searched for variables."""
    problems: list[str] = []

    def value(match: re.Match[str]) -> str:
        if match.group() == "$${":
            return "${"
        name, closed = match.groups()
        if not closed or not _NAME.fullmatch(name):
            problems.append(
                f"{match.group()!r} is not a variable. Write ${{NAME}}, or $${{ for a literal ${{."
            )
        elif name not in environ:
            problems.append(f"The variable {name!r} is not set. Set it in the environment of the server.")
        else:
            return environ[name]
        return ""

    return _OPENED.sub(value, text), problems
