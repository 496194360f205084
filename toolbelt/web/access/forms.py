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


class Block(kit.Change):
    """Whether something is blocked for everyone: what is requested, and what the page showed.

    The Access page of an agent (``from_agent``) sends it with the form of a switch, whose ``on`` and ``was`` do not
    count here: that page only offers to block what is not blocked.
    """

    on = fields.State(("true", "false"))
    was = fields.State(("true", "false"))
    from_agent = forms.CharField(required=False, max_length=200)

    def __init__(self, data: Mapping[str, Any], *args: Any, **options: Any) -> None:
        agent = data.get("from_agent")
        given = {"on": "true", "was": "false", "from_agent": agent} if agent else data
        super().__init__(given, *args, **options)
