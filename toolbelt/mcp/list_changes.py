"""The lists that clients received last, to notify clients that do not listen for changes.

Such a client is notified with its next result. The lists are kept in the process for a while, as a best effort. If
another process answered the list, the digest in the session's id is used instead; without either, the client is not
notified.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Hashable
from dataclasses import dataclass

from toolbelt.core import caches, texts
from toolbelt.mcp import request_head
from toolbelt.runtime.surfaces import tool_lists

MAX_CACHED = 4096
# The maximum number of names of added tools in a notice, and of removed tools.
MAX_NAMED = 20

# How a client can ask its user, in MCP's terms.
MODES = ("form", "url")
_SCREENS = "s"

_MARK = "tb"
_DIGEST = 32
# The length of a digest of prompts or resources.
_SHORT = 8
# The number of parts after the mark.
_PARTS = (3, 4)


@dataclass(slots=True)
class _ReceivedList:
    """The list that a client received last; ``names`` is None if only the digest is known."""

    digest: str
    names: tuple[str, ...] | None


class ListChangeTracker:
    """The lists that clients received last, in this process."""

    def __init__(self) -> None:
        self._last: caches.LruCache[Hashable, _ReceivedList] = caches.LruCache(MAX_CACHED)

    def record(self, head: request_head.RequestHead, received: tool_lists.ToolList) -> None:
        """Record that a client received this list."""
        client = _client_key(head)
        if (last := self._last.get(client)) is not None and last.digest == received.digest:
            return
        self._last.put(client, _ReceivedList(received.digest, received.names))

    def digest(self, head: request_head.RequestHead) -> str:
        """Return the digest of the list that a client received last, empty if it is unknown."""
        last = self._last.get(_client_key(head))
        return last.digest if last is not None else digest_in(head.client_session)

    def notice(self, head: request_head.RequestHead, now: tool_lists.ToolList) -> str:
        """Return a sentence about the changes since the client's last list, once. Empty if there are none."""
        last = self._last.get(_client_key(head))
        if last is None and (digest := digest_in(head.client_session)):
            last = _ReceivedList(digest, None)
        if last is None or last.digest == now.digest:
            return ""
        self.record(head, now)
        return _sentence(last.names, now.names)

    def forget(self, head: request_head.RequestHead) -> None:
        """Forget a client that ends its session."""
        self._last.pop(_client_key(head))


def new_session(
    digest: str,
    policy: str = "",
    prompts: str = "",
    resources: str = "",
    *,
    modes: Collection[str] = (),
    shows_screens: bool = False,
) -> str:
    """Return a new id for a client's session, with the digests of the lists and of the policy at its start.

    It also contains what clients only send with ``initialize``: how they can ask their user, (f)orm or (u)rl, and
    whether they show the (s)creens of servers.
    """
    letters = "".join(sorted([mode[0] for mode in modes] + [_SCREENS] * shows_screens))
    others = f".{prompts}{resources}" if prompts and resources else ""
    return f"{_MARK}.{digest}.{policy}.{secrets.token_hex(16)}{letters and '-' + letters}{others}"


def modes_in(text: str) -> frozenset[str]:
    """Return the modes in which the client can ask its user, from the id of its session."""
    return frozenset(mode for mode in MODES if mode[0] in _letters(text))


def shows_screens(text: str) -> bool:
    """Return whether the client shows the screens of servers, from the id of its session."""
    return _SCREENS in _letters(text)


def _letters(text: str) -> str:
    mark, *parts = text.split(".")
    return parts[2].partition("-")[2] if mark == _MARK and len(parts) in _PARTS else ""


def digest_in(text: str) -> str:
    """Return the digest of the tools in the id of a session or an event, empty if there is none."""
    mark, _, remainder = text.partition(".")
    digest = remainder.partition(".")[0]
    return digest if mark == _MARK and len(digest) == _DIGEST else ""


def policy_in(text: str) -> str:
    """Return the digest of the policy in the id of a session or an event, empty if there is none."""
    mark, *parts = text.split(".")
    return parts[1] if mark == _MARK and len(parts) in _PARTS else ""


def others_in(text: str) -> tuple[str, str] | None:
    """Return the digests of the prompts and of the resources in the id of a session or an event, if it has them."""
    mark, *parts = text.split(".")
    others = parts[3] if mark == _MARK and len(parts) == max(_PARTS) else ""
    return (others[:_SHORT], others[_SHORT:]) if len(others) == 2 * _SHORT else None


def _client_key(head: request_head.RequestHead) -> Hashable:
    """Return the identity of a client: its session's id, or else its connection."""
    return head.token, head.agent, head.session, head.client_session or head.address


def _sentence(before: tuple[str, ...] | None, now: tuple[str, ...]) -> str:
    if before is None:
        return "The tools that you may call have changed. List them again."
    removed, added = [*set(before).difference(now)], [*set(now).difference(before)]
    parts = [
        f"{word} {texts.listing(sorted(names), MAX_NAMED)}"
        for word, names in (("added:", added), ("removed:", removed))
        if names
    ]
    changes = "; ".join(parts) or "some descriptions are different"
    return f"The tools that you may call have changed: {changes}. List them again."
