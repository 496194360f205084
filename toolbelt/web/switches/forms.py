"""The forms that flip a switch, set an override, or reset overrides."""

from __future__ import annotations

from typing import Any

from django import forms

from toolbelt.web.kit import durations, fields, words
from toolbelt.web.kit import forms as kit


class Flip(kit.Change):
    """One flip: the new state (``on``), and the state that the page showed (``was``).

    A button that sets a state for a limited time sends it in one word (``given``: ``true-2h``), which replaces ``on``;
    ``true-at`` ends at the moment ``at``, in the time zone of the server.
    """

    on = forms.ChoiceField(choices=[(word, word) for word in words.STORED.values()], required=False)
    was = fields.State()
    given = forms.ChoiceField(
        required=False,
        choices=[(f"{on}-{span}",) * 2 for on in ("true", "false") for span in (*durations.SPANS, "at")],
    )
    at = forms.DateTimeField(required=False, input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"])

    def clean(self) -> dict[str, Any]:
        """Require a new state, and the moment for a state that ends at one."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        given = cleaned.get("given")
        if not given and not cleaned.get("on") and "on" not in self.errors:
            self.add_error("on", "This field is required.")
        if given and given.endswith("-at") and cleaned.get("at") is None and "at" not in self.errors:
            self.add_error("at", "Enter an end time.")
        return cleaned

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments of control.switches.flip and override."""
        given = self.checked()
        on, _, span = (given["given"] or given["on"]).partition("-")
        ends = given["at"] if span == "at" else durations.end(span) if span else None
        return {"on": words.read(on), "ends": ends, "was": given["was"]}


class Reset(kit.Change):
    """The overrides to reset, as the page showed them."""

    was = fields.Overrides()

    def shown(self) -> dict[str, bool | None]:
        """Return the overrides that the page showed, by their tools."""
        pairs = (value.rpartition("=") for value in self.checked()["was"])
        return {tool: words.read(stored) for tool, _, stored in pairs}
