"""The base classes of all forms that change something."""

from __future__ import annotations

from typing import Any

from django import forms
from django.forms import renderers

from toolbelt.core import errors


class FormError(errors.Invalid):
    """A form has values that no page offers."""


class Change(forms.Form):
    """The fields of every change: its confirmation, and a reason for the audit log."""

    confirm = forms.BooleanField(required=False)
    reason = forms.CharField(required=False, max_length=500)

    def checked(self) -> dict[str, Any]:
        """Return the cleaned values. Raise FormError with the problems of each field."""
        if not self.is_valid():
            raise FormError(
                [
                    errors.Problem(path=name, message=" ".join(map(str, messages)))
                    for name, messages in self.errors.items()
                ]
            )
        return self.cleaned_data


class Renderer(renderers.TemplatesSetting):
    """Renders the fields of a form as the pages do."""

    field_template_name = "kit/field.html"


class Fields(forms.Form):
    """A form whose fields are rendered by ``as_field_group``."""

    default_renderer = Renderer

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"auto_id": "field-%s", "use_required_attribute": False, **options})
        for field in self.fields.values():
            field.widget.attrs.setdefault("autocomplete", "off")
            if not isinstance(field.widget, forms.CheckboxInput | forms.CheckboxSelectMultiple):
                field.widget.attrs["class"] = f"field {field.widget.attrs.get('class', '')}".strip()

    def choose(self, field: str, choices: Any) -> None:
        """Set the values and labels that a field offers."""
        widget: Any = self.fields[field].widget
        widget.choices = list(choices)

    def field_at(self, path: str) -> str | None:
        """Return the field that shows the problems of a path in the changed entry; None if there is none."""
        return path if path in self.fields else None

    def message_of(self, problem: errors.Problem) -> str:
        """Return the message that a field shows for a problem."""
        return problem.message

    def refuse(self, error: errors.ToolbeltError, default_field: str | None) -> None:
        """Add each problem to its field; without one, to ``default_field``, or above the form if that is None."""
        if isinstance(error, FormError):
            return  # the form shows its own errors
        for problem in error.problems:
            self.add_error(self.field_at(problem.path) or default_field, self.message_of(problem))
