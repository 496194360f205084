"""What did this client list last, and was it told that its tools are others now?

For a client that does not listen for changes: it is told with its next result. Kept in the process, for a while, and as
a best effort: nothing depends on it. Where another process answered the list, the digest in the session's id, from the
handshake, stands in; without either, nobody is told what may not be so.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass

from toolbelt.mcp import heads
from toolbelt.runtime import tool_lists

MOST_KEPT = 4096
# How many names of tools a model is told, of those that came and of those that went.
MOST_NAMED = 20

_MARK = "tb"
_DIGEST = 32


@dataclass(slots=True)
class _Had:
    """What a client was given last; ``names`` is None where only the digest is known."""

    digest: str
    names: tuple[str, ...] | None


class Told:
    """What was given to which client, in this process."""

    def __init__(self) -> None:
        self._had: OrderedDict[Hashable, _Had] = OrderedDict()

    def gave(self, head: heads.Head, given: tool_lists.ToolList) -> None:
        """Remember that a client was given this list."""
        place = _place(head)
        if (had := self._had.get(place)) is not None and had.digest == given.digest:
            return
        self._had[place] = _Had(given.digest, given.names)
        self._had.move_to_end(place)
        if len(self._had) > MOST_KEPT:
            self._had.popitem(last=False)

    def digest(self, head: heads.Head) -> str:
        """Give the digest of the list that a client was given last; empty where nobody knows."""
        had = self._had.get(_place(head))
        return had.digest if had is not None else digest_in(head.client_session)

    def news(self, head: heads.Head, now: tool_lists.ToolList) -> str:
        """Say in a sentence what changed since a client was given its list, once; empty where nothing did."""
        had = self._had.get(_place(head))
        if had is None and (digest := digest_in(head.client_session)):
            had = _Had(digest, None)
        if had is None or had.digest == now.digest:
            return ""
        self.gave(head, now)
        return _sentence(had.names, now.names)

    def forget(self, head: heads.Head) -> None:
        """Forget a client that takes its leave."""
        self._had.pop(_place(head), None)


def new_session(digest: str, policy: str = "") -> str:
    """Make the id of a client's session. Nothing depends on it; it says what list and policy were when it began."""
    return f"{_MARK}.{digest}.{policy}.{secrets.token_hex(16)}"


def digest_in(text: str) -> str:
    """Give the digest that stands in the id of a session, or of an event; empty if there is none."""
    mark, _, rest = text.partition(".")
    digest = rest.partition(".")[0]
    return digest if mark == _MARK and len(digest) == _DIGEST else ""


def policy_in(text: str) -> str:
    """Return the digest of the policy in the id of a session, or of an event; empty if there is none."""
    mark, *parts = text.split(".")
    return parts[1] if mark == _MARK and len(parts) == 3 else ""


def _place(head: heads.Head) -> Hashable:
    """Say what a client is known by: its session's id, or else its connection."""
    return head.token, head.agent, head.session, head.client_session or head.address


def _sentence(before: tuple[str, ...] | None, now: tuple[str, ...]) -> str:
    if before is None:
        return "The tools that you may call have changed: list them again."
    gone, new = [*set(before).difference(now)], [*set(now).difference(before)]
    parts = [f"{word} {_names(names)}" for word, names in (("new:", new), ("gone:", gone)) if names]
    what = "; ".join(parts) or "some are described otherwise"
    return f"The tools that you may call have changed: {what}. List them again."


def _names(names: list[str]) -> str:
    told = sorted(names)
    more = f" and {len(told) - MOST_NAMED} more" if len(told) > MOST_NAMED else ""
    return ", ".join(told[:MOST_NAMED]) + more
