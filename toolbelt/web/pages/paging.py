"""A long list in pages: which part of it is shown, and the links to the parts beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.utils.http import urlencode

from toolbelt.control import holdings
from toolbelt.web import words
from toolbelt.web.presenters import changes, pieces

AT_ONCE = 50

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part(Generic[T]):
    """The items of a list from the place ``offset`` on, as many as a page holds; ``total`` counts all of them."""

    items: Sequence[T]
    offset: int
    total: int
    size: int

    def pages(
        self, said: Mapping[str, Any], path: str, *, name: str = "offset", anchor: str = ""
    ) -> changes.Pages:
        """Return the links to the parts before and behind, with all that the address ``said``; ``name`` is what it
        calls the offset.
        """
        kept = {key: value for key, value in said.items() if value and key != name}

        def url(offset: int) -> str:
            query = urlencode({**kept, **({name: offset} if offset else {})})
            return (f"{path}?{query}" if query else path) + anchor

        behind = self.offset + len(self.items)
        return changes.Pages(
            words=f"{words.number(self.offset + 1)} to {words.number(behind)} of {words.number(self.total)}",
            newer_url=url(max(0, self.offset - self.size)) if self.offset else "",
            older_url=url(behind) if behind < self.total else "",
        )


def part(items: Sequence[T], offset: int | str, size: int = AT_ONCE) -> Part[T]:
    """Return the part of the list that begins at ``offset`` (empty: at its beginning). Behind the end of the list is
    its last part.
    """
    place = int(offset or 0)
    if place >= len(items):
        place = max(0, len(items) - 1) // size * size
    return Part(items=items[place : place + size], offset=place, total=len(items), size=size)


def named(holders: Sequence[holdings.Holder], query: str) -> list[holdings.Holder]:
    """Return the agents in whose key, title or role the query stands; empty: all."""
    wanted = query.strip().casefold()
    return [
        holder
        for holder in holders
        if any(
            wanted in text.casefold() for text in (holder.agent.key, holder.agent.title, holder.agent.role)
        )
    ]


def find_agents(
    holders: Sequence[object], said: Mapping[str, Any], path: str, without: Sequence[str] = ()
) -> pieces.FindAgents | None:
    """Return the form that asks which of the agents shall be shown; None where all of them fit on a page. It keeps
    what the address ``said``, but for the names ``without``.
    """
    if len(holders) <= AT_ONCE and not said["agents"]:
        return None
    left = {"agents", *without}
    return pieces.FindAgents(
        action=path,
        query=said["agents"],
        fields=tuple(
            pieces.Field(name=name, value=str(value))
            for name, value in said.items()
            if value and name not in left
        ),
    )
