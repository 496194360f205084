"""Paging of long lists: the part that is shown, and the links to the others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.utils.http import urlencode

from toolbelt.control.access import access_index
from toolbelt.web.kit import filters, pieces, words


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """The position of a page in a log; its URLs are empty at the ends."""

    words: str
    newer_url: str = ""
    older_url: str = ""


AT_ONCE = 50

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part(Generic[T]):
    """The items of a list from ``offset`` on, as many as a page shows; ``total`` counts all of them."""

    items: Sequence[T]
    offset: int
    total: int
    size: int

    def pages(self, given: Mapping[str, Any], path: str, *, name: str = "offset", anchor: str = "") -> Pages:
        """Return the links to the parts before and behind, with all that the address was ``given``; ``name`` is what it
        calls the offset.
        """

        def url(offset: int) -> str:
            others = {key: value for key, value in given.items() if key != name}
            return filters.address(path, {**others, name: offset}) + anchor

        behind = self.offset + len(self.items)
        return Pages(
            words=f"{words.number(self.offset + 1)} to {words.number(behind)} of {words.number(self.total)}"
            if self.items
            else "",
            newer_url=url(max(0, min(self.offset, self.total) - self.size)) if self.offset else "",
            older_url=url(behind) if behind < self.total else "",
        )


def part(items: Sequence[T], offset: int | str, size: int = AT_ONCE) -> Part[T]:
    """Return the part of the list that begins at ``offset`` (empty: at its beginning). An offset past the end
    returns the last part.
    """
    place = int(offset or 0)
    if place >= len(items):
        place = max(0, len(items) - 1) // size * size
    return Part(items=items[place : place + size], offset=place, total=len(items), size=size)


def matching_agents(
    accesses: Sequence[access_index.AgentAccess], query: str
) -> list[access_index.AgentAccess]:
    """Return the agents whose key, title or role contains the query; empty: all."""
    return [
        access
        for access in accesses
        if words.contains(query, access.agent.key, access.agent.title, access.agent.role)
    ]


def show_choices(
    labels: Mapping[str, str], chosen: str, items: Sequence[T], fits: Callable[[T, Mapping[str, Any]], bool]
) -> tuple[pieces.Choice, ...]:
    """Return the chips that narrow a list, each but the first with how many items fit it."""
    counts = {show: sum(fits(item, {"q": "", "show": show}) for item in items) for show in labels if show}
    return pieces.choices(labels, chosen, counts=counts)


def find_agents(
    accesses: Sequence[object], given: Mapping[str, Any], path: str, without: Sequence[str] = ()
) -> pieces.View | None:
    """Return the form that filters the agents of a page; None if all of them fit on a page. It keeps
    what the address was ``given``, but for the names ``without``.
    """
    if len(accesses) <= AT_ONCE and not given["agents"]:
        return None
    left = {"agents", *without}
    return pieces.View(action=path, query=given["agents"], fields=hidden_fields(given, left))


def hidden_fields(given: Mapping[str, Any], without: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Return what the address was ``given`` as hidden fields of a form, but for the names ``without``."""
    return tuple((name, str(value)) for name, value in given.items() if value and name not in without)


def sort(items: list[T], keys: Mapping[str, Callable[[T], Any]], chosen: str) -> str:
    """Sort a list as was chosen, such as by ``-tokens``. Return the choice; empty, if there is no such key."""
    name = chosen.removeprefix("-")
    if name not in keys:
        return ""
    items.sort(key=keys[name], reverse=chosen != name)
    return chosen


def columns(
    labels: Mapping[str, str],
    given: Mapping[str, Any],
    sort: str,
    path: str,
    numbers: Collection[str] = (),
) -> tuple[pieces.View, ...]:
    """Return the headings of a table, each with the address that sorts by it: numbers from the largest first."""
    parameters = {key: value for key, value in given.items() if value and key not in ("sort", "offset")}
    headings = []
    for name, label in labels.items():
        first, other = (f"-{name}", name) if name in numbers else (name, f"-{name}")
        query = urlencode({**parameters, "sort": other if sort == first else first})
        order = {name: "ascending", f"-{name}": "descending"}.get(sort, "")
        headings.append(pieces.View(name=name, label=label, url=f"{path}?{query}", order=order))
    return tuple(headings)
