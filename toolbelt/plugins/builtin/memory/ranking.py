"""Rank notes by the words of a query: the rarer the word, the better.

A whole word (without its ending) counts most. A part of a word counts less, so that ``birth`` finds ``birthday``, and
so that scripts without spaces can be searched.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from toolbelt.core.search import queries, words
from toolbelt.plugins.builtin.memory import notes

_PART, _TAG = 0.4, 1.5
# One or two letters are a part of nearly everything.
_MIN_PART_LENGTH = 3
# A model may paste a page as the query; this many words are enough.
_MAX_WORDS = 32


def rank(candidates: Sequence[notes.Note], query: str, limit: int) -> list[notes.Note]:
    """Return the best ``limit`` notes, best first. Notes of equal rank stay in the given order."""
    of_query = dict(list(queries.parse(notes.clean(query)).words.items())[:_MAX_WORDS])
    weights = [_weights(note, of_query) for note in candidates]
    scored = []
    rarity = {
        stem: math.log(
            1 + len(candidates) / (1 + sum(1 for weights_by_stem in weights if stem in weights_by_stem))
        )
        for stem in of_query
    }
    for note, weights_by_stem in zip(candidates, weights, strict=True):
        if weights_by_stem:
            scored.append((sum(weight * rarity[stem] for stem, weight in weights_by_stem.items()), note))
    scored.sort(key=lambda pair: -pair[0])
    return [note for _, note in scored[:limit]]


def _weights(note: notes.Note, of_query: dict[str, str]) -> dict[str, float]:
    """Return the weight of each word of the query that the note contains."""
    stems = {words.stem(word) for word in words.words_of(note.text)}
    tags = {words.stem(word) for tag in note.tags for word in words.words_of(tag)}
    text = " ".join((note.text, *note.tags)).casefold()
    weights = {}
    for stem, word in of_query.items():
        if stem in tags:
            weights[stem] = _TAG
        elif stem in stems:
            weights[stem] = 1.0
        elif (len(word) >= _MIN_PART_LENGTH or not word.isascii()) and (word in text or stem in text):
            weights[stem] = _PART
    return weights
