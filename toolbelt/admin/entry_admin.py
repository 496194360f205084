"""The admin pages of one kind of entry.

Django saves a form, then the rows of its formsets. Here both make up one entry, which the form writes through
``control`` while it is validated, so that problems become errors of their fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from urllib import parse

from django.contrib.admin.utils import unquote
from django.core import exceptions
from django.db import models as orm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from toolbelt.admin import entry_actions, entry_forms, inputs
from toolbelt.control.catalog import entries
from toolbelt.models import fields


class EntryAdmin(entry_actions.EntryActions):
    """The admin pages of one kind of entry."""

    form: type[entry_forms.EntryForm] = entry_forms.EntryForm
    # The rows of text areas that are not of the usual size.
    heights: ClassVar[Mapping[str, int]] = {}
    save_on_top = True
    formfield_overrides = {
        orm.CharField: {"form_class": inputs.Text},
        orm.TextField: {"form_class": inputs.Text},
        fields.JSONText: {"form_class": inputs.Json},
    }

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """Return the form class, which writes this kind of entry on behalf of the user."""
        form_class: Any = super().get_form(request, obj, change, **kwargs)
        form_class.kind, form_class.write = self.kind, entry_actions.write(request)
        return form_class

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Return the form field, in its height."""
        form_field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if form_field is not None and db_field.name in self.heights:
            form_field.widget.attrs["rows"] = self.heights[db_field.name]
        return form_field

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user may remove entries; some kinds never are, so that their switches and history stay."""
        return self.kind not in entries.RETIRED_NOT_REMOVED and super().has_delete_permission(request, obj)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Load the row that the form wrote."""
        name = form.cleaned_data.get(entries.name_field(self.kind)) or self.name_of(obj)
        obj.pk = self.model._default_manager.values_list("pk", flat=True).get(
            **{entries.name_field(self.kind): name}
        )
        obj.refresh_from_db()

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Do nothing: the form has written the rows as part of the entry."""

    def construct_change_message(
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> Any:
        """Return the changed keys for Django's own log."""
        return [{"added": {}}] if add else [{"changed": {"fields": form.changed_keys}}]

    def _create_formsets(self, request: HttpRequest, obj: Any, change: bool) -> Any:
        """Return the formsets, and pass those that the user may edit to the form, which writes them."""
        formsets, inlines = super()._create_formsets(request, obj, change)  # type: ignore[misc]
        obj.formsets = [formset for formset in formsets if formset.is_editable]
        return formsets, inlines

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> Any:
        """Show the page, with the confirmation at the top if one is required."""
        page = context["adminform"]
        if "confirm" in page.form.errors:
            page.fieldsets.insert(0, ("This change", {"fields": ["confirm"]}))
        return super().render_change_form(request, context, *args, **kwargs)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the sections, with one for the reason. A new entry shows no read-only fields."""
        fieldsets = list(super().get_fieldsets(request, obj))
        if obj is None:
            fieldsets = _without(fieldsets, self.get_readonly_fields(request))
        may_save = self.has_change_permission(request, obj) if obj else self.has_add_permission(request)
        return [*fieldsets, ("This change", {"fields": ["reason", "as_loaded"]})] if may_save else fieldsets

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the read-only fields. The name of an existing entry is one of them, because others refer to it."""
        readonly = super().get_readonly_fields(request, obj)
        return [*readonly, entries.name_field(self.kind)] if obj else readonly

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        """Redirect to the entry's audit log if the user may read it."""
        row = self.get_object(request, unquote(object_id))
        if row is None or not request.user.has_perm("toolbelt.view_auditentry"):
            return super().history_view(request, object_id, extra_context)
        if not self.has_view_or_change_permission(request, row):
            raise exceptions.PermissionDenied
        query = parse.urlencode({"subject_kind": self.kind, "subject_key": self.name_of(row)})
        return HttpResponseRedirect(f"{reverse('admin:toolbelt_auditentry_changelist')}?{query}")


def _without(fieldsets: list[Any], unwanted: Sequence[Any]) -> list[Any]:
    """Return the sections without these fields, and without sections that become empty."""
    left = [
        (title, {**options, "fields": [field for field in options["fields"] if field not in unwanted]})
        for title, options in fieldsets
    ]
    return [(title, options) for title, options in left if options["fields"]]
