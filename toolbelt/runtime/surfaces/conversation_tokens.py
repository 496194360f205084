"""The opaque tokens of conversations: what a model was told, signed for its agent.

A token grants nothing: no decision reads it. It is signed so that no one can make Toolbelt say something twice or not
at all, and compressed: 69 tools take about 2,500 characters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.core import signing

from toolbelt.core import catalog, conversations

VERSION = 1
# The longest token that is read, in characters. One of 5,000 tools with long names takes 220,000.
MAX_LENGTH = 400_000

_PREFIX = "tbc1."
_HOWS: dict[str, conversations.How] = {
    how[0]: how for how in ("offered", "withdrawn", "deferred", "through", "gone")
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """The state of one conversation.

    line: The name of its line. root: The digest of its prefix. chain: The digest of the prefix and everything appended.
    dispatches: Whether its model has ``call_tool``. entries: How often something was appended. size: How many bytes.
    purges: The number of the last purge when it was last told of something.
    """

    line: str
    view: conversations.View
    root: str
    chain: str
    dispatches: bool = False
    entries: int = 0
    size: int = 0
    purges: int = 0

    def purged(self, stored: catalog.Catalog) -> tuple[str, ...]:
        """Return what the model was told of and must leave its context: ``tool fetch``, ``toolkit kb``."""
        return conversations.purged(self.view, stored.purges, self.purges)


def seal(agent: str, token: Token) -> str:
    """Return the token as text, valid for this agent."""
    view = token.view
    fields = {
        "v": VERSION,
        "p": token.line,
        "r": token.root,
        "c": token.chain,
        "x": token.dispatches,
        "e": token.entries,
        "b": token.size,
        "u": token.purges,
        "t": dict(view.start.tools),
        "d": sorted(view.deferred),
        "s": dict(view.start.sections),
        "l": dict(view.start.loadable),
        "T": {name: [told.digest, told.how[0]] for name, told in view.tools.items()},
        "S": dict(view.sections),
        "L": dict(view.loadable),
        "n": view.now,
    }
    return _PREFIX + _signer(agent).sign_object(fields, compress=True)


def unseal(agent: str, text: str) -> Token | None:
    """Return the token; None if it is not one of ours for this agent, or of another version."""
    if not text.startswith(_PREFIX) or len(text) > MAX_LENGTH or not text.isascii():
        return None
    try:
        fields: dict[str, Any] = _signer(agent).unsign_object(text.removeprefix(_PREFIX))
    except signing.BadSignature:
        return None
    if fields["v"] != VERSION:
        return None
    return Token(
        line=fields["p"],
        root=fields["r"],
        chain=fields["c"],
        dispatches=fields["x"],
        entries=fields["e"],
        size=fields["b"],
        # Tokens of earlier versions have none.
        purges=fields.get("u", 0),
        view=conversations.View(
            start=conversations.Content(tools=fields["t"], sections=fields["s"], loadable=fields["l"]),
            deferred=frozenset(fields["d"]),
            tools={
                name: conversations.Told(digest, _HOWS[how]) for name, (digest, how) in fields["T"].items()
            },
            sections=fields["S"],
            loadable=fields["L"],
            now=fields["n"],
        ),
    )


def _signer(agent: str) -> signing.Signer:
    return signing.Signer(salt=f"toolbelt.conversation.{agent}")
