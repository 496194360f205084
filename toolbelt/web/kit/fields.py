"""The fields of forms that are not Django's own."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Sequence
from typing import Any

from django import forms
from django.core import validators

from toolbelt.core import catalog
from toolbelt.web.kit import tool_search, words

# The most tools that a text finds.
MAX_TOOLS = 20


class Day(forms.DateField):
    """A date, far enough from date.min and date.max to be converted between zones."""

    default_validators = [
        validators.MinValueValidator(dt.date(1900, 1, 1)),
        validators.MaxValueValidator(dt.date(9000, 1, 1)),
    ]


class Query(forms.CharField):
    """A search text. A longer text is cut to as many words as fit, and pages say so (`words_used`)."""

    def __init__(self) -> None:
        super().__init__(required=False)

    def to_python(self, value: Any) -> str:
        """Return the words that are used."""
        text: str = super().to_python(value) or ""
        return text if len(text) <= words.MAX_QUERY_LENGTH else words.first_words(text)


class Offset(forms.IntegerField):
    """The offset in a list; empty for its beginning."""

    def __init__(self) -> None:
        super().__init__(required=False, min_value=0, max_value=10**9)


class Document(forms.JSONField):
    """JSON. Nesting that is too deep is an error, like any other invalid JSON."""

    def to_python(self, value: Any) -> Any:
        """Return the parsed JSON."""
        try:
            return super().to_python(value)
        except RecursionError as error:
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid") from error

    def bound_data(self, data: Any, initial: Any) -> Any:
        """Return the sent value, to show it again."""
        try:
            return super().bound_data(data, initial)
        except RecursionError:
            return None


class State(forms.TypedChoiceField):
    """A state of a switch or an override: on, off, or None for unset."""

    def __init__(self, states: Iterable[str] = words.STORED.values(), **options: Any) -> None:
        super().__init__(choices=[(word, word) for word in states], coerce=words.from_form_value, **options)


class Names(forms.MultipleChoiceField):
    """Names, which need not exist, or other values that match a ``pattern``."""

    def __init__(self, pattern: str = ".{1,200}", **options: Any) -> None:
        super().__init__(**options)
        self.pattern = re.compile(pattern, re.DOTALL)

    def valid_value(self, value: str) -> bool:
        """Return whether the value matches the pattern."""
        return self.pattern.fullmatch(value) is not None


class Column(Names):
    """One field of each row of a list, in the order of the rows. Its values are texts, which may be empty."""

    def __init__(self, **options: Any) -> None:
        super().__init__(".*", required=False, **options)


class Checkboxes(Column):
    """Names to select with checkboxes."""

    def __init__(self, **options: Any) -> None:
        super().__init__(widget=forms.CheckboxSelectMultiple, template_name="kit/checkboxes.html", **options)


class Text(forms.CharField):
    """A text of several lines, with normalized line ends."""

    def __init__(self, *, rows: int, **options: Any) -> None:
        super().__init__(
            required=False, widget=forms.Textarea(attrs={"rows": rows, "cols": False}), **options
        )

    def to_python(self, value: Any) -> str:
        """Return the text; browsers end lines with CR and LF."""
        return normalize(super().to_python(value) or "")

    def prepare_value(self, value: Any) -> str:
        """Return the text as a browser shows it."""
        return normalize(value or "")


class NameList(forms.CharField):
    """Names, separated by spaces, commas or lines."""

    def __init__(self, *, rows: int = 0, **options: Any) -> None:
        attrs = {"rows": rows, "cols": False} if rows else {}
        widget = (forms.Textarea if rows else forms.TextInput)(attrs={**attrs, "class": "mono"})
        super().__init__(required=False, widget=widget, **options)

    def to_python(self, value: Any) -> Any:
        """Return the names."""
        return value if isinstance(value, list) else split_names(value or "")

    def prepare_value(self, value: Any) -> Any:
        """Return the names as text: one on each line, or separated by spaces."""
        separator = "\n" if isinstance(self.widget, forms.Textarea) else " "
        return separator.join(value) if isinstance(value, list) else value


class _Finder(forms.TextInput):
    """A search text, with checkboxes of the same name for the results."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        """Return the ticked results if there are any, otherwise the text."""
        values = data.getlist(name) if hasattr(data, "getlist") else [data.get(name)]
        return " ".join(values[1:]) if len(values) > 1 else (values or [None])[0]


class ToolNames(NameList):
    """The tools that an editor adds to its rows."""

    def __init__(self) -> None:
        super().__init__()
        self.widget = _Finder()


def normalize(text: str) -> str:
    """Return a typed text as it is stored. Browsers end lines with CR and LF, and drop a line break at its start."""
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def split_names(text: str) -> list[str]:
    """Return the names in a text, separated by spaces, commas or lines."""
    return [name for name in re.split(r"[\s,]+", text) if name]


def split_keys(stored: catalog.Catalog, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the names that are keys of tools, and those that are not. If the names look like a search, none of them
    counts as a key: "search arxiv" is not a list of keys, although a tool has the key arxiv.
    """
    known = [name for name in names if name in stored.tools]
    unknown = [name for name in names if name not in stored.tools]
    is_list = len(known) > len(unknown) or all("_" in name for name in unknown)
    return (known, unknown) if known and is_list else ([], list(names))


def find_tools(stored: catalog.Catalog, text: str) -> list[catalog.Tool]:
    """Return the tools that match the text, the best first; none without a text."""
    found = tool_search.find(stored, text) if text.strip() else []
    return [stored.tools[key] for key in found[:MAX_TOOLS]]
