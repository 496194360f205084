"""What may a form of the dashboard send? Checked here, before anything else looks at it."""

from __future__ import annotations

from typing import Any

from django import forms

from toolbelt.web import words

_WORDS = [(word, word) for word in ("true", "false", "unset")]


class Change(forms.Form):
    """What every change may bring: the answer to a question if there was one, and a reason that is kept with it."""

    confirm = forms.BooleanField(required=False)
    reason = forms.CharField(required=False, max_length=500)

    def problems(self) -> str:
        """Say what is wrong, in a line."""
        return "; ".join(f"{name}: {found[0]}" for name, found in self.errors.items())


class Flip(Change):
    """One flip: what is wanted, and what the page showed."""

    on = forms.ChoiceField(choices=_WORDS)
    was = forms.ChoiceField(choices=_WORDS)

    def wanted(self) -> dict[str, Any]:
        """Give the keyword arguments of control.switches.flip and override."""
        return {
            "on": words.read(self.cleaned_data["on"]),
            "was": words.read(self.cleaned_data["was"]),
            "confirm": self.cleaned_data["confirm"],
            "reason": self.cleaned_data["reason"],
        }


class Overrides(forms.MultipleChoiceField):
    """Overrides as a page showed them: ``github__issue_read=true``, once or more."""

    def valid_value(self, value: str) -> bool:
        """Say whether it is a tool with what was stored for it; which tools there are is not asked here."""
        tool, _, stored = value.rpartition("=")
        return bool(tool) and stored in ("true", "false")


class Reset(Change):
    """The overrides that are to go, as the page showed them."""

    was = Overrides()

    def wanted(self) -> dict[str, Any]:
        """Give the keyword arguments of control.switches.reset."""
        pairs = (value.rpartition("=") for value in self.cleaned_data["was"])
        return {
            "seen": {tool: words.read(stored) for tool, _, stored in pairs},
            "confirm": self.cleaned_data["confirm"],
            "reason": self.cleaned_data["reason"],
        }


class AccessFilter(forms.Form):
    """What narrows the Access page: nonsense in an address narrows nothing."""

    q = forms.CharField(required=False, max_length=200)
    show = forms.ChoiceField(
        required=False,
        choices=[(word, word) for word in ("", "active", "overridden", "destructive")],
    )
    message = forms.CharField(required=False, max_length=4000)


class AgentsFilter(forms.Form):
    """What narrows and sorts the list of agents."""

    q = forms.CharField(required=False, max_length=200)
    kind = forms.CharField(required=False, max_length=20)
    loadout = forms.CharField(required=False, max_length=64)
    sort = forms.CharField(required=False, max_length=20)


class ChangesFilter(forms.Form):
    """What narrows the audit log, and where in it to look."""

    person = forms.CharField(required=False, max_length=150)
    agent = forms.CharField(required=False, max_length=64)
    action = forms.CharField(required=False, max_length=64)
    older = forms.IntegerField(required=False, min_value=1)
    newer = forms.IntegerField(required=False, min_value=1)


def said(form: forms.Form) -> dict[str, Any]:
    """Give what is sound of a form that filters; empty where a field is not given or makes no sense."""
    form.is_valid()
    return {name: form.cleaned_data.get(name) or "" for name in form.fields}
