"""The lines of a table inside a form: members, bound tools, switches.

A line is identified by what it refers to, not by the id of a row: while the form was open, other operators may have
replaced the rows. Lines become keys of the entry that they belong to, and are never saved as rows.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.db import models as orm
from django.forms import formsets
from django.forms import models as model_forms
from django.utils import timezone

from toolbelt.admin import inputs
from toolbelt.control.access import tools_config
from toolbelt.core import grants, secret_texts

if TYPE_CHECKING:
    _RowForm = forms.ModelForm[Any]
    _FormSet = model_forms.BaseInlineFormSet[Any, Any, Any]
else:
    _RowForm, _FormSet = forms.ModelForm, model_forms.BaseInlineFormSet

# A position in a list, such as [2], or a place in a field of the item there, such as [2].options.depth.
ITEM = re.compile(r"\[(\d+)\](?:\.(\w+)(?:[.\[].*)?)?")
_MAX_NUMBER_LENGTH = 18
# The keys of the lines that turn something on or off.
SETTINGS = ("tools_config", "ends")


class RowForm(_RowForm):
    """The form of one line."""

    def _post_clean(self) -> None:
        """Check nothing: the rules of belts check the whole entry."""


class _Gone:
    """Replaces the row of a line that was removed meanwhile."""

    pk = None

    def __str__(self) -> str:
        return "removed in the meantime"


class Rows(_FormSet):
    """The lines of one table, in order; ``target`` is the field with what a line refers to.

    ``keys`` are the keys of the entry that the lines provide; ``is_editable`` is whether the user may change them. The
    inline sets them.
    """

    keys: ClassVar[tuple[str, ...]]
    target: ClassVar[str]
    is_editable: ClassVar[bool]

    def entry(self) -> dict[str, Any]:
        """Return the values of the lines, by key of the entry. None stands for the default."""
        return {self.keys[0]: [self.value(line) for line in self.lines()] or None}

    def value(self, line: Any) -> Any:
        """Return the value of a line."""
        return self.name(line)

    def error_adder(self, path: str, message: str) -> Callable[[], None] | None:
        """Return a function that adds an error at the line to which a path of the entry belongs, or above the table if
        it belongs to no line; None if the path belongs to another part of the entry.
        """
        key, subpath = split(path)
        if key not in self.keys:
            return None
        line, field = self.line_of(key, subpath)
        return self.add_error(line, field, path, message)

    def add_error(self, line: Any, field: str, path: str, message: str) -> Callable[[], None]:
        """Return a function that adds an error at a line, or above the table for a removed line, which is hidden."""
        if line is None or is_removed(line):
            return functools.partial(self.non_form_errors().append, f"{path}: {message}")
        return functools.partial(line.add_error, field if field in line.fields else None, message)

    def line_of(self, key: str, subpath: str) -> tuple[Any, str]:
        """Return the line and the field to which the path ``subpath`` after ``key`` belongs."""
        return item(self.lines(), subpath, self.target)

    def lines(self) -> Sequence[Any]:
        """Return the lines that are filled in and not removed, in order."""
        return sorted((line for line in self.filled_lines() if not is_removed(line)), key=_position)

    def filled_lines(self) -> Sequence[Any]:
        """Return the lines that are filled in, including removed ones."""
        return [line for line in self.forms if line.cleaned_data.get(self.target)]

    def name(self, line: Any) -> str:
        """Return the name of what a line refers to."""
        return str(line.cleaned_data[self.target])

    def validate_unique(self) -> None:
        """Check nothing: ``control`` reports duplicates at their lines."""

    def add_fields(self, form: Any, index: int | None) -> None:
        """Add the row's id, which is submitted but not looked up, and pass the rows to the choice."""
        super().add_fields(form, index)
        number = self._meta.pk.name
        initial = form.fields[number].initial
        form.fields[number] = forms.CharField(required=False, widget=forms.HiddenInput, initial=initial)
        if isinstance(choice := form.fields.get(self.target), inputs.Choice):
            choice.rows = self._rows

    def get_queryset(self) -> Any:
        """Return the rows; if the form is shown again, one for each line that it was loaded with."""
        if not self.is_bound or "forms" not in vars(self):
            return super().get_queryset()
        return [_Gone() if line.instance._state.adding else line.instance for line in self.initial_forms]

    @property
    def _meta(self) -> Any:
        model: Any = self.model
        return model._meta

    @functools.cached_property
    def _rows(self) -> Mapping[str, orm.Model]:
        """Return all rows that the lines refer to, in one query."""
        if not self.is_bound:
            rows = [getattr(row, self.target) for row in super().get_queryset()]
            return {str(row.pk): row for row in rows}
        sent = [
            self.data.get(f"{self.add_prefix(i)}-{self.target}", "") for i in range(self.total_form_count())
        ]
        numbers = {number for number in sent if number.isdecimal() and len(number) <= _MAX_NUMBER_LENGTH}
        target_model: Any = self._meta.get_field(self.target).related_model
        return {str(number): row for number, row in target_model._default_manager.in_bulk(numbers).items()}


