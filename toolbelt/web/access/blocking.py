"""The button Block for everyone: its response on the page of a tool, of a toolkit or of an agent."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from django import forms
from django.http import HttpResponse

from toolbelt.control.catalog import blocking
from toolbelt.web.access import views
from toolbelt.web.kit import fields, http, pieces, responses, titles, words
from toolbelt.web.kit import forms as kit


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


def respond(
    request: http.Request,
    kind: blocking.Kind,
    name: str,
    home: str,
    part: str,
    page: Callable[[], pieces.View],
) -> HttpResponse:
    """Block something for everyone, or unblock it: htmx gets ``part`` of its ``page``, a browser goes to ``home``."""
    agent = request.POST.get("from_agent", "")
    # The Access page of an agent, whose menu blocked it, shows what becomes of its rows.
    of_agent = functools.partial(views.render_partial, request, agent)
    responses.declare(request, home, parts=of_agent if agent else responses.swap_in(request, part, page))
    given = Block(request.POST).checked()
    on = given["on"]
    change = blocking.set_blocked(responses.write(request, given), kind, name, on, was=given["was"])
    done = f"{titles.label(kind, name)} is {'blocked for everyone' if on else 'unblocked'}"
    return responses.respond_changed(request, change, done, detail=describe_reach(change, on))


def describe_reach(change: blocking.BlockChange, on: bool) -> str:
    """Return how many agents it affects: ``9 agents can no longer use it (4 had it on, 5 on request)``."""
    had, could = len(change.agents), len(change.on_request)
    if not had and not could:
        return "no agent could use it" if on else "no agent can use it now"
    have = "had" if on else "has" if had == 1 else "have"
    how = [f"{words.number(had)} {have} it on"] if had else []
    how += [f"{words.number(could)} on request"] if could else []
    can = "can no longer use it" if on else "can use it again"
    return f"{words.counted(had + could, 'agent')} {can} ({', '.join(how)})"
