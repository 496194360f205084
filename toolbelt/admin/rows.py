"""The lines of a table inside a form: members, bound tools, switches.

A line is known by what it names, not by the id of a row: while the form was open, others may have replaced the same
rows. Lines are read into the keys of the entry that they are a part of, and never saved as rows.
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
from toolbelt.core import grants

if TYPE_CHECKING:
    _RowForm = forms.ModelForm[Any]
    _FormSet = model_forms.BaseInlineFormSet[Any, Any, Any]
else:
    _RowForm, _FormSet = forms.ModelForm, model_forms.BaseInlineFormSet

# A place in a list: [2], or a field of what stands there: [2].options.
ITEM = re.compile(r"\[(\d+)\](?:\.(\w+))?")
_MAX_NUMBER_LENGTH = 18


class RowForm(_RowForm):
    """One line."""

    def _post_clean(self) -> None:
        """Check nothing more: what is wrong with a line is said by the rules of belts, when all is put together."""


class _Gone:
    """Stands where a line's row was that somebody else has removed since."""

    pk = None

    def __str__(self) -> str:
        return "removed by another operator in the meantime"


class Rows(_FormSet):
    """The lines of one table, in order; ``target`` is what each of them names.

    ``keys`` are the keys of the entry that the lines make up; ``is_editable`` says whether this user may change them.
    """

    keys: ClassVar[tuple[str, ...]] = ()
    target: ClassVar[str] = "tool"
    is_editable: ClassVar[bool] = True

    def entry(self) -> dict[str, Any]:
        """Return what the lines say, by key of the entry; None: the default."""
        return {self.keys[0]: [self.value(line) for line in self.lines()] or None}

    def value(self, line: Any) -> Any:
        """Return what one line says."""
        return self.name(line)

    def place(self, path: str, message: str) -> Callable[[], None] | None:
        """Return what adds an error at the line that a path of the entry is about, or above the table if that is about
        no line; None if it is about another part of the entry.
        """
        key, rest = split(path)
        if key not in self.keys:
            return None
        line, field = self.line_of(key, rest)
        return self.add_error(line, field, path, message)

    def add_error(self, line: Any, field: str, path: str, message: str) -> Callable[[], None]:
        """Return what adds an error at a line; above the table for one that is to be removed, as it is not shown."""
        if line is None or is_removed(line):
            return functools.partial(self.non_form_errors().append, f"{path}: {message}")
        return functools.partial(line.add_error, field if field in line.fields else None, message)

    def line_of(self, key: str, rest: str) -> tuple[Any, str]:
        """Return the line, and the field in it, that the path ``rest`` behind ``key`` is about."""
        return item(self.lines(), rest, self.target)

    def lines(self) -> Sequence[Any]:
        """Return the lines that are filled in and stay, in their order."""
        return sorted((line for line in self.named() if not is_removed(line)), key=_position)

    def named(self) -> Sequence[Any]:
        """Return the lines that are filled in, also those that are to be removed."""
        return [line for line in self.forms if line.cleaned_data.get(self.target)]

    def name(self, line: Any) -> str:
        """Return what a line names."""
        return str(line.cleaned_data[self.target])

    def validate_unique(self) -> None:
        """Check nothing: the operators' door says what stands twice, at its line."""

    def add_fields(self, form: Any, index: int | None) -> None:
        """Add the id of the row, which is sent back and not looked up; give the choice the rows that it needs."""
        super().add_fields(form, index)
        number = self._meta.pk.name
        initial = form.fields[number].initial
        form.fields[number] = forms.CharField(required=False, widget=forms.HiddenInput, initial=initial)
        if isinstance(choice := form.fields.get(self.target), inputs.Choice):
            choice.found = self._found

    def get_queryset(self) -> Any:
        """Return the rows; when the form is shown again, one for each line that it was loaded with."""
        if not self.is_bound or "forms" not in vars(self):
            return super().get_queryset()
        return [_Gone() if line.instance._state.adding else line.instance for line in self.initial_forms]

    @property
    def _meta(self) -> Any:
        model: Any = self.model
        return model._meta

    @functools.cached_property
    def _found(self) -> Mapping[str, orm.Model]:
        """Return all rows that the lines name, read at once."""
        if not self.is_bound:
            rows = [getattr(row, self.target) for row in super().get_queryset()]
            return {str(row.pk): row for row in rows}
        sent = [
            self.data.get(f"{self.add_prefix(i)}-{self.target}", "") for i in range(self.total_form_count())
        ]
        numbers = {one for one in sent if one.isdecimal() and len(one) <= _MAX_NUMBER_LENGTH}
        named: Any = self._meta.get_field(self.target).related_model
        return {str(number): row for number, row in named._default_manager.in_bulk(numbers).items()}


