"""How is a long list answered? A page at a time, in an order that holds still, with the way to the next page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Generic, TypeVar

import ninja
import pydantic
from django.http import HttpRequest

from toolbelt.api import schemas

T = TypeVar("T")

MOST = 200
# More than any list has; and the largest number that both databases take as an id.
FURTHEST = 10**9
LARGEST = 2**63 - 1

Limit = Annotated[int, pydantic.Field(ge=1, le=MOST, description="How many at the most.")]


class Asked(schemas.Query):
    """Which page of a list."""

    limit: Limit = 50
    offset: Annotated[int, pydantic.Field(ge=0, le=FURTHEST, description="How many to pass over.")] = 0


class AskedOfLog(schemas.Query):
    """Which page of a log, newest first."""

    limit: Limit = 50
    older_than: Annotated[
        Annotated[int, pydantic.Field(ge=0, le=LARGEST)] | None,
        pydantic.Field(description="Begin behind the one with this id."),
    ] = None


class Page(ninja.Schema, Generic[T]):
    """One page: ``total`` counts all there are, ``next`` is the address of the next page, null on the last one."""

    items: list[T]
    total: int
    next: str | None = None

    @classmethod
    def model_parametrized_name(cls, params: tuple[Any, ...]) -> str:
        """Name the page of one kind of thing for the OpenAPI document."""
        return f"PageOf{params[0].__name__}"


def page(request: HttpRequest, asked: Asked, items: Sequence[Any], total: int) -> dict[str, Any]:
    """Put a page together from its items and the count of all."""
    end = asked.offset + len(items)
    following = _address(request, limit=asked.limit, offset=end) if items and end < total else None
    return {"items": list(items), "total": total, "next": following}


def of(request: HttpRequest, asked: Asked, everything: Sequence[Any]) -> dict[str, Any]:
    """Cut a page out of a list that is there whole."""
    cut = everything[asked.offset : asked.offset + asked.limit]
    return page(request, asked, cut, len(everything))


def older(
    request: HttpRequest, asked: AskedOfLog, items: Sequence[Any], total: int, last: int | None
) -> dict[str, Any]:
    """Put a page of a log together; ``last`` is the id of its last item, None where nothing is older."""
    following = _address(request, limit=asked.limit, older_than=last) if last is not None else None
    return {"items": list(items), "total": total, "next": following}


def _address(request: HttpRequest, **changed: object) -> str:
    query = request.GET.copy()
    for name, value in changed.items():
        query[name] = str(value)
    return f"{request.path}?{query.urlencode()}"
