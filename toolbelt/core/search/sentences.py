"""Sentence vectors of tools, where the extra ``semantic`` is installed: made in a thread, and kept in a store.

The store has the vector of each text under its digest: a tool whose text is unchanged keeps its vector. Until the
vectors of an index are complete, the search ranks without them.
"""

from __future__ import annotations

import functools
import hashlib
import struct
import threading
import weakref
from array import array
from collections.abc import Mapping, Sequence
from typing import Protocol

from toolbelt.core.search import dot_products, sentence_model, tool_index, vectors

# How many bytes a store keeps of a text: those of its digest, and those of its vector.
DIGEST_SIZE = 16
_PACKED = struct.Struct(f"<f{sentence_model.SIZE}b")
VECTOR_SIZE = _PACKED.size
# How many vectors are made before they are kept.
_BATCH_SIZE = 64
# How many unused vectors a store may have before it drops them.
_MAX_UNUSED = 20_000
_MAX_CLAUSES = 8


class VectorStore(Protocol):
    """Keeps the packed vectors of texts, by the digests of the texts."""

    def read(self) -> Mapping[bytes, bytes]:
        """Return all stored vectors."""

    def add(self, vectors: Mapping[bytes, bytes]) -> None:
        """Add these vectors."""

    def retain(self, used: Mapping[bytes, bytes]) -> None:
        """Remove all other vectors."""


class MemoryStore:
    """Keeps vectors in the memory of this process."""

    def __init__(self) -> None:
        """Begin without vectors."""
        self._vectors: dict[bytes, bytes] = {}

    def read(self) -> Mapping[bytes, bytes]:
        """Return all that is kept now."""
        return dict(self._vectors)

    def add(self, vectors: Mapping[bytes, bytes]) -> None:
        """Keep these as well."""
        self._vectors.update(vectors)

    def retain(self, used: Mapping[bytes, bytes]) -> None:
        """Keep only these."""
        self._vectors = dict(used)


_lock = threading.Lock()
# None: sentence vectors are not used.
_store: VectorStore | None = None
_threads: weakref.WeakSet[threading.Thread] = weakref.WeakSet()


def use(store: VectorStore | None) -> None:
    """Use sentence vectors from now on, and keep them in this store; with None, do not use any."""
    global _store
    _store = store


def prepare_later(index: tool_index.Index) -> None:
    """Have a thread make the vectors of an index, if they are used."""
    if _store is not None and not index.sentences and sentence_model.is_installed():
        thread = threading.Thread(target=prepare, args=(index,), name="search vectors", daemon=True)
        _threads.add(thread)
        thread.start()


def wait() -> None:
    """Wait until no vectors are being made. For tests."""
    for thread in tuple(_threads):
        thread.join()


def prepare(index: tool_index.Index) -> None:
    """Make the vectors of an index, if they are used."""
    store = _store
    if store is None or index.sentences or (embed := sentence_model.load()) is None:
        return
    digests = [_digest(entry.sentence) for entry in index.entries]
    texts = {digest: entry.sentence for digest, entry in zip(digests, index.entries, strict=True)}
    with _lock:
        # One index after another: the second finds most of its vectors in the store.
        if index.sentences:
            return
        stored = store.read()
        available = {digest: stored[digest] for digest in texts if digest in stored}
        missing = [digest for digest in texts if digest not in available]
        for start in range(0, len(missing), _BATCH_SIZE):
            batch = missing[start : start + _BATCH_SIZE]
            computed = dict(zip(batch, map(_packed, embed([texts[digest] for digest in batch])), strict=True))
            store.add(computed)
            available |= computed
        if len(stored) > len(available) + _MAX_UNUSED:
            store.retain(available)
        rows = [dot_products.row(_unpacked(available[digest])) for digest in digests]
        index.sentences[:] = [dot_products.Vectors(rows)]


def of_query(index: tool_index.Index, text: str, clauses: Sequence[str]) -> list[array[int]]:
    """Return the products of each tool with the query and each of its clauses; nothing without vectors."""
    if _store is None or not index.sentences or (embed := sentence_model.load()) is None:
        return []
    texts = [text, *clauses[:_MAX_CLAUSES]] if len(clauses) > 1 else [text]
    return [index.sentences[0].times(vector) for vector in embed(texts)]


def _digest(text: str) -> bytes:
    """Return the key of a text's vector, which is another one after the vectors have been trained again."""
    return hashlib.sha256(_version() + text.encode(errors="replace")).digest()[:DIGEST_SIZE]


@functools.cache
def _version() -> bytes:
    return hashlib.sha256(sentence_model.matrix_file()).digest()


def _packed(vector: vectors.Vector) -> bytes:
    scale, values = vectors.quantize(vector)
    return _PACKED.pack(scale, *values)


def _unpacked(packed: bytes) -> vectors.Vector:
    scale, *values = _PACKED.unpack(packed)
    return vectors.unit(scale * value for value in values)
