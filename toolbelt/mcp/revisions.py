"""The supported revisions of MCP, and their methods.

There are two eras. Up to 2025-11-25, a client initializes a session first (``initialize``), is notified of changes on a
separate stream (GET), and sends the revision in a header. From 2026-07-28, each request is self-contained, with its
revision in ``_meta`` and in headers, and listening for changes is a request like any other
(``subscriptions/listen``). Revisions of the second era are called modern.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# The revision of a client that initializes a session but then sends no header.
ASSUMED = "2025-06-18"


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A revision, and the ``requests`` that a client may make.

    ``is_modern``: it belongs to the second era. ``is_primed``: a stream may begin with an event with an id and no data.
    """

    name: str
    requests: frozenset[str]
    is_modern: bool = False
    is_primed: bool = False


_ALWAYS = frozenset(
    {
        "tools/list",
        "tools/call",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "prompts/list",
        "prompts/get",
        "completion/complete",
    }
)
_HANDSHAKE = _ALWAYS | {
    "initialize",
    "logging/setLevel",
    "ping",
    "resources/subscribe",
    "resources/unsubscribe",
}

# Newest first: they are offered in this order.
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


def negotiate(requested: object) -> str:
    """Return the revision to use after ``initialize``: the requested revision if it is supported, else the newest."""
    return requested if isinstance(requested, str) and requested in HANDSHAKE else HANDSHAKE[0]
