"""How many rows of another kind belong to each row of a list? Counted with the list, in one query."""

from __future__ import annotations

from typing import Any

from django.db import models as orm
from django.db.models import functions


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
        """Give what was counted."""
        return str(getattr(row, self.__name__))

    def expression(self) -> functions.Coalesce:
        """Give what counts, without multiplying the rows of the list as joins do."""
        counted = (
            self._model._default_manager.filter(**{self._of: orm.OuterRef("pk")}, **self._narrowed)
            .order_by()
            .values(self._of)
            .annotate(number=orm.Count("pk"))
            .values("number")
        )
        return functions.Coalesce(orm.Subquery(counted), 0)
