"""The sentence model of the search, where the extra ``semantic`` is installed: its vectors are kept in a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import structlog
from django.conf import settings

from toolbelt import locations

_log = structlog.get_logger(__name__)


def start() -> None:
    """Have the searches of this process use sentence vectors, if the extra is installed."""
    # Imported here, because it imports NumPy, and most commands do not search.
    from toolbelt.core.search import sentences

    sentences.use(VectorFile(Path(settings.BASE_DIR) / locations.SEARCH_VECTORS))


class VectorFile:
    """Keeps vectors in a file, over restarts and for all processes: a digest and a vector after the other.

    Where the file cannot be written, as in a container with a read-only file system, the process keeps them in memory.
    """

    def __init__(self, file: Path) -> None:
        """Read and write this file, which may not exist yet."""
        self._file = file
        # The vectors that could not be written.
        self._unwritten: dict[bytes, bytes] = {}

    def read(self) -> Mapping[bytes, bytes]:
        """Return all that is kept now."""
        try:
            content = self._file.read_bytes()
        except OSError:
            content = b""
        digest, size = _sizes()
        starts = range(0, len(content) - size + 1, size)
        records = (content[start : start + size] for start in starts)
        vectors = {record[:digest]: record[digest:] for record in records}
        return vectors | self._unwritten

    def add(self, vectors: Mapping[bytes, bytes]) -> None:
        """Append these to the file."""
        if self._unwritten:
            self._unwritten.update(vectors)
            return
        try:
            with self._file.open("ab") as file:
                # What a process left that was killed while it wrote.
                _, size = _sizes()
                file.truncate(file.tell() // size * size)
                file.write(_records(vectors))
        except OSError as error:
            self._unwritten.update(vectors)
            _log.warning("search vectors kept in memory only", file=str(self._file), error=str(error))

    def retain(self, used: Mapping[bytes, bytes]) -> None:
        """Write the file again with these only."""
        for digest in self._unwritten.keys() - used.keys():
            del self._unwritten[digest]
        if self._unwritten:
            return
        temporary = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        try:
            temporary.write_bytes(_records(used))
            temporary.replace(self._file)
        except OSError as error:
            _log.warning("search vectors not kept", file=str(self._file), error=str(error))


def _sizes() -> tuple[int, int]:
    """Return how many bytes the digest in a record has, and the whole record."""
    from toolbelt.core.search import sentences

    return sentences.DIGEST_SIZE, sentences.DIGEST_SIZE + sentences.VECTOR_SIZE


def _records(vectors: Mapping[bytes, bytes]) -> bytes:
    return b"".join(digest + vector for digest, vector in vectors.items())
