"""The admin pages of the call log: read-only. The command ``prune_calls`` deletes old records."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from toolbelt import models
from toolbelt.core import outcomes

if TYPE_CHECKING:
    _Admin = admin.ModelAdmin[models.CallRecord]
else:
    _Admin = admin.ModelAdmin


class OutcomeFilter(admin.SimpleListFilter):
    """Narrows the calls by their outcome as it counts now."""

    title = parameter_name = "outcome"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        """Return the outcomes of calls."""
        return [(word, word) for word in (*outcomes.STORED, outcomes.UNREPORTED)]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[models.CallRecord]
    ) -> QuerySet[models.CallRecord]:
        """Return the calls with the chosen outcome."""
        outcome, now = self.value(), timezone.now()
        if not outcome:
            return queryset
        if outcome == outcomes.UNREPORTED:
            return queryset.filter(outcome=outcomes.ADMITTED, report_by__lt=now)
        if outcome == outcomes.ADMITTED:
            return queryset.filter(outcome=outcome).exclude(report_by__lt=now)
        return queryset.filter(outcome=outcome)


@admin.register(models.CallRecord)
class CallRecordAdmin(_Admin):
    """The call log. Records are never changed, and only deleted by age."""

    list_display = [
        "at",
        "agent",
        "tool",
        "current_outcome",
        "duration_ms",
        "arguments_bytes",
        "result_bytes",
    ]
    list_filter = [OutcomeFilter, ("agent", admin.AllValuesFieldListFilter)]
    search_fields = ["agent", "tool", "plugin", "session", "request_id"]
    date_hierarchy = "at"
    show_full_result_count = False
    # The stored outcome says "admitted" also when the report is overdue. A digest of arguments is only compared with
    # those of other calls.
    exclude = ["outcome", "arguments_digest"]
    readonly_fields = ["current_outcome"]

    @admin.display(description="outcome", ordering="outcome")
    def current_outcome(self, call: models.CallRecord) -> str:
        """Return the outcome as it counts now."""
        return call.outcome_now

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Return False: records are only added by calls."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return False: records do not change."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return False: records are only deleted by age."""
        return False
