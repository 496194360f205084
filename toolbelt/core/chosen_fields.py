"""Arguments that records of calls keep, chosen by the tool's operator: for rules on calls that are written later.

A path names an argument, and what is in it: ``amount``, ``to.domain``. Names that contain a dot cannot be chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from toolbelt.core import secret_texts

MAX_COUNT, MAX_LENGTH = 10, 200
# The most that a record keeps, as JSON.
MAX_BYTES = 1024


def problems(paths: Sequence[str | None]) -> Iterator[str]:
    """Yield why these paths cannot be recorded."""
    if len(paths) > MAX_COUNT:
        yield f"These are {len(paths)} fields: choose at most {MAX_COUNT}."
    for path in paths:
        names = (path or "").split(".")
        if not all(names) or len(path or "") > MAX_LENGTH:
            yield f"{path!r} is no path of an argument: write a name, or names with dots between them."
        elif secret := next(filter(secret_texts.is_name, names), ""):
            yield f"{secret!r} is the name of a secret, which is never recorded: leave it out."


def find(paths: Sequence[str], arguments: Any) -> dict[str, Any]:
    """Return what the arguments have at these paths, by path; what they do not have is left out."""
    found: dict[str, Any] = {}
    for path in paths:
        value = arguments
        for name in path.split("."):
            if not isinstance(value, Mapping) or name not in value:
                break
            value = value[name]
        else:
            found[path] = value
    return found
