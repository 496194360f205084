"""A JSON field that stores the same text on every database.

PostgreSQL's ``jsonb`` normalizes values, such as numbers, so the hash of a schema could differ between databases.
``JSONText`` stores the canonical text on all of them, and code that needs only the text never has to parse it. The
database rejects text that is not JSON, or not of the field's shape.
"""

from __future__ import annotations

from typing import Any, Literal

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

from toolbelt.core import schema

Shape = Literal["object", "array", "any"]

# Both databases use the same names for these two shapes. Validity is checked first, because SQLite raises an error for
# the type of invalid JSON.
_IS_JSON = {"sqlite": "JSON_VALID({column})", "postgresql": "{column}::json IS NOT NULL"}
_TYPE_OF = {"sqlite": "JSON_TYPE({column})", "postgresql": "json_typeof({column}::json)"}


class JSONText(models.JSONField):
    """A JSON document, of one shape or of any, stored as canonical text."""

    def __init__(self, *args: Any, shape: Shape = "any", **kwargs: Any) -> None:
        self.shape = shape
        super().__init__(*args, **kwargs)

    def deconstruct(self) -> Any:
        """Return the field's arguments for migrations, with the shape."""
        name, path, args, kwargs = super().deconstruct()
        return name, path, args, {**kwargs, "shape": self.shape}

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        """Return the column type, which is text on every database."""
        return "text"

    def db_check(self, connection: BaseDatabaseWrapper) -> str | None:
        """Return the check that makes the database reject anything else."""
        column = connection.ops.quote_name(str(self.column))
        check = f"{column} IS NULL OR {_IS_JSON[connection.vendor]}"
        if self.shape != "any":
            check += f" AND {_TYPE_OF[connection.vendor]} = '{self.shape}'"
        return check.format(column=column)

    def get_db_prep_value(self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False) -> Any:
        """Return the canonical text; expressions are unchanged."""
        if value is None or hasattr(value, "as_sql"):
            return value
        return schema.canonical(value)