class Uses(Rows):
    """Lines that refer to tools, some with options. Secrets in stored options are not shown, and kept."""

    def add_fields(self, form: Any, index: int | None) -> None:
        """Add the fields, and withhold the secrets in what is stored."""
        super().add_fields(form, index)
        if form.initial.get("options") is not None:
            form.initial["options"] = secret_texts.withheld("", form.initial["options"])

    def value(self, line: Any) -> Any:
        """Return the tool's key, with its options if there are any."""
        options = line.cleaned_data.get("options")
        return self.name(line) if options is None else {"tool": self.name(line), "options": options}


class Settings(Rows):
    """Lines that turn something on or off, permanently or until a time. Without a line, it is unset."""

    def entry(self) -> dict[str, Any]:
        """Return the settings, each by its own key (see :func:`toolbelt.control.access.tools_config.as_single`)."""
        return {f"{tools_config.SINGLE}{self.name(line)}": self.value(line) for line in self.lines()}

    def value(self, line: Any) -> Any:
        """Return on or off, with the time of its end if there is one."""
        on, ends = line.cleaned_data["on"], line.cleaned_data.get("ends")
        return on if ends is None else {"on": on, "ends": grants.format_time(ends)}

    def error_adder(self, path: str, message: str) -> Callable[[], None] | None:
        """Return a function that adds an error at the line of the switch or override in the path, or None."""
        for line in reversed(self.filled_lines()):
            name = self.name(line)
            if path == f"{tools_config.SINGLE}{name}":
                return self.add_error(line, "on", path, message)
            if path in (f"ends.{name}", f"ends.{name}.then"):
                return self.add_error(line, "ends", path, message)
        return None

    def get_queryset(self) -> Any:
        """Return the current rows: grants that have expired, recorded or not, count as ended."""
        rows = super().get_queryset()
        now = timezone.now()
        return [row for row in rows if not isinstance(row, orm.Model) or _stands(row, now)]

    def clean(self) -> None:
        """Add an error if two lines set the same."""
        super().clean()
        names = set()
        for line in self.lines():
            if (name := self.name(line)) in names:
                line.add_error(self.target, f"{name!r} is listed twice: remove one.")
            names.add(name)


def _stands(row: Any, now: datetime) -> bool:
    """Return whether the row still sets something, and update it to its state after expiry. It is never saved."""
    if row.ends is not None and row.ends <= now:
        if row.then is None:
            return False
        row.on, row.ends = row.then, None
    return True


def split(path: str) -> tuple[str, str]:
    """Split a path of an entry into its key and the rest: ``members[2].options`` is ``members``, ``[2].options``."""
    key = path.partition(".")[0].partition("[")[0]
    return key, path[len(key) :]


def item(lines: Sequence[Any], subpath: str, field: str) -> tuple[Any, str]:
    """Return the line at a position (None if there is none) and its field: the one in the path, or ``field``."""
    match = ITEM.fullmatch(subpath)
    if match is None or int(match[1]) >= len(lines):
        return None, ""
    return lines[int(match[1])], match[2] or field


def is_removed(line: Any) -> bool:
    """Return whether a line is marked for removal."""
    return bool(line.cleaned_data.get(formsets.DELETION_FIELD_NAME))


def _position(line: Any) -> tuple[bool, int]:
    position = line.cleaned_data.get("position")
    return position is None, position or 0
