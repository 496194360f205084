"""Paging of long lists: one page of items, and the links to the other pages."""

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


PAGE_SIZE = 50

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part(Generic[T]):
    """The items of a list from ``offset`` on, as many as a page shows; ``total`` counts all of them."""

    items: Sequence[T]
    offset: int
    total: int
    size: int

    def pages(self, query: Mapping[str, Any], path: str, *, name: str = "offset", anchor: str = "") -> Pages:
        """Return the links to the previous and next page, with the parameters of the ``query``; ``name`` is the
        parameter of the offset.
        """

        def url(offset: int) -> str:
            others = {key: value for key, value in query.items() if key != name}
            return filters.address(path, {**others, name: offset}) + anchor

        end = self.offset + len(self.items)
        return Pages(
            words=f"{words.number(self.offset + 1)} to {words.number(end)} of {words.number(self.total)}"
            if self.items
            else "",
            newer_url=url(max(0, min(self.offset, self.total) - self.size)) if self.offset else "",
            older_url=url(end) if end < self.total else "",
        )


def part(items: Sequence[T], offset: int | str, size: int = PAGE_SIZE) -> Part[T]:
    """Return the part of the list that begins at ``offset`` (empty: at the beginning of the list). An offset past the
    end returns the last part.
    """
    start = int(offset or 0)
    if start >= len(items):
        start = max(0, len(items) - 1) // size * size
    return Part(items=items[start : start + size], offset=start, total=len(items), size=size)


def matching_agents(
    accesses: Sequence[access_index.AgentAccess], query: str
) -> list[access_index.AgentAccess]:
    """Return the agents whose key, title or role contains the query; all agents for an empty query."""
    return [
        access
        for access in accesses
        if words.contains(query, access.agent.key, access.agent.title, access.agent.role)
    ]


def show_choices(
    labels: Mapping[str, str], chosen: str, items: Sequence[T], match: Callable[[T, Mapping[str, Any]], bool]
) -> tuple[pieces.Choice, ...]:
    """Return the chips that filter a list, each except the first with its number of matching items."""
    counts = {show: sum(match(item, {"q": "", "show": show}) for item in items) for show in labels if show}
    return pieces.choices(labels, chosen, counts=counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFilter:
    """The form that filters the agents of a page, with the hidden ``fields`` that it keeps."""

    action: str
    query: str
    fields: tuple[tuple[str, str], ...]


def agent_filter(
    accesses: Sequence[object], criteria: Mapping[str, Any], path: str, without: Sequence[str] = ()
) -> AgentFilter | None:
    """Return the form that filters the agents of a page; None if all of them fit on one page. It keeps the other
    ``criteria``, except the names ``without``.
    """
    if len(accesses) <= PAGE_SIZE and not criteria["agents"]:
        return None
    omitted = {"agents", *without}
    return AgentFilter(action=path, query=criteria["agents"], fields=hidden_fields(criteria, omitted))


def hidden_fields(criteria: Mapping[str, Any], without: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Return the ``criteria`` as hidden fields of a form, except the names ``without``."""
    return tuple((name, str(value)) for name, value in criteria.items() if value and name not in without)


def sort(items: list[T], keys: Mapping[str, Callable[[T], Any]], chosen: str) -> str:
    """Sort a list in place by the chosen key, such as ``-tokens``. Return the choice; empty if there is no such key."""
    name = chosen.removeprefix("-")
    if name not in keys:
        return ""
    items.sort(key=keys[name], reverse=chosen != name)
    return chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """The heading of a column: the URL sorts by it, and ``order`` is that of the list, if the column sorts it."""

    name: str
    label: str
    url: str
    order: str


def columns(
    labels: Mapping[str, str],
    criteria: Mapping[str, Any],
    sort: str,
    path: str,
    numbers: Collection[str] = (),
) -> tuple[Heading, ...]:
    """Return the headings of a table, each with the URL that sorts by it; ``numbers`` sort in descending order."""
    parameters = {key: value for key, value in criteria.items() if value and key not in ("sort", "offset")}
    headings = []
    for name, label in labels.items():
        first, other = (f"-{name}", name) if name in numbers else (name, f"-{name}")
        query = urlencode({**parameters, "sort": other if sort == first else first})
        order = {name: "ascending", f"-{name}": "descending"}.get(sort, "")
        headings.append(Heading(name=name, label=label, url=f"{path}?{query}", order=order))
    return tuple(headings)
