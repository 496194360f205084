"""How are the bytes of an answer kept, so that all requests in one state share them?

Cut where two requests may differ: at the difference to what the model was given, and at the ids with the revision. The
keys of a canonical document are sorted, so the ids stand side by side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.core import declared, schema

DIFFERENCE = "delta"
IDS = ("request_id", "revision", "session")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """A surface's document in three parts; ``declared`` is what it says of its tools, by name."""

    etag: str
    declared: Mapping[str, str]
    before: bytes
    between: bytes
    after: bytes

    @property
    def size(self) -> int:
        """Say how many bytes are kept."""
        return len(self.before) + len(self.between) + len(self.after)

    def joined(
        self,
        *,
        request_id: str | None,
        revision: int,
        session: str | None,
        given: Mapping[str, str] | None,
        is_stale: bool = False,
    ) -> bytes:
        """Put the document of one request together; ``given``: what the model was given, None: nobody says.

        ``is_stale`` adds a mark that other documents do not have.
        """
        difference = "null"
        if given is not None:
            difference = schema.canonical(declared.difference(self.declared, given).document())
        ids = f'"request_id":{_text(request_id)},"revision":{revision},"session":{_text(session)}'
        if is_stale:
            ids += ',"stale":true'
        return b"".join((self.before, difference.encode(), self.between, ids.encode(), self.after))


def _text(value: str | None) -> str:
    return "null" if value is None else schema.canonical(value)


def cut(document: Mapping[str, Any], etag: str) -> Parts:
    """Cut a surface's document. Raises ValueError for one whose keys do not stand as they must for that."""
    fixed = document.keys() - {DIFFERENCE, *IDS}
    before = {key: document[key] for key in fixed if key < DIFFERENCE}
    between = {key: document[key] for key in fixed if DIFFERENCE < key < IDS[0]}
    after = {key: document[key] for key in fixed if key > IDS[-1]}
    if not (before and between and after) or len(before) + len(between) + len(after) < len(fixed):
        raise ValueError(f"no document of a surface: {', '.join(sorted(document))}.")
    return Parts(
        etag=etag,
        declared=document["declared"],
        before=f'{schema.canonical(before)[:-1]},"{DIFFERENCE}":'.encode(),
        between=f",{schema.canonical(between)[1:-1]},".encode(),
        after=f",{schema.canonical(after)[1:]}".encode(),
    )
