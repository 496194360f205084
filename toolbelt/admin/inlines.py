"""Tables of rows inside the form of their entry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin
from django.db import models as orm
from django.http import HttpRequest

from toolbelt.admin import inputs, rows
from toolbelt.control.people import rights
from toolbelt.models import fields

if TYPE_CHECKING:
    _Inline = admin.TabularInline[Any, Any]
else:
    _Inline = admin.TabularInline


class RowsInline(_Inline):
    """A table of rows. Who may change the entry may change all of its rows, as on the dashboard and in the API."""

    form = rows.RowForm
    formset: type[rows.Rows] = rows.Rows
    keys: ClassVar[tuple[str, ...]]
    target: ClassVar[str] = "tool"
    extra = 0
    formfield_overrides = {fields.JSONText: {"form_class": inputs.ShortJson}}

    def get_queryset(self, request: HttpRequest) -> orm.QuerySet[Any]:
        """Return the rows with what they refer to, in one query."""
        related = [field.name for field in self.opts.get_fields() if field.many_to_one]
        return super().get_queryset(request).select_related(*related)

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        """Return the formset class, which knows whether the user may change the rows."""
        formset_class: Any = super().get_formset(request, obj, **kwargs)
        formset_class.keys, formset_class.target = self.keys, self.target
        formset_class.is_editable = self._may_edit(request, obj)
        return formset_class

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Return the form field. A reference is searched on the server, because there may be thousands of options."""
        if db_field.name == self.target:
            search = inputs.Search(db_field, self.admin_site)
            return db_field.formfield(form_class=inputs.Choice, widget=search, **kwargs)
        if db_field.name == "on":
            return inputs.OnOff(label="State", help_text=db_field.help_text)
        form_field: Any = super().formfield_for_dbfield(db_field, request, **kwargs)
        if db_field.name == "position":
            form_field.required, form_field.initial, form_field.label = False, None, "Order"
            form_field.widget = forms.NumberInput(attrs={"min": 0, "class": "vIntegerField"})
        return form_field

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user may change the rows."""
        return self._may_edit(request, obj)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user may change the rows."""
        return self._may_edit(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user may change the rows."""
        return self._may_edit(request, obj)

    def _may_edit(self, request: HttpRequest, obj: Any) -> bool:
        act: rights.Act = "add" if obj is None else "change"
        return request.user.has_perm(rights.permission(act, str(self.parent_model._meta.model_name)))
