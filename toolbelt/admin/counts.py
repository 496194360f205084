"""What is told of the rows of other kinds that belong to each row of a list? Read with the list, in one query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import models as orm
from django.db.models import functions
from django.utils import timezone


class Count:
    """A column of a list that counts the rows of ``model`` whose field ``of`` is the list's row."""

    def __init__(
        self, name: str, model: type[orm.Model], of: str, *, title: str = "", **narrowed: Any
    ) -> None:
        self.__name__ = f"{name}_count"
        self.short_description = title or name
        self.admin_order_field = self.__name__
        self._model, self._of, self._narrowed = model, of, narrowed

    def __call__(self, row: Any) -> str:
        """Return what was counted."""
        return str(getattr(row, self.__name__))

    def expression(self) -> functions.Coalesce:
        """Return what counts, without multiplying the rows of the list as joins do."""
        counted = (
            self._model._default_manager.filter(**{self._of: orm.OuterRef("pk")}, **self._narrowed)
            .order_by()
            .values(self._of)
            .annotate(number=orm.Count("pk"))
            .values("number")
        )
        return functions.Coalesce(orm.Subquery(counted), 0)


class Soonest:
    """A column of a list that gives the first moment still to come in ``field`` of the rows whose field ``of`` is the
    list's row, in any of ``models``.
    """

    def __init__(
        self, name: str, models: Sequence[type[orm.Model]], of: str, field: str, *, title: str
    ) -> None:
        self.__name__ = f"{name}_soonest"
        self.short_description = title
        self.admin_order_field = self.__name__
        self._models, self._of, self._field = models, of, field

    def __call__(self, row: Any) -> Any:
        """Return what was found."""
        return getattr(row, self.__name__)

    def expression(self) -> Any:
        """Return what looks for it, without multiplying the rows of the list as joins do."""
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
        # The least of something and nothing is nothing in some databases, and something in others.
        return functions.Least(*(functions.Coalesce(one, *soonest) for one in soonest))
