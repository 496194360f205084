"""The filters that people saved under a name, list by list, for their own use of the dashboard."""

from __future__ import annotations

from dataclasses import dataclass

from toolbelt import models


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedView:
    """A name, and the filters that it stands for as the query of the list's address."""

    name: str
    query: str


def of(user: int, page: str) -> tuple[SavedView, ...]:
    """Return the views of a list that a person (by primary key) saved, by name."""
    rows = models.SavedView.objects.filter(user=user, page=page).order_by("name").values_list("name", "query")
    return tuple(SavedView(name=name, query=query) for name, query in rows)


def put(user: int, page: str, view: SavedView) -> None:
    """Save a view; one of the same name is replaced."""
    models.SavedView.objects.update_or_create(
        user_id=user, page=page, name=view.name, defaults={"query": view.query}
    )


def remove(user: int, page: str, name: str) -> None:
    """Delete a view, if there is one of that name."""
    models.SavedView.objects.filter(user=user, page=page, name=name).delete()
