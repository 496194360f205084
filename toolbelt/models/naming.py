"""How is a row found by its name? Natural keys, and the constraints that all names share."""

from __future__ import annotations

import operator
from typing import ClassVar, TypeVar

from django.db import models
from django.db.models import functions

_Row = TypeVar("_Row", bound="Named")


class ByName(models.Manager[_Row]):
    """Finds rows by what names them, as fixtures do."""

    def get_by_natural_key(self, *names: str) -> _Row:
        """Find the row of this natural key."""
        return self.get(**dict(zip(self.model.named_by, names, strict=True)))


class Named(models.Model):
    """A row with a natural key: ``named_by`` gives the fields it consists of, across relations too."""

    named_by: ClassVar[tuple[str, ...]] = ()

    objects = ByName()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return " / ".join(self.natural_key())

    def natural_key(self) -> tuple[str, ...]:
        """Give what names this row whatever its number is."""
        return tuple(operator.attrgetter(path.replace("__", "."))(self) for path in self.named_by)


def not_blank(model: str, field: str) -> models.CheckConstraint:
    """Refuse a blank name."""
    return models.CheckConstraint(
        condition=~models.Q(**{field: ""}),
        name=f"{model}_{field}_not_blank",
        violation_error_message="A name cannot be blank.",
    )


def unique_in_any_case(model: str, field: str, condition: models.Q | None = None) -> models.UniqueConstraint:
    """Refuse two names that differ in case alone."""
    return models.UniqueConstraint(
        functions.Lower(field),
        condition=condition,
        name=f"{model}_{field}_unique_in_any_case",
        violation_error_message="This name is taken by one that differs from it in case alone, or not at all.",
    )


def no_separator(model: str, field: str) -> models.CheckConstraint:
    """Refuse ``__`` where it would end a namespace."""
    return models.CheckConstraint(
        condition=~models.Q(**{f"{field}__contains": "__"}),
        name=f"{model}_{field}_no_separator",
        violation_error_message="A double underscore only ends a namespace: use a single one.",
    )


def one_of(model: str, field: str, words: tuple[str | bool, ...]) -> models.CheckConstraint:
    """Refuse anything but these words, or true and false, whoever writes it."""
    return models.CheckConstraint(
        condition=models.Q(**{f"{field}__in": words}),
        name=f"{model}_{field}_one_of",
        violation_error_message=f"This is one of: {', '.join(str(word) for word in words if word != '')}.",
    )
