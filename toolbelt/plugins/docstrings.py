"""Parse a function's docstring into a description and the descriptions of its parameters.

Parameters are read from a section ``Args:`` (Google) and from fields such as ``:param query:`` (Sphinx). Everything
before them is the description, in which the wrapped lines of a paragraph are joined.
"""

from __future__ import annotations

import inspect
import re
from typing import NamedTuple

_ARGS = re.compile(r"(?:Args|Arguments|Parameters):")
# These sections are not for the model; other sections (Note, Example) are part of the description.
_SECTION = re.compile(r"(?:Args|Arguments|Parameters|Returns?|Yields|Raises|Attributes):")
_PARAMETER = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)")
_FIELD = re.compile(r":(\w+)\s*([^:]*):\s*(.*)")
# A line of a list, a table, a quotation or a heading, which is not joined with the previous line.
_OWN_LINE = re.compile(r"(?:[-*+>]|#{1,6}|\d+[.)]) |\|")
_PARAMETER_FIELDS = ("param", "parameter", "arg", "argument")


class Docstring(NamedTuple):
    """A description, and the descriptions of parameters by name."""

    description: str
    parameters: dict[str, str]


def parse(docstring: str | None) -> Docstring:
    """Return the parsed docstring, without its sections on return values and exceptions, which models do not need."""
    description: list[str] = []
    parameters: dict[str, list[str]] = {}
    # Where a continuation line belongs: to the description, to a parameter, or to nothing.
    current: list[str] = description
    in_args, args_indent = False, 0
    for line in inspect.cleandoc(docstring or "").splitlines():
        text, indent = line.strip(), len(line) - len(line.lstrip())
        if field := _FIELD.fullmatch(text):
            kind, name, text = field.groups()
            current = []
            if kind in _PARAMETER_FIELDS and name.strip():
                # ":param int limit:" names the type first.
                current = parameters.setdefault(name.split()[-1], [text])
            in_args = False
        elif indent == 0 and _SECTION.fullmatch(text):
            in_args, args_indent, current = bool(_ARGS.fullmatch(text)), 0, []
        elif (
            in_args
            and text
            and (parameter := _PARAMETER.fullmatch(text))
            and indent <= (args_indent or indent)
        ):
            args_indent = indent
            current = parameters.setdefault(parameter.group(1), [parameter.group(2)])
        else:
            current.append(line if current is description else text)
    return Docstring(
        _unwrapped(description),
        {name: " ".join(filter(None, lines)) for name, lines in parameters.items()},
    )


def _unwrapped(lines: list[str]) -> str:
    """Return the text with each paragraph on one line; indented lines, lists and tables keep their line breaks."""
    text = ""
    for before, line in zip(["", *lines], lines, strict=False):
        is_wrapped = before[:1].strip() and line[:1].strip() and not _OWN_LINE.match(line)
        text += f" {line}" if is_wrapped else f"\n{line}"
    return text.strip()
