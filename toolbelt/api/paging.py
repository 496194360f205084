"""Pagination of lists, in a stable order, with the address of the next page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Generic, TypeVar

import ninja
import pydantic
from django.http import HttpRequest

from toolbelt.api import schemas

T = TypeVar("T")

MAX_LIMIT, DEFAULT_LIMIT = 200, 50
# More than any list contains.
MAX_OFFSET = 10**9
# The largest id in both databases.
MAX_INTEGER = 2**63 - 1

Limit = Annotated[
    int,
    pydantic.Field(
        ge=1,
        le=MAX_LIMIT,
        description=f"The maximum number of items: 1 to {MAX_LIMIT}, by default {DEFAULT_LIMIT}.",
    ),
]


class PageQuery(schemas.Query):
    """A page of a list."""

    limit: Limit = DEFAULT_LIMIT
    offset: Annotated[
        int, pydantic.Field(ge=0, le=MAX_OFFSET, description="The number of items to skip.")
    ] = 0


class LogPageQuery(schemas.Query):
    """A page of a log, newest first."""

    limit: Limit = DEFAULT_LIMIT
    older_than: Annotated[
        Annotated[int, pydantic.Field(ge=0, le=MAX_INTEGER)] | None,
        pydantic.Field(description="Only items older than the item with this id."),
    ] = None


class Page(ninja.Schema, Generic[T]):
    """A page of a list."""

    items: list[T]
    total: Annotated[int, pydantic.Field(description="The number of items on all pages.")]
    next: Annotated[
        str | None, pydantic.Field(description="The address of the next page, null on the last page.")
    ]


def list_of(item: type[Any]) -> type[Page[Any]]:
    """Return the model of a page of these items, named after them for the OpenAPI document."""
    return pydantic.create_model(f"{item.__name__}List", __base__=Page[item], __doc__=Page.__doc__)  # type: ignore[valid-type]


def page(request: HttpRequest, query: PageQuery, items: Sequence[Any], total: int) -> dict[str, Any]:
    """Return a page of a list, given its items and the total number of items."""
    end = query.offset + len(items)
    next_address = _address(request, limit=query.limit, offset=end) if items and end < total else None
    return {"items": list(items), "total": total, "next": next_address}


def slice_page(request: HttpRequest, query: PageQuery, everything: Sequence[Any]) -> dict[str, Any]:
    """Return a page of a list that is completely in memory."""
    cut = everything[query.offset : query.offset + query.limit]
    return page(request, query, cut, len(everything))


def log_page(
    request: HttpRequest, query: LogPageQuery, items: Sequence[Any], total: int, last: int | None
) -> dict[str, Any]:
    """Return a page of a log. ``last`` is the id of its last item, None if there are no older items."""
    next_address = _address(request, limit=query.limit, older_than=last) if last is not None else None
    return {"items": list(items), "total": total, "next": next_address}


def _address(request: HttpRequest, **changed: object) -> str:
    query = request.GET.copy()
    for name, value in changed.items():
        query[name] = str(value)
    return f"{request.path}?{query.urlencode()}"
