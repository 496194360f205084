"""The button "Block for everyone": its response on the page of a tool, a toolkit or an agent."""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Callable, Mapping
from typing import Any

from django import forms
from django.http import HttpResponse

from toolbelt.control import impacts
from toolbelt.control.access import access_index
from toolbelt.control.catalog import blocking
from toolbelt.web.access import views
from toolbelt.web.kit import fields, http, periods, pieces, responses, titles, words
from toolbelt.web.kit import forms as kit

# How long something may be blocked, besides until it is unblocked.
SPANS = tuple(periods.SPANS.items())


class Ends(forms.Form):
    """When a block ends: after a span, at a moment in the reader's time zone (``at``), or never."""

    span = forms.ChoiceField(required=False, choices=[(span, span) for span in (*periods.SPANS, "at")])
    at = forms.DateTimeField(required=False, input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"])

    def clean(self) -> dict[str, Any]:
        """Require the moment if the block ends at one."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if cleaned.get("span") == "at" and cleaned.get("at") is None and "at" not in self.errors:
            self.add_error("at", "Enter an end time.")
        return cleaned


def end_of(data: Mapping[str, Any]) -> dt.datetime | None:
    """Return when a block ends, from the fields of :class:`Ends`; None: never."""
    at: dt.datetime | None = data["at"]
    return at if data["span"] == "at" else periods.end(data["span"]) if data["span"] else None


class Block(Ends, kit.Change):
    """Whether an entry is blocked for everyone, and until when: the requested state, and the one that the page showed.

    The Access page of an agent (``from_agent``) sends the form of a switch, whose ``on`` and ``was`` are ignored: that
    page only offers to block entries that are not blocked.
    """

    on = fields.State(("true", "false"))
    was = fields.State(("true", "false"))
    from_agent = forms.CharField(required=False, max_length=200)

    def __init__(self, data: Mapping[str, Any], *args: Any, **options: Any) -> None:
        agent = data.get("from_agent")
        chosen = {name: data.get(name, "") for name in ("span", "at")}
        values = {"on": "true", "was": "false", "from_agent": agent, **chosen} if agent else data
        super().__init__(values, *args, **options)


def respond(
    request: http.Request,
    kind: blocking.Kind,
    name: str,
    home: str,
    part: str,
    page: Callable[[], pieces.Page],
) -> HttpResponse:
    """Block or unblock an entry for everyone. htmx gets ``part`` of its ``page``, a browser goes to ``home``."""
    agent = request.POST.get("from_agent", "")
    # A block from the menu of an Access page updates the rows of that page.
    of_agent = functools.partial(views.render_partial, request, agent)
    responses.declare(request, home, parts=of_agent if agent else responses.swap_in(request, part, page))
    values = Block(request.POST).checked()
    on = values["on"]
    ends = end_of(values) if on else None
    change = blocking.set_blocked(
        responses.write(request, values), kind, name, on, ends=ends, was=values["was"]
    )
    result = f"{titles.label(kind, name)} is {words.blocked(ends) if on else 'unblocked'}"
    return responses.respond_changed(request, change, result, detail=describe_reach(change, on))


def describe_reach(change: blocking.BlockChange, on: bool) -> str:
    """Return what the block affects: ``9 agents can no longer use it (4 had it on, 5 on request); 2 live conversations:
    2 continue``.
    """
    on_count, request_count = len(change.agents), len(change.on_request)
    if not on_count and not request_count:
        return "no agent could use it" if on else "no agent can use it now"
    have = "had" if on else "has" if on_count == 1 else "have"
    parts = [f"{words.number(on_count)} {have} it on"] if on_count else []
    parts += [f"{words.number(request_count)} on request"] if request_count else []
    outcome = "can no longer use it" if on else "can use it again"
    reach = f"{words.counted(on_count + request_count, 'agent')} {outcome} ({', '.join(parts)})"
    return f"{reach}; {change.conversations.sentence}" if change.conversations.total else reach


def describe_live(index: access_index.AccessIndex, kind: blocking.Kind, name: str) -> str:
    """Return what a block would do to live conversations; empty if there are none."""
    live = impacts.of_agents(blocking.agents_with(index, kind, name))
    return f"A block concerns {live.sentence}." if live.total else ""
