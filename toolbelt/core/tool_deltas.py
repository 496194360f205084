"""The difference between the tools that a model has and those that it had before.

The caller sends the name and hash of each tool that it has declared, and gets those for the next time: nothing is
stored here, so any process can answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from toolbelt.core import definitions, schema

DIGITS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """The names of added, removed and changed tools, in order."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]

    def document(self) -> dict[str, list[str]]:
        """Return the difference as JSON."""
        return {"added": list(self.added), "removed": list(self.removed), "changed": list(self.changed)}


def hashes(sent: Iterable[definitions.Definition]) -> dict[str, str]:
    """Return the hash of each definition by name, in order. It covers what a model reads, not where the tool comes
    from.
    """
    return {
        definition.name: _hash(definition)
        for definition in sorted(sent, key=lambda definition: definition.name)
    }


def difference(now: Mapping[str, str], before: Mapping[str, str]) -> Delta:
    """Return the difference between the current hashes and those before."""
    return Delta(
        added=tuple(sorted(now.keys() - before.keys())),
        removed=tuple(sorted(before.keys() - now.keys())),
        changed=tuple(sorted(name for name in now.keys() & before.keys() if now[name] != before[name])),
    )


def _hash(definition: definitions.Definition) -> str:
    text = schema.canonical([definition.name, definition.description, definition.input_schema])
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]