class Uses(Rows):
    """Lines that name tools, some with options."""

    def value(self, line: Any) -> Any:
        """Return the tool's key alone where there are no options."""
        options = line.cleaned_data.get("options")
        return self.name(line) if options is None else {"tool": self.name(line), "options": options}


class Settings(Rows):
    """Lines that set what they name on or off, for good or until an end. What stands in no line is unset."""

    keys = ("tools_config", "ends")

    def entry(self) -> dict[str, Any]:
        """Return what is set, each by its own key (see :func:`toolbelt.control.access.tools_config.as_single`)."""
        return {f"{tools_config.SINGLE}{self.name(line)}": self.value(line) for line in self.lines()}

    def value(self, line: Any) -> Any:
        """Return on or off, with the end if there is one."""
        on, ends = line.cleaned_data["on"], line.cleaned_data.get("ends")
        return on if ends is None else {"on": on, "ends": grants.format_time(ends)}

    def place(self, path: str, message: str) -> Callable[[], None] | None:
        """Return what adds an error at the line of the switch or override that the path names, if there is one."""
        for line in reversed(self.named()):
            name = self.name(line)
            if path == f"{tools_config.SINGLE}{name}":
                return self.add_error(line, "on", path, message)
            if path in (f"ends.{name}", f"ends.{name}.then"):
                return self.add_error(line, "ends", path, message)
        return None

    def get_queryset(self) -> Any:
        """Return the rows as they count now: expired grants that are not recorded yet count as ended."""
        found = super().get_queryset()
        now = timezone.now()
        return [row for row in found if not isinstance(row, orm.Model) or _stands(row, now)]

    def clean(self) -> None:
        """Refuse to set one thing twice."""
        super().clean()
        names = set()
        for line in self.lines():
            if (name := self.name(line)) in names:
                line.add_error(self.target, f"{name!r} is listed twice: remove one.")
            names.add(name)


def _stands(row: Any, now: datetime) -> bool:
    """Return whether something is set by this row, and put it as it stands. Rows are shown here, and never saved."""
    if row.ends is not None and row.ends <= now:
        if row.then is None:
            return False
        row.on, row.ends = row.then, None
    return True


def split(path: str) -> tuple[str, str]:
    """Split a path of an entry into its key and the rest: ``members[2].options`` is ``members``, ``[2].options``."""
    key = path.partition(".")[0].partition("[")[0]
    return key, path[len(key) :]


def item(lines: Sequence[Any], rest: str, field: str) -> tuple[Any, str]:
    """Return the line at a place in a list (None if there is none) and its field: ``field``, or what the path names."""
    found = ITEM.fullmatch(rest)
    if found is None or int(found[1]) >= len(lines):
        return None, ""
    return lines[int(found[1])], found[2] or field


def is_removed(line: Any) -> bool:
    """Return whether a line is to be removed."""
    return bool(line.cleaned_data.get(formsets.DELETION_FIELD_NAME))


def _position(line: Any) -> tuple[bool, int]:
    position = line.cleaned_data.get("position")
    return position is None, position or 0
