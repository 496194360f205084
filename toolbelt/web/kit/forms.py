"""The base of all forms that change something."""

from __future__ import annotations

from typing import Any

from django import forms

from toolbelt.core import errors

# The states of a switch or an override, as the fields of forms have them.
STATES = [(word, word) for word in ("true", "false", "unset")]


class FormError(errors.Invalid):
    """A form holds values that no page offers."""


class Change(forms.Form):
    """What every change may bring: the answer to a question if there was one, and a reason that is kept with it."""

    confirm = forms.BooleanField(required=False)
    reason = forms.CharField(required=False, max_length=500)

    def checked(self) -> dict[str, Any]:
        """Return the values of the fields. Raise FormError with what is wrong with each."""
        if not self.is_valid():
            raise FormError(
                [
                    errors.Problem(path=name, message=" ".join(map(str, found)))
                    for name, found in self.errors.items()
                ]
            )
        return self.cleaned_data
