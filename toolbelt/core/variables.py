"""Variables in texts: ``${NAME}``, ``${NAME:-default}`` and ``${env:NAME}``. ``$${`` is a literal ``${``.

A default is stored and shown as it is written, so for every check it is a part of the text that is written out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

_REFERENCE = re.compile(r"\$\$\{|\$\{(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^{}]*))?\}")
_OPENED = re.compile(rf"{_REFERENCE.pattern}|\$\{{[^{{}}]*\}}?")


def names(text: str) -> Iterator[str]:
    """Yield the name of each variable in a text, in its order."""
    if "${" in text:
        yield from (match["name"] for match in _REFERENCE.finditer(text) if match["name"])


def required(text: str) -> Iterator[str]:
    """Yield the name of each variable in a text that has no default."""
    if "${" in text:
        found = _REFERENCE.finditer(text)
        yield from (match["name"] for match in found if match["name"] and match["default"] is None)


def written_out(text: str) -> str:
    """Return what a text says without its variables: each is replaced by its default, or by nothing."""
    if "${" not in text:
        return text
    return _REFERENCE.sub(lambda match: (match["default"] or "") if match["name"] else match[0], text)


def without_defaults(text: str) -> str:
    """Return the text with the same variables, none of which has a default."""
    return _REFERENCE.sub(lambda match: f"${{{match['name']}}}" if match["default"] else match[0], text)


def is_literal(text: str) -> bool:
    """Return whether a text refers to no variable, or writes out the default of one."""
    found = [match for match in _REFERENCE.finditer(text) if match["name"]] if "${" in text else []
    return not found or any(match["default"] for match in found)


def replaced(text: str, value: Callable[[str, str | None], str]) -> str:
    """Return the text with what ``value`` returns for each variable: it gets the name, and the default or None.

    What is no variable stays as it is.
    """

    def of_match(match: re.Match[str]) -> str:
        return value(match["name"], match["default"]) if match["name"] else "${"

    return _REFERENCE.sub(of_match, text)


def escaped(text: str) -> str:
    """Return a text that, filled in, is this one."""
    return text.replace("${", "$${")


def fill(text: str, environ: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return the text with variables substituted, and the problems. Values are not searched for variables.

    A variable that is not set, or empty, has its default, if there is one.
    """
    problems: list[str] = []

    def value(match: re.Match[str]) -> str:
        name, default = match["name"], match["default"]
        if match[0] == "$${":
            return "${"
        if not name:
            problems.append(f"{match[0]!r} is not a variable. Write ${{NAME}}, or $${{ for a literal ${{.")
        elif name in environ:
            return environ[name] or default or ""
        elif default is None:
            problems.append(f"The variable {name!r} is not set. Set it in the environment of the server.")
        return default or ""

    return _OPENED.sub(value, text), problems
