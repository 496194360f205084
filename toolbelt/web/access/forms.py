"""The filter of the Access page, and the form that blocks something for everyone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from toolbelt.web.kit import fields
from toolbelt.web.kit import forms as kit


class Access(forms.Form):
    """What narrows the Access page: nonsense in an address narrows nothing."""

    q = fields.Query()
    show = forms.ChoiceField(
        required=False,
        choices=[(word, word) for word in ("", "active", "overridden", "destructive")],
    )
    sort = forms.ChoiceField(required=False, choices=[("", ""), ("policy", "policy")])
    message = forms.CharField(required=False, max_length=4000)
    offset = fields.Offset()


class Stop(kit.Change):
    """The emergency stop of something: whether it is wanted, and what the page showed.

    From the Access page of an agent (``stop`` names it) it comes with a switch's form, whose fields say nothing here:
    there it is only offered for what is not stopped.
    """

    on = fields.State(("true", "false"))
    was = fields.State(("true", "false"))
    stop = forms.CharField(required=False, max_length=200)

    def __init__(self, data: Mapping[str, Any], *args: Any, **options: Any) -> None:
        given = {"on": "true", "was": "false", "stop": data["stop"]} if data.get("stop") else data
        super().__init__(given, *args, **options)
