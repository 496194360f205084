"""What was repaired of the schemas that a server lists, in the form in which it is stored, and in words.

Most repairs have one reading: null where a keyword may be absent, ``[]`` from a language whose empty object is a list.
Where a repair accepts more than its server may have meant, it is a finding, which an operator should see.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from toolbelt.core import schema, texts
from toolbelt.core.imported import cleaning

MAX_STORED = 20
MAX_PATH_LENGTH = 120
MAX_QUOTED = 60

Code = Literal[
    "form", "draft", "annotation", "reference",  # with one reading
    "type", "unusable", "name", "dangling", "external", "circular", "arguments", "missing", "result", "more",
]  # fmt: skip
# The codes of repairs that are no findings, with their sentences.
_QUIET: Mapping[str, str] = {
    "form": "{path}: {found} is read as {read}",
    "draft": "{path}: {found} was left out, because the schema is in the form of an older draft",
    "annotation": "{path}: {found} was left out, because it only describes and has the wrong type",
    "reference": "{path}: {found} is read as {read}, the same place within the schema",
}
_SAYS_NOTHING = "{path}: {found} says nothing there, and was left out"
_FINDINGS: Mapping[str, str] = {
    "type": "{path}: {found} is not a type of JSON Schema; it is read as {read}",
    "unusable": "{path}: {found} cannot be used; it was left out",
    "name": "{path}: {found} is not in the schema; it is read as {read}",
    "dangling": "{path}: {found} is not in the schema; any value is accepted there",
    "external": "{path}: {found} will not be fetched; any value is accepted there",
    "circular": "{path}: {found} only leads back to itself; any value is accepted there",
    "arguments": "{path}: {found} does not describe named arguments; any arguments are accepted",
    "missing": "{path}: its server lists no schema of its arguments; any are accepted",
    "result": "{path}: it was left out: {found}",
    "more": "{found} more repairs of its schemas are not listed",
}
NOTHING, ANYTHING = "nothing", "any value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """One repair: its place, as in ``inputSchema.properties.q.type``, and what was ``found`` and ``read`` there, as
    short JSON.
    """

    path: str
    code: Code
    found: str = ""
    read: str = NOTHING

    @property
    def is_finding(self) -> bool:
        """Return whether an operator should see the repair before the tool is approved."""
        return self.code in _FINDINGS

    @property
    def sentence(self) -> str:
        """Return the repair in words."""
        words = _FINDINGS.get(self.code) or _QUIET[self.code]
        if self.code == "form" and self.read == NOTHING:
            words = _SAYS_NOTHING
        return words.format(path=self.path, found=self.found, read=self.read)


Repairs = tuple[Repair, ...]


def quoted(value: Any) -> str:
    """Return a value as short JSON, in which hidden characters are visible."""
    return texts.cut(cleaning.escape_hidden(schema.canonical(value)), MAX_QUOTED)


def path(*parts: str) -> str:
    """Return a place in words; of a long one, the end."""
    joined = cleaning.escape_hidden(".".join(parts))
    return joined if len(joined) <= MAX_PATH_LENGTH else "…" + joined[-MAX_PATH_LENGTH:]


def written(repaired: Iterable[Repair]) -> dict[str, Any]:
    """Return repairs as JSON, in which they are stored: findings first, and the number of those beyond the limit."""
    ordered = sorted(repaired, key=lambda repair: not repair.is_finding)
    document = {
        repair.path: {"code": repair.code, "found": repair.found, "read": repair.read}
        for repair in ordered[:MAX_STORED]
    }
    if (left := len(ordered) - MAX_STORED) > 0:
        document["…"] = {"code": "more", "found": str(left), "read": NOTHING}
    return document


@functools.lru_cache(maxsize=4096)
def read(text: str) -> Repairs:
    """Return stored repairs, findings first; what was not written here is left out."""
    if not text:
        return ()
    repairs = [
        Repair(
            path=place,
            code=fields["code"],
            found=str(fields.get("found", "")),
            read=str(fields.get("read", "")),
        )
        for place, fields in schema.mapping(text, {}).items()
        if isinstance(fields, Mapping) and fields.get("code") in {*_QUIET, *_FINDINGS}
    ]
    return tuple(sorted(repairs, key=lambda repair: not repair.is_finding))
