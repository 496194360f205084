"""The button Block for everyone: its response on the page of a tool, of a toolkit or of an agent."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpResponse
from django.shortcuts import render

from toolbelt.control.catalog import blocking
from toolbelt.core import effects
from toolbelt.web.access import forms, parts
from toolbelt.web.kit import http, notices, pieces, responses, words


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

    def swap(notice: notices.Notice, change: effects.Effect | None, status: int) -> HttpResponse:
        # The Access page of an agent, whose menu blocked it, shows what becomes of its rows.
        if agent:
            return parts.render_partial(request, agent, notice, None, status=status)
        shown = page()
        shown.notice = notice
        return render(request, part, {"page": shown}, status=status)

    responses.declare(request, home, parts=swap)
    given = forms.Block(request.POST).checked()
    on = given["on"]
    change = blocking.set_blocked(responses.write(request, given), kind, name, on, was=given["was"])
    done = f"{name} is {'blocked for everyone' if on else 'unblocked'}"
    if change.is_nothing:
        return responses.respond(request, notices.Notice(text=f"No changes: {done} already."))
    detail = describe_reach(change, on)
    return responses.respond(request, notices.Notice(text=f"{done}.", detail=detail, undo=change.entry))


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
