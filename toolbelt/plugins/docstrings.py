"""What does a function's docstring say of the function, and of each parameter?

Read are the two ways in which parameters are commonly told of: a section ``Args:`` (Google), and fields such as
``:param query:`` (Sphinx). All that stands before is the description.
"""

from __future__ import annotations

import inspect
import re
from typing import NamedTuple

_ARGS = re.compile(r"(?:Args|Arguments|Parameters):")
# What these tell is not for the model; sections of other names (Note, Example) are part of the description.
_SECTION = re.compile(r"(?:Args|Arguments|Parameters|Returns?|Yields|Raises|Attributes):")
_PARAMETER = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)")
_FIELD = re.compile(r":(\w+)\s*([^:]*):\s*(.*)")
_PARAMETER_FIELDS = ("param", "parameter", "arg", "argument")


class Told(NamedTuple):
    """What a docstring tells: ``description``, and of parameters by their name."""

    description: str
    parameters: dict[str, str]


def read(docstring: str | None) -> Told:
    """Read a docstring; what follows the parameters (what is returned, what is raised) is not for the model."""
    description: list[str] = []
    parameters: dict[str, list[str]] = {}
    # Where a line that begins nothing new belongs to: the description, a parameter, or nothing that is kept.
    current: list[str] = description
    in_args, args_indent = False, 0
    for line in inspect.cleandoc(docstring or "").splitlines():
        text, indent = line.strip(), len(line) - len(line.lstrip())
        if field := _FIELD.fullmatch(text):
            kind, name, said = field.groups()
            current = []
            if kind in _PARAMETER_FIELDS and name.strip():
                # ":param int limit:" names the type first.
                current = parameters.setdefault(name.split()[-1], [said])
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
            current.append(text)
    return Told(
        "\n".join(description).strip(),
        {name: " ".join(filter(None, said)) for name, said in parameters.items()},
    )
