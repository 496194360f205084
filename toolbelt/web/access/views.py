"""The Access page of one agent, its parts that follow a change, and the button that blocks something for everyone."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from django import forms
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from toolbelt.control.access import switches
from toolbelt.control.catalog import blocking
from toolbelt.control.people import rights
from toolbelt.control.reports import queries
from toolbelt.core import effects, errors
from toolbelt.runtime import surfaces
from toolbelt.web.access import decisions, view_model
from toolbelt.web.kit import (
    audit_words,
    fields,
    filters,
    http,
    model_panel,
    notices,
    pieces,
    responses,
    titles,
    words,
)
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


def render_partial(
    request: http.Request,
    agent: str,
    notice: notices.Notice,
    change: effects.Effect | None,
    status: int = 200,
    question: notices.Confirmation | None = None,
) -> HttpResponse:
    """Return the parts of the Access page that the change affects, and a question if there is one."""
    message = request.POST.get("message", "")[:4000]
    try:
        access = queries.access(agent, message)
    except errors.NotFound:
        # Gone since the page was opened, or by this very change.
        responses.keep_notice(request, notice)
        return responses.see_other(request, reverse("web:agents"))
    page = view_model.answer(
        access,
        tools=frozenset(request.POST.get("tools", "").split()),
        shown=frozenset(request.POST.get("sections", "").split()),
        message=message,
        notice=notice,
        change=change,
        may_undo=audit_words.may_undo_quickly(request.user, access.last),
    )
    response = render(request, "kit/_answer.html", {"page": page, "confirmation": question}, status=status)
    return as_of(response, agent, page.revision)


def as_of(response: HttpResponse, agent: str, revision: int) -> HttpResponse:
    """Mark how new these parts of the page are: responses may overtake each other (order.js)."""
    # If there is no such agent, the name is whatever the address contains.
    response.headers["X-Toolbelt-As-Of"] = f"{quote(agent)} {revision}"
    return response


def block(
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
    of_agent = functools.partial(render_partial, request, agent)
    responses.declare(request, home, parts=of_agent if agent else responses.swap_in(request, part, page))
    given = Block(request.POST).checked()
    on = given["on"]
    change = blocking.set_blocked(responses.write(request, given), kind, name, on, was=given["was"])
    done = f"{titles.named(kind, name)} is {'blocked for everyone' if on else 'unblocked'}"
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


@require_safe
def page(request: http.Request, agent: str) -> HttpResponse:
    """Show the page; to htmx only the sections, or the tools of the one section that was opened."""
    narrowed = filters.read(Access(request.GET))
    target = request.htmx.target or ""
    access = queries.access(agent, narrowed["message"])
    notice, change = (None, None) if target else responses.pop_notice(request)
    shown = view_model.page(
        access,
        narrowed,
        opened=request.GET.getlist("open"),
        path=request.path,
        notice=notice,
        change=change,
        may_change=rights.may_flip(request.user, agent),
        may_undo=audit_words.may_undo_quickly(request.user, access.last),
        may_block=request.user.has_perm(rights.permission("change", "tool"))
        and request.user.has_perm(rights.permission("change", "toolkit")),
    )
    if target == "sections":
        return render(request, "access/_sections.html", {"page": shown, "in_place": True})
    if target.endswith(":tools"):
        wanted = target.removesuffix(":tools")
        for section in (section for group in shown.groups for section in group.sections):
            if section.id == wanted:
                return render(request, "access/_toolkit.html#tools", {"page": shown, "section": section})
        raise Http404(f"There is no section {wanted!r}.")
    return render(request, "access/access.html", {"page": shown})


@require_safe
def effect(request: http.Request, agent: str, key: str) -> HttpResponse:
    """Show what turning a toolkit or a tool on, off, or neither would do: in the menu beside it, or on a page."""
    had = switches.current_value(agent, key)
    effects = switches.previews(agent, key, [on for on in (True, False, None) if on is not had])
    page = view_model.effects(agent, key, effects)
    template = "access/_effects.html" if request.htmx else "access/effect.html"
    return render(request, template, {"page": page})


@require_safe
def why(request: http.Request, agent: str, key: str) -> HttpResponse:
    """Show why a toolkit's tools or a tool are on or off: in a popover beside the reason, or on a page."""

    def may(kind: str) -> bool:
        if kind == "agent":
            return rights.may_flip(request.user, agent)
        return request.user.has_perm(rights.permission("change", kind))

    page = decisions.page(queries.access(agent), key, may=may)
    template = "access/_why.html" if request.htmx else "access/why.html"
    return render(request, template, {"page": page})


@require_safe
def directive(request: http.Request, agent: str) -> HttpResponse:
    """Show the directive that a message leads to."""
    message = str(filters.read(Access(request.GET))["message"])
    answer = surfaces.ask(agent, message=message)
    return render(
        request, "access/_directive.html", {"directive": model_panel.directive(answer.directive, message)}
    )
