"""How is one entry of a belt edited in a form: agent, toolkit, tool …?

The form reads and shows; the rules are those of belts, and what they find stands at the field that it is about.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib.admin import widgets
from django.core import exceptions
from django.db import models as orm

from toolbelt.admin import inputs, wishes
from toolbelt.control import entries
from toolbelt.core import belts, schema

if TYPE_CHECKING:
    _Form = forms.ModelForm[Any]
else:
    _Form = forms.ModelForm


class EntryForm(_Form):
    """One entry. Its lines (members, switches …) are formsets of their own, and read their own keys of it."""

    kind: ClassVar[belts.KindName]
    # Set for each request: what the last attempt met, and the keys that formsets show.
    not_saved: ClassVar[wishes.NotSaved | None] = None
    keys_elsewhere: ClassVar[Collection[str]] = ()

    as_loaded = forms.JSONField(required=False, widget=forms.HiddenInput)
    reason = forms.CharField(
        required=False,
        widget=widgets.AdminTextInputWidget,
        help_text="Why you change it; kept in the audit.",
    )
    confirm = forms.CharField(required=False, widget=inputs.Confirmation, label="Do it all the same")

    def __init__(self, data: Any = None, *args: Any, **options: Any) -> None:
        row = options.get("instance")
        if data is None and row is not None:
            options["initial"] = {**(options.get("initial") or {}), "as_loaded": self._loaded(row)}
        if data is not None and self.not_saved is not None:
            data = _with_news(data, self.not_saved.now)
        super().__init__(data, *args, **options)
        box = self.fields["confirm"].widget
        if self.not_saved is not None and isinstance(box, inputs.Confirmation):
            box.asked = " ".join(sorted(self.not_saved.asked))

    def clean_as_loaded(self) -> Any:
        """Read the entry as it was when the form was loaded; where that was not sent, as it is."""
        seen = self.cleaned_data["as_loaded"]
        if self.instance.pk is None:
            return None
        if seen is None:
            return entries.read(self.kind, self._name())
        if not isinstance(seen, dict) or not wishes.is_flat(seen):
            raise exceptions.ValidationError("This form was not sent as it was loaded: load it again.")
        return seen

    def clean(self) -> None:
        """Say at their fields what stood against the last attempt, when the form is shown again."""
        if self.not_saved is None:
            return
        # Always said, so that a form whose problems all stand at its lines is not taken for a sound one.
        self.add_error(None, "Nothing was saved yet.")
        for obstacle in self.not_saved.obstacles:
            if obstacle.key not in self.keys_elsewhere:
                field, words = self.place(obstacle)
                self.add_error(field if field in self.fields else None, words)
        for would_do in self.not_saved.asked.values():
            self.add_error("confirm", would_do)

    def place(self, obstacle: wishes.Obstacle) -> tuple[str, str]:
        """Find the field that an obstacle is about, and say it there."""
        if obstacle.key in self.fields:
            return obstacle.key, obstacle.text if obstacle.rest else obstacle.message
        return "", obstacle.text

    def entry(self) -> dict[str, Any]:
        """Give the keys of the entry that the form shows, as a belt has them; None: the default."""
        known = belts.KINDS[self.kind].fields or ("name",)
        return {key: self.said(key) for key in self.cleaned_data if key in known}

    def said(self, key: str) -> Any:
        """Give what one field says; None: the default of its column, which a belt leaves out."""
        value = self.cleaned_data[key]
        column: Any = self.instance._meta.get_field(key)
        if isinstance(value, orm.Model):
            return str(value)
        return None if value is None or value == column.get_default() else value

    def wish(self, of_lines: Mapping[str, Any], actor: Any) -> wishes.Wish:
        """Put together what is wanted."""
        wanted = {**self.entry(), **of_lines}
        return wishes.Wish(
            actor=actor,
            kind=self.kind,
            name=wanted.get(entries.naming(self.kind)) or self._name(),
            wanted=wanted,
            seen=self.cleaned_data["as_loaded"],
            confirmed=frozenset(self.cleaned_data["confirm"].split()),
            reason=self.cleaned_data["reason"],
        )

    def _post_clean(self) -> None:
        """Check nothing more, and leave the row alone: the door checks, and the door writes."""

    def _name(self) -> str:
        return str(getattr(self.instance, entries.naming(self.kind)))

    def _loaded(self, row: Any) -> dict[str, Any]:
        """Read the entry, and what is shown of it after that: what changes in between is then shown, and not lost."""
        entry = entries.read(self.kind, str(getattr(row, entries.naming(self.kind))))
        row.refresh_from_db()
        return entry


def _with_news(data: Any, now: Mapping[str, Any]) -> Any:
    """Let the form have seen what its writer is told of now: sent once more, it counts."""
    if not now or not data.get("as_loaded"):
        return data
    data = data.copy()
    data["as_loaded"] = schema.canonical({**json.loads(data["as_loaded"]), **now})
    return data
