"""How is JSON kept, so that every database gives back the very text that was written?

PostgreSQL's ``jsonb`` rewrites what it is given: numbers change their form, so the hash of a schema could differ from
one database to the next. ``JSONText`` keeps the one canonical text on all of them, and a reader that wants no more
than text never has to parse it. The database refuses what is not JSON, or not of the field's shape.
"""

from __future__ import annotations

from typing import Any, Literal

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

from toolbelt.core import schema

Shape = Literal["object", "array", "any"]

# Both databases call these two shapes by the same names. SQLite is asked for validity first, because it answers the
# question for the type of what is no JSON with an error of its own.
_IS_JSON = {"sqlite": "JSON_VALID({column})", "postgresql": "{column}::json IS NOT NULL"}
_TYPE_OF = {"sqlite": "JSON_TYPE({column})", "postgresql": "json_typeof({column}::json)"}


class JSONText(models.JSONField):
    """A JSON document, of one shape or of any, kept as its canonical text."""

    def __init__(self, *args: Any, shape: Shape = "any", **kwargs: Any) -> None:
        self.shape = shape
        super().__init__(*args, **kwargs)

    def deconstruct(self) -> Any:
        """Tell migrations about the shape, too."""
        name, path, args, kwargs = super().deconstruct()
        return name, path, args, {**kwargs, "shape": self.shape}

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        """Be a text column on every database."""
        return "text"

    def db_check(self, connection: BaseDatabaseWrapper) -> str | None:
        """Let the database refuse everything else, whoever writes it."""
        column = connection.ops.quote_name(str(self.column))
        check = f"{column} IS NULL OR {_IS_JSON[connection.vendor]}"
        if self.shape != "any":
            check += f" AND {_TYPE_OF[connection.vendor]} = '{self.shape}'"
        return check.format(column=column)

    def get_db_prep_value(self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False) -> Any:
        """Write the canonical text; an expression stays what it is."""
        if value is None or hasattr(value, "as_sql"):
            return value
        return schema.canonical(value)
