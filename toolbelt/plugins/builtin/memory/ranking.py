"""Which notes answer this query? Those that hold its words, the rarer the word the better.

A whole word (its ending does not matter) says most; a part of one says something, so that ``birth`` finds
``birthday``, and a query finds its place in scripts that write without spaces.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from toolbelt.core import search
from toolbelt.plugins.builtin.memory import notes

_PART, _TAG = 0.4, 1.5
# One or two letters are a part of nearly everything.
_SHORTEST_PART = 3
# A model may paste a page as the query; so many words of it tell what it is about.
_MOST_WORDS = 32


def rank(among: Sequence[notes.Note], query: str, limit: int) -> list[notes.Note]:
    """Give the best ``limit`` of the notes, the best first. Equally good ones stay in the order given."""
    wanted = dict(list(search.parse(notes.clean(query)).words.items())[:_MOST_WORDS])
    weights = [_weights(note, wanted) for note in among]
    scored = []
    rarity = {
        stem: math.log(1 + len(among) / (1 + sum(1 for found in weights if stem in found))) for stem in wanted
    }
    for note, found in zip(among, weights, strict=True):
        if found:
            scored.append((sum(weight * rarity[stem] for stem, weight in found.items()), note))
    scored.sort(key=lambda pair: -pair[0])
    return [note for _, note in scored[:limit]]


def _weights(note: notes.Note, wanted: dict[str, str]) -> dict[str, float]:
    """Say for each wanted word that the note holds how well it does, between a part and a tag."""
    stems = {search.stem(word) for word in search.words_of(note.text)}
    tags = {search.stem(word) for tag in note.tags for word in search.words_of(tag)}
    text = " ".join((note.text, *note.tags)).casefold()
    found = {}
    for stem, word in wanted.items():
        if stem in tags:
            found[stem] = _TAG
        elif stem in stems:
            found[stem] = 1.0
        elif (len(word) >= _SHORTEST_PART or not word.isascii()) and (word in text or stem in text):
            found[stem] = _PART
    return found
