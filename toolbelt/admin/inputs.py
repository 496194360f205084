"""Form fields and widgets for what the stock ones would alter: text, JSON, lists of names, choices."""

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
    """Return a text with the line breaks that are stored: browsers send others."""
    return _BREAK.sub("\n", text)


class Text(forms.CharField):
    """Text that stays what was typed: a policy is bytes to the model, spaces at its end included."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "strip": False})

    def to_python(self, value: Any) -> str:
        """Return the text."""
        return unbroken(super().to_python(value) or "")


class Json(forms.JSONField):
    """A JSON document; what is wrong with it is said with its line. Empty: not given."""

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
        """Return the document as text, empty if there is none; what was typed and is not JSON stays."""
        if value is None or isinstance(value, forms.fields.InvalidJSONInput):
            return "" if value is None else value
        return json.dumps(value, indent=self.indent, ensure_ascii=False)

    def bound_data(self, data: Any, initial: Any) -> Any:
        """Return back what was typed, to be shown again as it was."""
        return forms.fields.InvalidJSONInput(data) if isinstance(data, str) else initial


class ShortJson(Json):
    """A JSON document in one line of a table, such as the options of a member."""

    indent = None

    def __init__(self, **options: Any) -> None:
        box = forms.Textarea(attrs={"rows": 1, "cols": 36, "placeholder": "none"})
        super().__init__(**{**options, "widget": box})


class Lines(forms.Field):
    """A list of names, one a line."""

    widget = forms.Textarea

    def __init__(self, *, encoder: Any = None, decoder: Any = None, **options: Any) -> None:
        super().__init__(**options)
        self.widget.attrs |= {"rows": 5, "cols": 40, "spellcheck": "false"}
        self.help_text = f"{self.help_text} One per line.".strip()

    def to_python(self, value: Any) -> list[str]:
        """Return the names; blank lines are skipped."""
        lines = unbroken(value or "").split("\n")
        return [line.strip() for line in lines if line.strip()]

    def prepare_value(self, value: Any) -> Any:
        """Return the names as text; what was typed stays as it was."""
        return "\n".join(map(str, value)) if isinstance(value, list) else value

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Compare the lists, not how they were typed."""
        return list(initial or []) != self.to_python(data)


class Words(forms.MultipleChoiceField):
    """A list of words out of a few, as boxes to tick."""

    widget = forms.CheckboxSelectMultiple

    def __init__(self, *, encoder: Any = None, decoder: Any = None, **options: Any) -> None:
        super().__init__(**options)


class OnOff(forms.TypedChoiceField):
    """On or off, said in words: a box without a tick could be either."""

    def __init__(self, **options: Any) -> None:
        choices = [("", ""), ("True", "On"), ("False", "Off")]
        super().__init__(choices=choices, coerce=lambda value: str(value) == "True", **options)


class Choice(_ModelChoiceField):
    """One of very many rows. The rows that a page needs are found by whoever lays it out, for all its lines at once."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.found: Mapping[str, orm.Model] = {}

    def to_python(self, value: Any) -> orm.Model | None:
        """Return the row of this number."""
        if value in self.empty_values:
            return None
        if str(value) not in self.found:
            raise exceptions.ValidationError(
                "This entry no longer exists: choose another one.", code="invalid_choice"
            )
        return self.found[str(value)]


class Search(widgets.AutocompleteSelect):
    """A box that searches on the server; it asks for no labels that its field has already."""

    def optgroups(self, name: str, value: Sequence[Any], attr: Any = None) -> Any:
        """Return the chosen row as the only option."""
        found: Mapping[str, orm.Model] = self.choices.field.found
        chosen = [key for key in map(str, value) if key in found]
        options = [self.create_option(name, key, str(found[key]), True, 0) for key in chosen]
        if not self.is_required:
            options.insert(0, self.create_option(name, "", "", not chosen, 0))
        return [(None, options, 0)]


class Confirmation(forms.CheckboxInput):
    """A box whose tick says what exactly is confirmed, so that nothing else is confirmed with it."""

    asked = ""

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        """Show it ticked only if it is this that was confirmed."""
        return super().get_context(name, value == self.asked, attrs)

    def format_value(self, value: Any) -> str:
        """Return the value of a ticked box."""
        return self.asked

    def value_from_datadict(self, data: Mapping[str, Any], files: Any, name: str) -> str:  # type: ignore[override]
        """Return what was confirmed."""
        return str(data.get(name) or "")


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is not a number in JSON")
