"""By what can tools be narrowed down that is no column of theirs?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import admin
from django.db import models as orm
from django.db.models import functions

# Annotations are stored as canonical text, and their hints stand at its top: their words can be looked for.
_READS, _SPARES = '"readOnlyHint":true', '"destructiveHint":false'
_SAYS = {"reads": orm.Q(annotated__contains=_READS), "spares": orm.Q(annotated__contains=_SPARES)}


class ByRisk(admin.SimpleListFilter):
    """By what calling a tool can do."""

    title = "risk"
    parameter_name = "risk"
    _conditions: Mapping[str, orm.Q] = {
        "read-only": _SAYS["reads"],
        "writes": ~_SAYS["reads"] & _SAYS["spares"],
        "destructive": ~_SAYS["reads"] & ~_SAYS["spares"],
    }

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        """Name the risks."""
        return [(word, word) for word in self._conditions]

    def queryset(self, request: Any, queryset: orm.QuerySet[Any]) -> orm.QuerySet[Any]:
        """Keep the tools of the chosen risk."""
        wanted = self._conditions.get(self.value() or "")
        if wanted is None:
            return queryset
        as_text = functions.Cast("annotations", orm.TextField())
        narrowed: orm.QuerySet[Any] = queryset.annotate(annotated=as_text).filter(wanted)
        return narrowed


class ByApproval(admin.SimpleListFilter):
    """By whether a tool is held to an approved version."""

    title = "approval"
    parameter_name = "held"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        """Name the two states."""
        return [("yes", "one version"), ("no", "any version")]

    def queryset(self, request: Any, queryset: orm.QuerySet[Any]) -> orm.QuerySet[Any]:
        """Keep the tools of the chosen state."""
        match self.value():
            case "yes":
                return queryset.exclude(approved="")
            case "no":
                return queryset.filter(approved="")
        return queryset
