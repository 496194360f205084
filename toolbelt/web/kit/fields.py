"""The fields of forms that are not Django's own."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Sequence
from typing import Any

from django import forms
from django.core import validators

from toolbelt.core import catalog, search
from toolbelt.web.kit import words

# How many tools a text finds.
MAX_TOOLS = 20


class Day(forms.DateField):
    """A date, far enough from date.min and date.max to be converted between zones."""

    default_validators = [
        validators.MinValueValidator(dt.date(1900, 1, 1)),
        validators.MaxValueValidator(dt.date(9000, 1, 1)),
    ]


class Query(forms.CharField):
    """What is searched for. Of a longer text, as many words are used as fit; pages say so (`words_used`)."""

    def __init__(self) -> None:
        super().__init__(required=False)

    def to_python(self, value: Any) -> str:
        """Return the words that are used."""
        text: str = super().to_python(value) or ""
        return text if len(text) <= words.MAX_QUERY_LENGTH else words.first_words(text)


class Offset(forms.IntegerField):
    """Where in a list to begin; empty: at its beginning."""

    def __init__(self) -> None:
        super().__init__(required=False, min_value=0, max_value=10**9)


class Document(forms.JSONField):
    """JSON; too deep nesting is an error, as other invalid JSON is."""

    def to_python(self, value: Any) -> Any:
        """Read it."""
        try:
            return super().to_python(value)
        except RecursionError as error:
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid") from error

    def bound_data(self, data: Any, initial: Any) -> Any:
        """Return what was sent, to be shown again."""
        try:
            return super().bound_data(data, initial)
        except RecursionError:
            return None


class State(forms.TypedChoiceField):
    """A state of a switch or an override: on, off, or None for neither."""

    def __init__(self, states: Iterable[str] = words.STORED.values(), **options: Any) -> None:
        super().__init__(choices=[(word, word) for word in states], coerce=words.read, **options)


class Names(forms.MultipleChoiceField):
    """Names, whether they exist or not, or other values of a ``pattern``."""

    def __init__(self, pattern: str = ".{1,200}", **options: Any) -> None:
        super().__init__(**options)
        self.pattern = re.compile(pattern, re.DOTALL)

    def valid_value(self, value: str) -> bool:
        """Return whether the value has the pattern."""
        return self.pattern.fullmatch(value) is not None


class Column(Names):
    """One field of each row of a list, in the order of the rows; any text, also an empty one."""

    def __init__(self, **options: Any) -> None:
        super().__init__(".*", required=False, **options)


class Ticks(Column):
    """Names to tick."""

    def __init__(self, **options: Any) -> None:
        super().__init__(widget=forms.CheckboxSelectMultiple, template_name="kit/checkboxes.html", **options)


class Text(forms.CharField):
    """A text of several lines, with the line ends that are stored."""

    def __init__(self, *, rows: int, **options: Any) -> None:
        super().__init__(
            required=False, widget=forms.Textarea(attrs={"rows": rows, "cols": False}), **options
        )

    def to_python(self, value: Any) -> str:
        """Return the text; browsers end lines with CR and LF."""
        return unify(super().to_python(value) or "")

    def prepare_value(self, value: Any) -> str:
        """Return the text as a browser shows it."""
        return unify(value or "")


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
    """A text that is looked up, with checkboxes of the same name for what was found."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        """Return what was ticked; without that, the text."""
        sent = data.getlist(name) if hasattr(data, "getlist") else [data.get(name)]
        return " ".join(sent[1:]) if len(sent) > 1 else (sent or [None])[0]


class ToolNames(NameList):
    """The tools that an editor adds to its rows."""

    def __init__(self) -> None:
        super().__init__()
        self.widget = _Finder()


def unify(text: str) -> str:
    """Return a typed text as it is stored: browsers end lines with CR and LF, and drop a line break at its start."""
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def split_names(text: str) -> list[str]:
    """Return the names in a text, separated by spaces, commas or lines."""
    return [name for name in re.split(r"[\s,]+", text) if name]


def split_keys(stored: catalog.Catalog, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the names that are keys of tools, and those that are not. If the names are words to search for, none of
    them is a key: "search arxiv" is not a list of keys, although a tool is called arxiv.
    """
    known = [name for name in names if name in stored.tools]
    unknown = [name for name in names if name not in stored.tools]
    is_list = len(known) > len(unknown) or all("_" in name for name in unknown)
    return (known, unknown) if known and is_list else ([], list(names))


def find_tools(stored: catalog.Catalog, text: str) -> list[catalog.Tool]:
    """Return the tools that the text finds: first those with these names, then in the order of an agent's search."""
    if not text.strip():
        return []
    keys = [tool.key for tool in stored.tools.values() if not tool.retired]
    exact = [name for name in text.split() if name in stored.tools]
    named = [key for key in keys if words.contains(text, key, stored.tools[key].title)][:MAX_TOOLS]
    found = [hit.tool for hit in search.search(stored, keys, text, MAX_TOOLS)]
    return [stored.tools[key] for key in dict.fromkeys([*exact, *named, *found])][:MAX_TOOLS]
