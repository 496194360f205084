"""What is new for a model, against the tools that it was already given? (wire.md: A surface)

The caller says what it has declared, as name and hash of each tool, and takes the same along for the next time: nothing
has to be remembered here, and any process can answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from toolbelt.core import definitions, schema

DIGITS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """What was added, what is gone and what reads otherwise now: names, in order."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]

    def document(self) -> dict[str, list[str]]:
        """Give the difference as JSON."""
        return {"added": list(self.added), "removed": list(self.removed), "changed": list(self.changed)}


def hashes(sent: Iterable[definitions.Definition]) -> dict[str, str]:
    """Give the hash of each definition by name, in order: of what a model reads, not of where the tool comes from."""
    return {one.name: _hash(one) for one in sorted(sent, key=lambda one: one.name)}


def difference(now: Mapping[str, str], before: Mapping[str, str]) -> Delta:
    """Compare what the model is to have now with what it was given before."""
    return Delta(
        added=tuple(sorted(now.keys() - before.keys())),
        removed=tuple(sorted(before.keys() - now.keys())),
        changed=tuple(sorted(name for name in now.keys() & before.keys() if now[name] != before[name])),
    )


def _hash(one: definitions.Definition) -> str:
    read = schema.canonical([one.name, one.description, one.input_schema])
    return hashlib.sha256(read.encode()).hexdigest()[:DIGITS]
