"""What may a form send that sets switches and overrides, or stops something: one, or many at once?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from toolbelt.core import grants
from toolbelt.web import spans, words
from toolbelt.web.forms import edits, fields

_WORDS = [(word, word) for word in ("true", "false", "unset")]


class Flip(edits.Change):
    """One flip: what is wanted, and what the page showed.

    A button that gives something for a while says all of it in one word, ``true-2h``, beside which ``on`` is what the
    page showed; with ``true-at`` it ends at the moment ``at``, in the time zone of the server.
    """

    on = forms.ChoiceField(choices=_WORDS, required=False)
    was = forms.ChoiceField(choices=_WORDS)
    given = forms.ChoiceField(
        required=False,
        choices=[(f"{on}-{span}",) * 2 for on in ("true", "false") for span in (*spans.SPANS, "at")],
    )
    at = forms.DateTimeField(required=False, input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"])

    def clean(self) -> dict[str, Any]:
        """Ask for what is wanted, and for the moment if it shall end at one."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        given = cleaned.get("given")
        if not given and not cleaned.get("on") and "on" not in self.errors:
            self.add_error("on", "This field is required.")
        if given and given.endswith("-at") and cleaned.get("at") is None and "at" not in self.errors:
            self.add_error("at", "Say until when.")
        return cleaned

    def wanted(self) -> dict[str, Any]:
        """Give the keyword arguments of control.switches.flip and override."""
        on, _, span = (self.cleaned_data["given"] or self.cleaned_data["on"]).partition("-")
        ends = self.cleaned_data["at"] if span == "at" else spans.end(span) if span else None
        return {
            "on": words.read(on),
            "ends": ends,
            "was": words.read(self.cleaned_data["was"]),
            "confirm": self.cleaned_data["confirm"],
            "reason": self.cleaned_data["reason"],
        }


class SetAll(edits.Change):
    """What all that is shown shall be (``set``: ``tools-true``, ``toolkits-unset``), for whom, and which toolkit."""

    set = forms.ChoiceField(
        choices=[(f"{what}-{word}",) * 2 for what in ("tools", "toolkits") for word, _ in _WORDS]
    )
    key = forms.CharField(required=False, max_length=200)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # No name for an attribute.
        self.fields["for"] = fields.Names(required=False)

    def wanted(self) -> tuple[str, bool | None]:
        """Give what shall be set, and to what."""
        what, _, word = self.cleaned_data["set"].partition("-")
        return what, words.read(word)


class Bulk(edits.Change):
    """What shall be set as a page showed it (``seen``: by agent, by key, what was set)."""

    on = forms.ChoiceField(choices=_WORDS)
    seen = fields.Document()

    def clean_seen(self) -> dict[str, dict[str, grants.Said]]:
        """Take nothing but states, by the keys of agents and of what is switched."""
        seen = self.cleaned_data["seen"]
        sound = isinstance(seen, dict) and all(
            isinstance(keys, dict)
            # On, off, unset, or one of these with its end.
            and all(was is None or isinstance(was, bool | dict) for was in keys.values())
            for keys in seen.values()
        )
        if not sound or not seen:
            raise forms.ValidationError("This is not what a page shows.")
        return dict(seen)

    def wanted(self) -> dict[str, Any]:
        """Give the keyword arguments of control.bulk.apply."""
        return {
            "seen": self.cleaned_data["seen"],
            "on": words.read(self.cleaned_data["on"]),
            "confirm": self.cleaned_data["confirm"],
            "reason": self.cleaned_data["reason"],
        }


class Stop(edits.Change):
    """The emergency stop of something: whether it is wanted, and what the page showed.

    From the Access page of an agent (``stop`` names it) it comes with a switch's form, whose fields say nothing here:
    there it is only offered for what is not stopped.
    """

    on = forms.ChoiceField(choices=[("true", "true"), ("false", "false")])
    was = forms.ChoiceField(choices=[("true", "true"), ("false", "false")])
    stop = forms.CharField(required=False, max_length=200)

    def __init__(self, data: Mapping[str, Any], *args: Any, **options: Any) -> None:
        given = {"on": "true", "was": "false", "stop": data["stop"]} if data.get("stop") else data
        super().__init__(given, *args, **options)

    def wanted(self) -> dict[str, Any]:
        """Give the keyword arguments of control.stops.stop."""
        given = self.cleaned_data
        return {"on": given["on"] == "true", "was": given["was"] == "true", "reason": given["reason"]}


class Reset(edits.Change):
    """The overrides that are to go, as the page showed them."""

    was = fields.Overrides()

    def wanted(self) -> dict[str, Any]:
        """Give the keyword arguments of control.tools_config.change."""
        pairs = (value.rpartition("=") for value in self.cleaned_data["was"])
        was = {tool: words.read(stored) for tool, _, stored in pairs}
        return {
            "wanted": dict.fromkeys(was),
            "was": was,
            "confirm": self.cleaned_data["confirm"],
            "reason": self.cleaned_data["reason"],
        }
