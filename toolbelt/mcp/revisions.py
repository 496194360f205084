"""Which revisions of MCP are spoken here, and what does each of them have?

Two eras. Up to 2025-11-25 a client shakes hands first (``initialize``), is told of changes over a stream of its own
(GET), and sends the revision in a header. From 2026-07-28 on each request says all about itself, in its ``_meta`` and
again in headers, and to be told of changes is a request like any other (``subscriptions/listen``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# What a client that shakes hands, and sends no header then, is taken for.
ASSUMED = "2025-06-18"


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """One revision: the ``requests`` that a client may make, and what it takes.

    ``is_modern``: of the second era. ``is_primed``: a stream may begin with an event that has an id and no data.
    """

    name: str
    requests: frozenset[str]
    is_modern: bool = False
    is_primed: bool = False


_ALWAYS = frozenset(
    {"tools/list", "tools/call", "resources/list", "resources/templates/list", "resources/read"}
)
_HANDSHAKE = _ALWAYS | {"initialize", "ping", "resources/subscribe", "resources/unsubscribe"}

# The newest first: that is the order in which they are offered.
REVISIONS: Mapping[str, Revision] = {
    revision.name: revision
    for revision in (
        Revision(
            name="2026-07-28",
            requests=_ALWAYS | {"server/discover", "subscriptions/listen"},
            is_modern=True,
        ),
        Revision(name="2025-11-25", requests=_HANDSHAKE, is_primed=True),
        Revision(name="2025-06-18", requests=_HANDSHAKE),
    )
}
SUPPORTED = tuple(REVISIONS)
MODERN = tuple(name for name, revision in REVISIONS.items() if revision.is_modern)
HANDSHAKE = tuple(name for name, revision in REVISIONS.items() if not revision.is_modern)


def agreed(wanted: object) -> str:
    """Give the revision to go on with, after a handshake that asks for this one: that, or else the newest there is."""
    return wanted if isinstance(wanted, str) and wanted in HANDSHAKE else HANDSHAKE[0]
