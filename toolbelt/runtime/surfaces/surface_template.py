"""The bytes of a surface's document, split so that all requests in one state can share them.

Documents of one state differ only in the delta, the ids and the revision. The keys of a canonical document are sorted,
so the ids and the revision are adjacent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.core import schema, tool_deltas
from toolbelt.runtime.records import context_use

DELTA = "delta"
IDS = ("request_id", "revision", "session")


@dataclass(frozen=True, slots=True, kw_only=True)
class SurfaceTemplate:
    """A surface's document in three parts; ``declared`` is the hash of each of its tools, by name.

    ``tokens`` is what the surface costs a model. ``has_focus``: it contains a directive.
    """

    etag: str
    declared: Mapping[str, str]
    before: bytes
    between: bytes
    after: bytes
    tokens: context_use.Tokens = context_use.NOT_COUNTED
    has_focus: bool = False

    @property
    def size(self) -> int:
        """Return the size in bytes, for the cache."""
        return len(self.before) + len(self.between) + len(self.after)

    def render(
        self,
        *,
        request_id: str | None,
        revision: int,
        session: str | None,
        declared: Mapping[str, str] | None,
        is_stale: bool = False,
        append: Mapping[str, Any] | None = None,
    ) -> bytes:
        """Return the document of one request. ``declared`` is what the model already has; None if unknown.

        ``is_stale`` and ``append`` add a field each that other documents do not have.
        """
        delta = "null"
        if declared is not None:
            delta = schema.canonical(tool_deltas.difference(self.declared, declared).document())
        ids = f'"request_id":{_text(request_id)},"revision":{revision},"session":{_text(session)}'
        if is_stale:
            ids += ',"stale":true'
        if append is not None:
            ids += f',"append":{schema.canonical(append)}'
        return b"".join((self.before, delta.encode(), self.between, ids.encode(), self.after))


def _text(value: str | None) -> str:
    return "null" if value is None else schema.canonical(value)


def split(document: Mapping[str, Any], etag: str) -> SurfaceTemplate:
    """Split a surface's document. Raise ValueError if its keys do not have the expected order."""
    fixed = document.keys() - {DELTA, *IDS}
    before = {key: document[key] for key in fixed if key < DELTA}
    between = {key: document[key] for key in fixed if DELTA < key < IDS[0]}
    after = {key: document[key] for key in fixed if key > IDS[-1]}
    if not (before and between and after) or len(before) + len(between) + len(after) < len(fixed):
        raise ValueError(f"not a surface document: {', '.join(sorted(document))}.")
    return SurfaceTemplate(
        etag=etag,
        declared=document["declared"],
        before=f'{schema.canonical(before)[:-1]},"{DELTA}":'.encode(),
        between=f",{schema.canonical(between)[1:-1]},".encode(),
        after=f",{schema.canonical(after)[1:]}".encode(),
    )
