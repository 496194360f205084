"""What is set for many at once."""

from __future__ import annotations

from typing import Any

from django import forms

from toolbelt.core import grants
from toolbelt.web.kit import fields, words
from toolbelt.web.kit import forms as kit


class SetAll(kit.Change):
    """What everything shown is set to (``set``: ``tools-true``, ``toolkits-unset``), the agents, and the toolkit;
    ``pick`` names the selected sections of the Access page.
    """

    set = forms.ChoiceField(
        choices=[(f"{what}-{word}",) * 2 for what in ("tools", "toolkits") for word in words.STORED.values()]
    )
    key = forms.CharField(required=False, max_length=200)
    pick = fields.Names(required=False)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # A keyword, so it cannot be an attribute of the class.
        self.fields["for"] = fields.Names(required=False)

    def setting(self) -> tuple[str, bool | None]:
        """Return what shall be set, and to what."""
        what, _, word = self.checked()["set"].partition("-")
        return what, words.read(word)


class SetTools(SetAll):
    """Which tools of the list are set (``tool``, or ``every`` that matches), for which agents.

    Turning off stores nothing where the agent has not got the tool, unless ``also_off`` is set.
    """

    tool = fields.Names(required=False)
    every = forms.BooleanField(required=False)
    also_off = forms.BooleanField(required=False)


class Bulk(kit.Change):
    """What shall be set as a page showed it (``seen``: by agent, by key, what was set)."""

    on = fields.State()
    seen = fields.Document()

    def clean_seen(self) -> dict[str, dict[str, grants.SwitchState]]:
        """Accept only states, by agent and by the key of the toolkit or tool."""
        seen = self.cleaned_data["seen"]
        sound = isinstance(seen, dict) and all(
            isinstance(keys, dict)
            # On, off, unset, or a state with its end.
            and all(was is None or isinstance(was, bool | dict) for was in keys.values())
            for keys in seen.values()
        )
        if not sound or not seen:
            raise forms.ValidationError("The request does not match the page: reload it and try again.")
        return dict(seen)
