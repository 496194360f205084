"""The Access page of one agent, and the directive for a message typed beside it."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from toolbelt.control.access import switches
from toolbelt.control.people import rights
from toolbelt.control.reports import queries
from toolbelt.runtime import surfaces
from toolbelt.web.access import decisions, forms, view_model
from toolbelt.web.kit import audit_words, filters, http, model_panel, responses


@require_safe
def page(request: http.Request, agent: str) -> HttpResponse:
    """Show the page; to htmx only the sections, or the tools of the one section that was opened."""
    narrowed = filters.read(forms.Access(request.GET))
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
    message = str(filters.read(forms.Access(request.GET))["message"])
    answer = surfaces.ask(agent, message=message)
    return render(
        request, "access/_directive.html", {"directive": model_panel.directive(answer.directive, message)}
    )
