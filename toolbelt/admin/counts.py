"""Columns of lists that are computed from related rows, in the query of the list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import models as orm
from django.db.models import functions
from django.utils import timezone


class Count:
    """A column that counts the rows of ``model`` whose field ``of`` refers to the row."""

    def __init__(
        self, name: str, model: type[orm.Model], of: str, *, title: str = "", **narrowed: Any
    ) -> None:
        self.__name__ = f"{name}_count"
        self.short_description = title or name
        self.admin_order_field = self.__name__
        self._model, self._of, self._narrowed = model, of, narrowed

    def __call__(self, row: Any) -> str:
        """Return the number of related rows."""
        return str(getattr(row, self.__name__))

    def expression(self) -> functions.Coalesce:
        """Return the subquery that counts. Joins would multiply the rows of the list."""
        counted = (
            self._model._default_manager.filter(**{self._of: orm.OuterRef("pk")}, **self._narrowed)
            .order_by()
            .values(self._of)
            .annotate(number=orm.Count("pk"))
            .values("number")
        )
        return functions.Coalesce(orm.Subquery(counted), 0)


class Soonest:
    """A column that shows the first future time in ``field`` of the rows of ``models`` whose field ``of`` refers to the
    row.
    """

    def __init__(
        self, name: str, models: Sequence[type[orm.Model]], of: str, field: str, *, title: str
    ) -> None:
        self.__name__ = f"{name}_soonest"
        self.short_description = title
        self.admin_order_field = self.__name__
        self._models, self._of, self._field = models, of, field

    def __call__(self, row: Any) -> Any:
        """Return the time, or None."""
        return getattr(row, self.__name__)

    def expression(self) -> Any:
        """Return the subquery for the time. Joins would multiply the rows of the list."""
        soonest = [
            orm.Subquery(
                model._default_manager.filter(
                    **{self._of: orm.OuterRef("pk"), f"{self._field}__gt": timezone.now()}
                )
                .order_by(self._field)
                .values(self._field)[:1]
            )
            for model in self._models
        ]
        # With a NULL, LEAST is NULL in some databases, and ignores it in others.
        return functions.Least(*(functions.Coalesce(first, *soonest) for first in soonest))
