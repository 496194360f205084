"""The Access page of one agent, and the directive for a message typed beside it."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from toolbelt.control import queries, rights
from toolbelt.core import errors
from toolbelt.runtime import surfaces
from toolbelt.web.forms import filters
from toolbelt.web.pages import access, effects, model
from toolbelt.web.views import answering


@require_safe
def page(request: HttpRequest, agent: str) -> HttpResponse:
    """Show the page; to htmx only the sections, or the tools of the one section that was opened."""
    said = filters.said(filters.Access(request.GET))
    target = request.headers.get("HX-Target", "") if answering.is_in_place(request) else ""
    try:
        found = queries.access(agent, said["message"])
    except errors.NotFound as error:
        raise Http404(str(error)) from error
    notice, change = (None, None) if target else answering.kept(request)
    filled = access.page(
        found,
        said,
        opened=request.GET.getlist("open"),
        path=request.path,
        here=request.get_full_path(),
        notice=notice,
        change=change,
        may_change=rights.may_flip(request.user, agent),
        may_undo=found.last is not None and rights.may_undo(request.user, found.last),
        may_stop=request.user.has_perm(rights.to("change", "tool"))
        and request.user.has_perm(rights.to("change", "toolkit")),
    )
    if target == "sections":
        return render(request, "agents/_sections.html", {"page": filled})
    if target.endswith(":tools"):
        wanted = target.removesuffix(":tools")
        for section in (*filled.toolkits, *filled.loose):
            if section.id == wanted:
                return render(request, "agents/_toolkit.html#tools", {"page": filled, "section": section})
        raise Http404(f"There is no section {wanted!r}.")
    return render(request, "agents/access.html", {"page": filled})


@require_safe
def effect(request: HttpRequest, agent: str, key: str) -> HttpResponse:
    """Show what turning a toolkit or a tool on, off, or neither would do: in the menu beside it, or on a page."""
    try:
        page = effects.page(agent, key)
    except errors.NotFound as error:
        raise Http404(str(error)) from error
    whole = not answering.is_in_place(request)
    return render(request, "agents/effect.html" if whole else "agents/_effects.html", {"page": page})


@require_safe
def directive(request: HttpRequest, agent: str) -> HttpResponse:
    """Show what the model would be told to focus on for a message."""
    message = str(filters.said(filters.Access(request.GET))["message"])
    try:
        answer = surfaces.ask(agent, message=message)
    except errors.NotFound as error:
        raise Http404(str(error)) from error
    return render(
        request, "agents/_directive.html", {"directive": model.directive(answer.directive, message)}
    )
