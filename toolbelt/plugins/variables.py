"""What does ``${VAR}`` in a text stand for? The variable's value, also inside a longer text.

``$${`` stands for a plain ``${``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_OPENED = re.compile(r"\$\$\{|\$\{([^{}]*)(\}?)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def fill(text: str, environ: Mapping[str, str]) -> tuple[str, list[str]]:
    """Fill the variables in; say what is wrong with those that cannot be. A value is never read for variables."""
    problems: list[str] = []

    def value(match: re.Match[str]) -> str:
        if match.group() == "$${":
            return "${"
        name, closed = match.groups()
        if not closed or not _NAME.fullmatch(name):
            problems.append(
                f"{match.group()!r} is not a variable: write ${{NAME}}, or $${{ for a plain ${{ in a text."
            )
        elif name not in environ:
            problems.append(f"The variable {name!r} is not set: set it in the environment of the server.")
        else:
            return environ[name]
        return ""

    return _OPENED.sub(value, text), problems
