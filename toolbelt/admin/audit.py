"""The admin pages of the audit log: read-only, except that changes can be undone."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.core import exceptions
from django.http import HttpRequest

from toolbelt import models
from toolbelt.admin import entry_actions
from toolbelt.control import undo, writing
from toolbelt.control.people import rights
from toolbelt.core import belts, errors, schema

if TYPE_CHECKING:
    _Admin = admin.ModelAdmin[models.AuditEntry]
else:
    _Admin = admin.ModelAdmin

_MAX_LENGTH = 80
_HASH = re.compile(r"(rejected:)?sha256:[0-9a-f]{64}")


@admin.register(models.AuditEntry)
class AuditEntryAdmin(_Admin):
    """The audit log. Entries are never changed or deleted: undoing a change adds one."""

    list_display = [
        "at",
        "actor",
        "actor_kind",
        "asked_by",
        "via",
        "action",
        "subject_kind",
        "subject_key",
        "key",
        "was",
        "became",
        "reason",
        "revision",
        "unlogged",
    ]
    list_filter = [
        "via",
        "actor_kind",
        "subject_kind",
        ("action", admin.AllValuesFieldListFilter),
        ("actor", admin.AllValuesFieldListFilter),
    ]
    search_fields = ["subject_key", "key", "actor", "reason"]
    date_hierarchy = "at"
    show_full_result_count = False
    list_select_related = False
    actions = ["undo"]

    @admin.display(description="before")
    def was(self, row: models.AuditEntry) -> str:
        """Return the value before the change."""
        return _in_words(belts.withheld(row.before))

    @admin.display(description="after")
    def became(self, row: models.AuditEntry) -> str:
        """Return the value after the change."""
        return _in_words(belts.withheld(row.after))

    @admin.action(description="Undo selected changes")
    def undo(self, request: HttpRequest, queryset: Any) -> None:
        """Undo the selected changes, newest first: all of them, or none with an error message.

        What was observed is left out, unless nothing else is selected.
        """
        selected = list(queryset.order_by("-id"))
        entries = [entry for entry in selected if not undo.is_fact(entry.pk)] or selected
        for entry in entries:
            if not rights.may_undo(request.user, entry):
                raise exceptions.PermissionDenied
        try:
            with writing.begin():
                changes = [undo.undo(entry_actions.write(request), entry.pk) for entry in entries]
        except errors.ToolbeltError as error:
            self.message_user(request, str(error), messages.ERROR)
            return
        undone = sum(not change.is_nothing for change in changes)
        observed = len(selected) - len(entries)
        note = f" {observed} observed: these cannot be undone, review the tools instead." if observed else ""
        self.message_user(request, f"{undone} undone.{note}", messages.SUCCESS)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Return False: entries are only added by changes."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return False: the audit log is permanent."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return False: the audit log is permanent."""
        return False


def _in_words(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return errors.describe_value(value)
    text = _HASH.sub(lambda found: "rejected version" if found[1] else "version", schema.canonical(value))
    return textwrap.shorten(text, _MAX_LENGTH, placeholder=" …")
