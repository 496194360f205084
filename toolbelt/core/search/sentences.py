"""Sentence vectors of tools, where the extra ``semantic`` is installed: made in a thread, and kept in a store.

The store has the vector of each text under its digest: a tool whose text is unchanged keeps its vector. Until the
vectors of an index are complete, the search ranks without them.
"""

from __future__ import annotations

import functools
import hashlib
import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from toolbelt.core.search import sentence_model, tool_index, vectors
from toolbelt.core.search.vectors import Array

# How many bytes a store keeps of a text: those of its digest, and those of its vector.
DIGEST_SIZE = 16
_PACKED = np.dtype([("scale", "<f4"), ("values", "i1", (sentence_model.SIZE,))])
VECTOR_SIZE = _PACKED.itemsize
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
    digests = list(map(_digest, index.texts))
    texts = dict(zip(digests, index.texts, strict=True))
    with _lock:
        # One index after another: the second finds most of its vectors in the store.
        if index.sentences:
            return
        stored = store.read()
        available = {digest: stored[digest] for digest in texts if digest in stored}
        missing = [digest for digest in texts if digest not in available]
        for start in range(0, len(missing), _BATCH_SIZE):
            batch = missing[start : start + _BATCH_SIZE]
            computed = dict(zip(batch, _pack(embed([texts[digest] for digest in batch])), strict=True))
            store.add(computed)
            available |= computed
        if len(stored) > len(available) + _MAX_UNUSED:
            store.retain(available)
        index.sentences[:] = [_unpack([available[digest] for digest in digests])]


def of_query(index: tool_index.Index, text: str, clauses: Sequence[str]) -> list[Array]:
    """Return the products of each tool with the query and each of its clauses; nothing without vectors."""
    if _store is None or not index.sentences or (embed := sentence_model.load()) is None:
        return []
    texts = [text, *clauses[:_MAX_CLAUSES]] if len(clauses) > 1 else [text]
    return [vectors.products(index.sentences[0], vector) for vector in embed(texts)]


def _digest(text: str) -> bytes:
    """Return the key of a text's vector, which is another one after the vectors have been trained again."""
    return hashlib.sha256(_version() + text.encode(errors="replace")).digest()[:DIGEST_SIZE]


@functools.cache
def _version() -> bytes:
    return hashlib.sha256(sentence_model.matrix_file()).digest()


def _pack(rows: Array) -> list[bytes]:
    """Return each vector as whole numbers with a scale."""
    largest = np.abs(rows).max(1)
    scales = np.where(largest, largest, 1.0) / 127
    packed = np.empty(len(rows), _PACKED)
    packed["scale"] = scales
    packed["values"] = np.rint(rows / scales[:, None])
    return [record.tobytes() for record in packed]


def _unpack(packed: Sequence[bytes]) -> Array:
    records = np.frombuffer(b"".join(packed), _PACKED)
    return vectors.unit(records["scale"][:, None] * records["values"])
