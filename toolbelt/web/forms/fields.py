"""Which fields of a form are read in a way of our own?"""

from __future__ import annotations

import datetime as dt
from typing import Any

from django import forms
from django.core import validators


class Day(forms.DateField):
    """A day that others can be counted from, in any time zone: not one at an end of the calendar."""

    default_validators = [
        validators.MinValueValidator(dt.date(1900, 1, 1)),
        validators.MaxValueValidator(dt.date(9000, 1, 1)),
    ]


class Offset(forms.IntegerField):
    """Where in a list to begin; empty: at its beginning."""

    def __init__(self) -> None:
        super().__init__(required=False, min_value=0, max_value=10**9)


class Document(forms.JSONField):
    """Takes JSON. One that is nested without end is as little JSON as one that does not end."""

    def to_python(self, value: Any) -> Any:
        """Read it."""
        try:
            return super().to_python(value)
        except RecursionError as error:
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid") from error

    def bound_data(self, data: Any, initial: Any) -> Any:
        """Give what was sent, to be shown again."""
        try:
            return super().bound_data(data, initial)
        except RecursionError:
            return None


class Overrides(forms.MultipleChoiceField):
    """Overrides as a page showed them: ``github__issue_read=true``, once or more."""

    def valid_value(self, value: str) -> bool:
        """Say whether it is a tool with what was stored for it; which tools there are is not asked here."""
        tool, _, stored = value.rpartition("=")
        return bool(tool) and stored in ("true", "false")


class Names(forms.MultipleChoiceField):
    """Names, whichever there are."""

    def valid_value(self, value: str) -> bool:
        """Take any name; whether something is called so is not asked here."""
        return bool(value)


class Rows(forms.MultipleChoiceField):
    """The rows of a comparison that are ticked, by their ids; which there are is not asked here."""

    def valid_value(self, value: str) -> bool:
        """Take any name."""
        return len(value) <= 200


class Sections(forms.MultipleChoiceField):
    """Names of sections of a belt; which there are is not asked here."""

    def valid_value(self, value: str) -> bool:
        """Take any name."""
        return len(value) <= 40
