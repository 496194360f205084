"""Form fields and widgets for values that Django's own would alter: text, JSON, lists of names, choices."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.admin import widgets
from django.core import exceptions
from django.db import models as orm

if TYPE_CHECKING:
    _ModelChoiceField = forms.ModelChoiceField[Any]
else:
    _ModelChoiceField = forms.ModelChoiceField

_BREAK = re.compile(r"\r\n?")


def unbroken(text: str) -> str:
    """Return a text with line feeds only, as it is stored: browsers send carriage returns as well."""
    return _BREAK.sub("\n", text)


class Text(forms.CharField):
    """Text that is not stripped: a policy reaches the model as it was typed, with trailing spaces."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "strip": False})

    def to_python(self, value: Any) -> str:
        """Return the text with line feeds only."""
        return unbroken(super().to_python(value) or "")


class Json(forms.JSONField):
    """A JSON document; errors name the line. Empty means no value."""

    widget = widgets.AdminTextareaWidget
    indent: int | None = 2

    def __init__(self, **options: Any) -> None:
        options["required"] = False
        super().__init__(**options)
        self.widget.attrs["spellcheck"] = "false"

    def to_python(self, value: Any) -> Any:
        """Return the document."""
        if self.disabled or not isinstance(value, str):
            return super().to_python(value)
        if not value.strip():
            return None
        try:
            return json.loads(value, parse_constant=_refuse_constant)
        except json.JSONDecodeError as error:
            raise exceptions.ValidationError(
                f"This is not JSON: line {error.lineno}, column {error.colno}: {error.msg}."
            ) from error
        except (ValueError, RecursionError) as error:
            raise exceptions.ValidationError(f"This cannot be read as JSON: {error}.") from error

    def prepare_value(self, value: Any) -> Any:
        """Return the document as text, empty if there is none. Invalid input stays as it was typed."""
        if value is None or isinstance(value, forms.fields.InvalidJSONInput):
            return "" if value is None else value
        return json.dumps(value, indent=self.indent, ensure_ascii=False)

    def bound_data(self, data: Any, initial: Any) -> Any:
        """Return the input unchanged, to be shown again."""
        return forms.fields.InvalidJSONInput(data) if isinstance(data, str) else initial


class ShortJson(Json):
    """A JSON document in one line of a table, such as the options of a member."""

    indent = None

    def __init__(self, **options: Any) -> None:
        box = forms.Textarea(attrs={"rows": 1, "cols": 36, "placeholder": "none"})
        super().__init__(**{**options, "widget": box})


class Lines(forms.Field):
    """A list of names, one per line."""

    widget = forms.Textarea

    def __init__(self, *, encoder: Any = None, decoder: Any = None, **options: Any) -> None:
        super().__init__(**options)
        self.widget.attrs |= {"rows": 5, "cols": 40, "spellcheck": "false"}
        self.help_text = f"{self.help_text} One per line.".strip()

    def to_python(self, value: Any) -> list[str]:
        """Return the names, without blank lines."""
        lines = unbroken(value or "").split("\n")
        return [line.strip() for line in lines if line.strip()]

    def prepare_value(self, value: Any) -> Any:
        """Return the names as text. Text stays as it was typed."""
        return "\n".join(map(str, value)) if isinstance(value, list) else value

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Return whether the lists differ, regardless of how they were typed."""
        return list(initial or []) != self.to_python(data)


class Words(forms.MultipleChoiceField):
    """A selection from a few words, as checkboxes."""

    widget = forms.CheckboxSelectMultiple

    def __init__(self, *, encoder: Any = None, decoder: Any = None, **options: Any) -> None:
        super().__init__(**options)


class OnOff(forms.TypedChoiceField):
    """On or off, as a choice of two words: an empty checkbox would be ambiguous."""

    def __init__(self, **options: Any) -> None:
        choices = [("", ""), ("True", "On"), ("False", "Off")]
        super().__init__(choices=choices, coerce=lambda value: str(value) == "True", **options)


class Choice(_ModelChoiceField):
    """A reference to one of very many rows. The formset reads the rows of all its lines at once, into ``rows``."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.rows: Mapping[str, orm.Model] = {}

    def to_python(self, value: Any) -> orm.Model | None:
        """Return the row with this primary key."""
        if value in self.empty_values:
            return None
        if str(value) not in self.rows:
            raise exceptions.ValidationError(
                "This entry no longer exists: choose another one.", code="invalid_choice"
            )
        return self.rows[str(value)]


class Search(widgets.AutocompleteSelect):
    """A search box with options from the server; the label of the chosen row needs no query."""

    def optgroups(self, name: str, value: Sequence[Any], attr: Any = None) -> Any:
        """Return the chosen row as the only option."""
        rows: Mapping[str, orm.Model] = self.choices.field.rows
        selected = [key for key in map(str, value) if key in rows]
        options = [self.create_option(name, key, str(rows[key]), True, 0) for key in selected]
        if not self.is_required:
            options.insert(0, self.create_option(name, "", "", not selected, 0))
        return [(None, options, 0)]


class Confirmation(forms.CheckboxInput):
    """A checkbox whose value identifies what is confirmed, so that it confirms nothing else."""

    digest = ""

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        """Return the context: checked only if exactly this was confirmed."""
        return super().get_context(name, value == self.digest, attrs)

    def format_value(self, value: Any) -> str:
        """Return the value of the checked box."""
        return self.digest

    def value_from_datadict(self, data: Mapping[str, Any], files: Any, name: str) -> str:  # type: ignore[override]
        """Return the value that was confirmed, empty if none."""
        return str(data.get(name) or "")


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is not a number in JSON")
