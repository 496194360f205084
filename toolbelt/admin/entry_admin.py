"""How is one kind of entry edited, through the door?

Django saves a form, then the rows under it. Here both are put together to one entry, and control writes that. If it
refuses, all is rolled back and the form shown again, with what stood against it at its fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib import parse

from django.contrib.admin.utils import unquote
from django.core import exceptions
from django.db import models as orm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from toolbelt.admin import entry_actions, entry_forms, inlines, inputs, saving, wishes
from toolbelt.control import entries
from toolbelt.models import fields

_NOT_SAVED = "toolbelt.not_saved"


class EntryAdmin(entry_actions.EntryActions):
    """One kind of entry."""

    form: type[entry_forms.EntryForm]
    save_on_top = True
    formfield_overrides = {
        orm.CharField: {"form_class": inputs.Text},
        orm.TextField: {"form_class": inputs.Text},
        fields.JSONText: {"form_class": inputs.Json},
    }

    class Media:
        css = {"all": ["admin/css/toolbelt.css"]}

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: Any = None,
    ) -> Any:
        """Show the form or save it; where the door refuses, show it again."""
        try:
            return super().changeform_view(request, object_id, form_url, extra_context)
        except wishes.NotSaved as why:
            request.META[_NOT_SAVED] = why
            return super().changeform_view(request, object_id, form_url, extra_context)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Write nothing yet: the lines belong to the same entry."""

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Write the form and its lines as one entry."""
        of_lines: dict[str, Any] = {}
        for formset in formsets:
            if formset.is_editable:
                of_lines |= formset.entry()
        wish = form.wish(of_lines, entry_actions.actor(request))
        form.changed_keys = saving.save(wish)
        named = self.model._default_manager.filter(**{entries.naming(self.kind): wish.name})
        form.instance.pk = named.values_list("pk", flat=True).get()
        form.instance.refresh_from_db()

    def construct_change_message(
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> Any:
        """Tell Django's own log which keys were changed."""
        return [{"added": {}}] if add else [{"changed": {"fields": form.changed_keys}}]

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """Make the form, with what stood against it the last time."""
        made: Any = super().get_form(request, obj, change, **kwargs)
        made.not_saved = _not_saved(request)
        made.keys_elsewhere = frozenset(
            key
            for inline in self.get_inline_instances(request, obj)
            if isinstance(inline, inlines.RowsInline)
            for key in inline.formset.keys
        )
        return made

    def get_formset_kwargs(self, request: HttpRequest, obj: Any, inline: Any, prefix: str) -> dict[str, Any]:
        """Make lines with what stood against them the last time."""
        return {
            **super().get_formset_kwargs(request, obj, inline, prefix),
            "not_saved": _not_saved(request),
        }

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Ask for a reason too, and for a confirmation where one is needed; of what is new, show only what to type."""
        fieldsets = list(super().get_fieldsets(request, obj))
        if obj is None:
            fieldsets = _without(fieldsets, self.get_readonly_fields(request))
        may_save = self.has_change_permission(request, obj) if obj else self.has_add_permission(request)
        if not may_save:
            return fieldsets
        why = _not_saved(request)
        if why and why.asked:
            return [("This change", {"fields": ["confirm", "reason", "as_loaded"]}), *fieldsets]
        return [*fieldsets, ("This change", {"fields": ["reason", "as_loaded"]})]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Keep the name of what is there: everything else refers to it by that."""
        readonly = super().get_readonly_fields(request, obj)
        return [*readonly, entries.naming(self.kind)] if obj else readonly

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        """Show what the audit says of it, to whoever may read that."""
        row = self.get_object(request, unquote(object_id))
        if row is None or not request.user.has_perm("toolbelt.view_auditentry"):
            return super().history_view(request, object_id, extra_context)
        if not self.has_view_or_change_permission(request, row):
            raise exceptions.PermissionDenied
        asked = parse.urlencode({"subject_kind": self.kind, "subject_key": self.name_of(row)})
        return HttpResponseRedirect(f"{reverse('admin:toolbelt_auditentry_changelist')}?{asked}")


class KeptAdmin(EntryAdmin):
    """One kind of entry that is never removed, because its switches and its history stay."""

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse to everyone."""
        return False


def _without(fieldsets: list[Any], unwanted: Sequence[Any]) -> list[Any]:
    """Leave fields out, and sections that hold no others."""
    left = [
        (title, {**options, "fields": [field for field in options["fields"] if field not in unwanted]})
        for title, options in fieldsets
    ]
    return [(title, options) for title, options in left if options["fields"]]


def _not_saved(request: HttpRequest) -> wishes.NotSaved | None:
    """Give what stood against this request, when its form is being shown again."""
    found: wishes.NotSaved | None = request.META.get(_NOT_SAVED)
    return found
