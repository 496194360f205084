"""Filters of the list of tools that are not columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import admin
from django.db import models as orm
from django.db.models import functions

# Annotations are stored as canonical JSON text with the hints at the top level, so a text search finds them.
_READS = orm.Q(annotated__contains='"readOnlyHint":true')
_SPARES = orm.Q(annotated__contains='"destructiveHint":false')
_DESTROYS = orm.Q(annotated__contains='"destructiveHint":true')


class ByRisk(admin.SimpleListFilter):
    """Filters tools by risk."""

    title = "risk"
    parameter_name = "risk"
    _conditions: Mapping[str, orm.Q] = {
        "read-only": _READS,
        "writes": ~_READS & _SPARES,
        "destructive": ~_READS & _DESTROYS,
        "not stated": ~_READS & ~_SPARES & ~_DESTROYS,
    }

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        """Return the risks."""
        return [(word, word) for word in self._conditions]

    def queryset(self, request: Any, queryset: orm.QuerySet[Any]) -> orm.QuerySet[Any]:
        """Return the tools with the chosen risk."""
        condition = self._conditions.get(self.value() or "")
        if condition is None:
            return queryset
        as_text = functions.Cast("annotations", orm.TextField())
        narrowed: orm.QuerySet[Any] = queryset.annotate(annotated=as_text).filter(condition)
        return narrowed


class ByApproval(admin.SimpleListFilter):
    """Filters tools by whether only one version is approved."""

    title = "approval"
    parameter_name = "held"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        """Return the two states."""
        return [("yes", "one version"), ("no", "any version")]

    def queryset(self, request: Any, queryset: orm.QuerySet[Any]) -> orm.QuerySet[Any]:
        """Return the tools in the chosen state."""
        match self.value():
            case "yes":
                return queryset.exclude(approved="")
            case "no":
                return queryset.filter(approved="")
        return queryset
