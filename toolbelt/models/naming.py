"""Natural keys, and the constraints that all names share."""

from __future__ import annotations

import operator
from typing import ClassVar, TypeVar

from django.db import models
from django.db.models import functions

_Row = TypeVar("_Row", bound="Named")


class ByName(models.Manager[_Row]):
    """A manager that finds rows by their natural key, as fixtures do."""

    def get_by_natural_key(self, *names: str) -> _Row:
        """Return the row with this natural key."""
        return self.get(**dict(zip(self.model.named_by, names, strict=True)))


class Named(models.Model):
    """A row with a natural key: ``named_by`` lists its fields, which may follow relations."""

    named_by: ClassVar[tuple[str, ...]] = ()

    objects = ByName()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return " / ".join(self.natural_key())

    def natural_key(self) -> tuple[str, ...]:
        """Return the natural key, which is independent of the primary key."""
        return tuple(operator.attrgetter(path.replace("__", "."))(self) for path in self.named_by)


def not_blank(model: str, field: str) -> models.CheckConstraint:
    """Return the constraint that a name is not blank."""
    return models.CheckConstraint(
        condition=~models.Q(**{field: ""}),
        name=f"{model}_{field}_not_blank",
        violation_error_message="A name cannot be blank.",
    )


def unique_in_any_case(model: str, field: str, condition: models.Q | None = None) -> models.UniqueConstraint:
    """Return the constraint that names are unique, ignoring case."""
    return models.UniqueConstraint(
        functions.Lower(field),
        condition=condition,
        name=f"{model}_{field}_unique_in_any_case",
        violation_error_message="This name is already taken. Names are compared without regard to case.",
    )


def no_separator(model: str, field: str) -> models.CheckConstraint:
    """Return the constraint that a name does not contain ``__``, which ends a namespace."""
    return models.CheckConstraint(
        condition=~models.Q(**{f"{field}__contains": "__"}),
        name=f"{model}_{field}_no_separator",
        violation_error_message="A double underscore only ends a namespace: use a single one.",
    )


def one_of(model: str, field: str, words: tuple[str | bool, ...]) -> models.CheckConstraint:
    """Return the constraint that a field is one of these values."""
    return models.CheckConstraint(
        condition=models.Q(**{f"{field}__in": words}),
        name=f"{model}_{field}_one_of",
        violation_error_message=f"This is one of: {', '.join(str(word) for word in words if word != '')}.",
    )
