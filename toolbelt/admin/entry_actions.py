"""Removing entries, and changing several at once, through ``control``: all of them or none."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from django import db
from django.contrib import admin, messages
from django.contrib.admin import actions
from django.db import models as orm
from django.db import transaction
from django.http import HttpRequest, HttpResponseRedirect
from django.urls import reverse

from toolbelt.admin import counts
from toolbelt.control import writing
from toolbelt.control.catalog import entries, ordering
from toolbelt.core import belts, errors

if TYPE_CHECKING:
    _Admin = admin.ModelAdmin[Any]
else:
    _Admin = admin.ModelAdmin

# For entries whose order operators choose.
MOVES = ("move_to_top", "move_up", "move_to_bottom")
BLOCK: Mapping[str, Any] = {"blocked": True}
Changes = Mapping[str, Any] | Callable[[Any], Mapping[str, Any]]


def write(request: HttpRequest) -> writing.Write:
    """Return the write of the user who sent the request."""
    return writing.by(request.user.get_username(), via="admin")


class EntryActions(_Admin):
    """Actions on the entries of a list."""

    kind: ClassVar[belts.KindName]
    actions = ["delete_selected"]

    def name_of(self, row: Any) -> str:
        """Return the name of a row's entry."""
        return str(getattr(row, entries.name_field(self.kind)))

    def get_queryset(self, request: HttpRequest) -> orm.QuerySet[Any]:
        """Return the rows of the list, with the columns that are computed from related rows."""
        counted = {
            column.__name__: column.expression()
            for column in self.list_display
            if isinstance(column, counts.Count | counts.Soonest)
        }
        rows: orm.QuerySet[Any] = super().get_queryset(request).annotate(**counted)
        return rows

    def change_each(self, request: HttpRequest, queryset: Any, changes: Changes, action: str = "") -> None:
        """Change each of the entries: all, or none with an error message. ``action`` is that of the audit log."""
        rows = [*queryset]
        try:
            with writing.begin():
                # Read once for all entries: such a change neither adds nor removes a name.
                index = entries.name_index()
                change = functools.partial(
                    entries.change, write(request).in_batch().replace(action=action), self.kind, index=index
                )
                results = [
                    change(self.name_of(row), changes(row) if callable(changes) else changes) for row in rows
                ]
        except (errors.NotStored, db.Error):
            if changes != BLOCK:
                raise
            # Nothing was stored: each stop is held in this process on its own.
            for row in rows:
                try:
                    entries.change(write(request), self.kind, self.name_of(row), BLOCK)
                except errors.NotStored as error:
                    self.message_user(request, str(error), messages.ERROR)
            return
        except errors.ToolbeltError as error:
            self.message_user(request, str(error), messages.ERROR)
            return
        changed = sum(not differences.is_nothing for differences in results)
        unchanged = len(results) - changed
        message = f"{changed} changed." + (f" {unchanged} already up to date." if unchanged else "")
        self.message_user(request, message, messages.SUCCESS)

    @admin.action(permissions=["change"], description="Block selected %(verbose_name_plural)s for everyone")
    def block(self, request: HttpRequest, queryset: Any) -> None:
        """Block the selected entries."""
        self.change_each(request, queryset, BLOCK)

    @admin.action(permissions=["change"], description="Unblock selected %(verbose_name_plural)s")
    def unblock(self, request: HttpRequest, queryset: Any) -> None:
        """Unblock the selected entries."""
        self.change_each(request, queryset, {"blocked": False})

    @admin.action(permissions=["change"], description="Move selected %(verbose_name_plural)s to the top")
    def move_to_top(self, request: HttpRequest, queryset: Any) -> None:
        """Move the selected entries to the top."""
        self._move(request, queryset, to=0)

    @admin.action(permissions=["change"], description="Move selected %(verbose_name_plural)s up")
    def move_up(self, request: HttpRequest, queryset: Any) -> None:
        """Move the selected entries together, one place before the first of them."""
        selected, stored = {self.name_of(row) for row in queryset}, ordering.names(self.kind)
        first = next((position for position, name in enumerate(stored) if name in selected), 0)
        self._move(request, queryset, to=max(0, first - 1))

    @admin.action(permissions=["change"], description="Move selected %(verbose_name_plural)s to the bottom")
    def move_to_bottom(self, request: HttpRequest, queryset: Any) -> None:
        """Move the selected entries to the end."""
        self._move(request, queryset, to=-1)

    def _move(self, request: HttpRequest, queryset: Any, to: int) -> None:
        try:
            change = ordering.move(write(request), self.kind, [self.name_of(row) for row in queryset], to=to)
        except errors.ToolbeltError as error:
            self.message_user(request, str(error), messages.ERROR)
            return
        message = "No changes: the order is already as requested." if change.is_nothing else "Order changed."
        self.message_user(request, message, messages.SUCCESS)

    @admin.action(permissions=["delete"], description="Delete selected %(verbose_name_plural)s")
    def delete_selected(self, request: HttpRequest, queryset: Any) -> Any:
        """Remove the selected entries: all, or none with an error message."""
        try:
            with transaction.atomic():
                return actions.delete_selected(self, request, queryset)
        except errors.ToolbeltError as error:
            self.message_user(request, str(error), messages.ERROR)
            return None

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        """Remove several entries, one after the other."""
        batch = write(request).in_batch()
        for row in queryset:
            entries.remove(batch, self.kind, self.name_of(row))

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        """Remove an entry, or show why not."""
        try:
            return super().delete_view(request, object_id, extra_context)
        except errors.ToolbeltError as error:
            self.message_user(request, str(error), messages.ERROR)
            change = f"admin:{self.opts.app_label}_{self.opts.model_name}_change"
            return HttpResponseRedirect(reverse(change, args=[object_id]))

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Remove an entry."""
        entries.remove(write(request), self.kind, self.name_of(obj))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Return the rows that are deleted along with the entries. ``control`` checks for references to them."""
        deleted, counted, lacking, _ = super().get_deleted_objects(objs, request)
        return deleted, counted, lacking, []
