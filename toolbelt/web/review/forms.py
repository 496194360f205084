"""The forms of the review."""

from __future__ import annotations

from typing import Any

from django import forms

from toolbelt.web.kit import fields
from toolbelt.web.kit import forms as kit


class Filter(forms.Form):
    """Which plugin's tools are shown, and where in the list of what else needs attention to begin."""

    plugin = forms.CharField(required=False, max_length=200)
    offset = fields.Offset()


class Versions(forms.MultipleChoiceField):
    """Tools with the version that a page showed of each: ``files__read=sha256:…``, once or more."""

    def valid_value(self, value: str) -> bool:
        """Return whether it is a tool with a version; whether it is still that one is not asked here."""
        tool, _, version = value.partition("=")
        return bool(tool) and bool(version)


class Decision(kit.Change):
    """What was decided of which tools: those that are selected, all ``unflagged`` that the page showed, or the one that
    the button of a row names (``approve:files__read=sha256:…``).
    """

    decision = forms.CharField(max_length=400)
    tool = Versions(required=False)
    unflagged = Versions(required=False)
    carry = forms.BooleanField(required=False)
    plugin = forms.CharField(required=False, max_length=200)

    def clean(self) -> dict[str, Any]:
        """Read which button was pressed, and what it decides on."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        verb, _, one = given.get("decision", "").partition(":")
        values = given.get("unflagged" if verb == "approve-unflagged" else "tool", [])
        if verb not in ("approve", "approve-unflagged", "reject") or (one and "=" not in one):
            raise forms.ValidationError("Select Approve or Reject.")
        pairs = (value.partition("=") for value in ([one] if one else values))
        return given | {
            "is_approval": verb != "reject",
            "shown": {tool: version for tool, _, version in pairs},
        }
