"""How are the lines of a table inside a form read: members, bound tools, switches?

A line is known by what it names, not by the number of a row: while the form was open, others may have written the
same rows anew. Lines are read into the keys of the entry that they are a part of, and never saved as rows.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.core import exceptions
from django.db import models as orm
from django.forms import formsets
from django.forms import models as model_forms
from django.utils import timezone

from toolbelt.admin import inputs, wishes
from toolbelt.core import grants

if TYPE_CHECKING:
    _RowForm = forms.ModelForm[Any]
    _FormSet = model_forms.BaseInlineFormSet[Any, Any, Any]
else:
    _RowForm, _FormSet = forms.ModelForm, model_forms.BaseInlineFormSet

# A place in a list: [2], or a field of what stands there: [2].options.
ITEM = re.compile(r"\[(\d+)\](?:\.(\w+))?")
_LONGEST_NUMBER = 18
# Behind the place of a switch or an override: its end.
_END = ".ends"


class RowForm(_RowForm):
    """One line."""

    def _post_clean(self) -> None:
        """Check nothing more: what is wrong with a line is said by the rules of belts, when all is put together."""


class _Gone:
    """Stands where a line's row was that somebody else has removed since."""

    pk = None

    def __str__(self) -> str:
        return "removed by somebody else since"


class Rows(_FormSet):
    """The lines of one table, in order; ``target`` is what each of them names.

    ``keys`` are the keys of the entry that the lines make up; ``is_editable`` says whether this user may change them.
    """

    keys: ClassVar[tuple[str, ...]] = ()
    target: ClassVar[str] = "tool"
    is_editable: ClassVar[bool] = True

    def __init__(self, *args: Any, not_saved: wishes.NotSaved | None = None, **options: Any) -> None:
        self.not_saved = not_saved
        super().__init__(*args, **options)

    def entry(self) -> dict[str, Any]:
        """Give what the lines say, by key of the entry; None: the default."""
        return {self.keys[0]: [self.said(line) for line in self.lines()] or None}

    def said(self, line: Any) -> Any:
        """Give what one line says."""
        return self.name(line)

    def place(self, obstacle: wishes.Obstacle) -> tuple[Any, str]:
        """Find the line, and the field in it, that an obstacle is about."""
        item, lines = ITEM.fullmatch(obstacle.rest), self.lines()
        if item is None or int(item[1]) >= len(lines):
            return None, ""
        return lines[int(item[1])], item[2] or self.target

    def lines(self) -> Sequence[Any]:
        """Give the lines that are filled in and stay, in their order."""
        return sorted((line for line in self.named() if not is_removed(line)), key=_position)

    def named(self) -> Sequence[Any]:
        """Give the lines that are filled in, also those that are to be removed."""
        return [line for line in self.forms if line.cleaned_data.get(self.target)]

    def name(self, line: Any) -> str:
        """Say what a line names."""
        return str(line.cleaned_data[self.target])

    def clean(self) -> None:
        """Say at their lines what stood against the last attempt, when they are shown again."""
        misplaced = []
        met = self.not_saved.at(self.keys) if self.not_saved else ()
        # All places first: a field that has an error no longer says what its line names.
        for obstacle, (line, field) in [(obstacle, self.place(obstacle)) for obstacle in met]:
            # What is wrong with a line that is to be removed would not be shown there.
            if line is None or is_removed(line):
                misplaced.append(obstacle.text)
            else:
                line.add_error(field if field in line.fields else None, obstacle.message)
        if misplaced:
            raise exceptions.ValidationError(misplaced)

    def add_fields(self, form: Any, index: int | None) -> None:
        """Add a number that is sent back and looked up nowhere; tell the choice the rows that are needed."""
        super().add_fields(form, index)
        number = self._meta.pk.name
        initial = form.fields[number].initial
        form.fields[number] = forms.CharField(required=False, widget=forms.HiddenInput, initial=initial)
        if isinstance(choice := form.fields.get(self.target), inputs.Choice):
            choice.found = self._found

    def get_queryset(self) -> Any:
        """Give the rows; when the form is shown again, one for each line that it was loaded with."""
        if not self.is_bound or "forms" not in vars(self):
            return super().get_queryset()
        return [_Gone() if line.instance._state.adding else line.instance for line in self.initial_forms]

    @property
    def _meta(self) -> Any:
        model: Any = self.model
        return model._meta

    @functools.cached_property
    def _found(self) -> Mapping[str, orm.Model]:
        """Find all that the lines name, at once."""
        if not self.is_bound:
            rows = [getattr(row, self.target) for row in super().get_queryset()]
            return {str(row.pk): row for row in rows}
        sent = [
            self.data.get(f"{self.add_prefix(i)}-{self.target}", "") for i in range(self.total_form_count())
        ]
        numbers = {one for one in sent if one.isdecimal() and len(one) <= _LONGEST_NUMBER}
        named: Any = self._meta.get_field(self.target).related_model
        return {str(number): row for number, row in named._default_manager.in_bulk(numbers).items()}


class Uses(Rows):
    """Lines that name tools, some with options."""

    def said(self, line: Any) -> Any:
        """Give the tool's key alone where there are no options."""
        options = line.cleaned_data.get("options")
        return self.name(line) if options is None else {"tool": self.name(line), "options": options}


class Settings(Rows):
    """Lines that set what they name on or off, for good or until an end. What stands in no line is unset."""

    def entry(self) -> dict[str, Any]:
        """Give what is set, by key."""
        return {self.keys[0]: {self.name(line): self.said(line) for line in self.lines()}}

    def said(self, line: Any) -> Any:
        """Give on or off, with the end if there is one."""
        ends = line.cleaned_data.get("ends")
        return wishes.grant(line.cleaned_data["on"], None if ends is None else grants.written(ends))

    def place(self, obstacle: wishes.Obstacle) -> tuple[Any, str]:
        """Find the line of the key that the obstacle names, and in it the end if it is about that."""
        rest = obstacle.rest.removesuffix(_END)
        found = [line for line in self.named() if f".{self.name(line)}" == rest]
        return (found[-1] if found else None), "on" if rest == obstacle.rest else "ends"

    def get_queryset(self) -> Any:
        """Give the rows as they stand: of what is over, and nobody has written down yet, what it is since."""
        found = super().get_queryset()
        now = timezone.now()
        return [row for row in found if not isinstance(row, orm.Model) or _stands(row, now)]

    def clean(self) -> None:
        """Refuse to set one thing twice, beside what is said again."""
        super().clean()
        names = set()
        for line in self.lines():
            if (name := self.name(line)) in names:
                line.add_error(self.target, f"{name!r} stands twice: take one out.")
            names.add(name)


def _stands(row: Any, now: datetime) -> bool:
    """Say whether something is set by this row, and put it as it stands. Rows are shown here, and never saved."""
    if row.ends is not None and row.ends <= now:
        if row.then is None:
            return False
        row.on, row.ends = row.then, None
    return True


def is_removed(line: Any) -> bool:
    """Say whether a line is to be removed."""
    return bool(line.cleaned_data.get(formsets.DELETION_FIELD_NAME))


def _position(line: Any) -> tuple[bool, int]:
    position = line.cleaned_data.get("position")
    return position is None, position or 0
