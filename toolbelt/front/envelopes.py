"""Which headers does an answer have? Those that Django gave one of its kind: learned from it, not repeated here.

So a middleware or a setting that changes what Django sends changes what is sent here. What differs from one answer to
the next is put in: the ETag, the length, the request's id.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

Headers = list[tuple[bytes, bytes]]
# What else an answer may depend on, beside the address: a request with a cookie does not come here.
_MAY_VARY_BY = frozenset({b"authorization", b"cookie"})
# Says of an answer that it is the last that is known, while the database cannot be asked whether it still holds.
STALE = (b"Toolbelt-Stale", b"true")
# Host names are the client's to choose, within what the installation allows.
MOST_KEPT = 256


class Kind(NamedTuple):
    """What decides about the headers of an answer."""

    scheme: str
    host: str
    method: str
    status: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """The headers of a kind of answer, and where those stand that differ."""

    headers: tuple[tuple[bytes, bytes], ...]
    etag: int
    length: int
    request_id: int

    def addressed(self, *, etag: str, length: int, request_id: str) -> Headers:
        """Give the headers of one answer."""
        headers = list(self.headers)
        headers[self.etag] = (headers[self.etag][0], etag.encode())
        headers[self.length] = (headers[self.length][0], b"%d" % length)
        headers[self.request_id] = (headers[self.request_id][0], request_id.encode())
        return headers


class Envelopes:
    """The envelopes that were learned so far."""

    def __init__(self) -> None:
        self._known: dict[Kind, Envelope] = {}

    def get(self, kind: Kind) -> Envelope | None:
        """Give the envelope of a kind of answer, if Django has given one."""
        return self._known.get(kind)

    def learn(self, kind: Kind, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Learn from an answer of Django's; one that may be for this client alone teaches nothing."""
        if kind in self._known:
            return
        given = tuple((bytes(name), bytes(value)) for name, value in headers)
        names = [name.lower() for name, _ in given]
        varies = b",".join([value for name, value in given if name.lower() == b"vary"])
        if b"set-cookie" in names or not _words(varies) <= _MAY_VARY_BY:
            return
        if any(names.count(name) != 1 for name in (b"etag", b"content-length", b"x-request-id")):
            return
        while len(self._known) >= MOST_KEPT:
            # The oldest goes, or whoever asks at many addresses would keep all others from being learned.
            del self._known[next(iter(self._known))]
        self._known[kind] = Envelope(
            headers=given,
            etag=names.index(b"etag"),
            length=names.index(b"content-length"),
            request_id=names.index(b"x-request-id"),
        )


def marked_stale(headers: Headers, status: int) -> Headers:
    """Mark an answer as the last that is known.

    What is sent whole is not to be kept, or it would be taken for the present state later; a 304 says of what the
    client has that it is what is known here, too.
    """
    kept = headers
    if status == 200:
        kept = [pair for pair in headers if pair[0].lower() not in (b"etag", b"cache-control")]
        kept.append((b"Cache-Control", b"private, no-store"))
    return [*kept, STALE]


def _words(value: bytes) -> set[bytes]:
    return {word.strip().lower() for word in value.split(b",") if word.strip()}
