"""Search and jump, and the question that comes before a flip which was asked for in words."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from toolbelt.control.access import access_index, switches
from toolbelt.control.people import rights
from toolbelt.web.kit import confirmations, filters, http, model, notices, responses, words
from toolbelt.web.search import forms, view_model

_STATES = {True: "true", False: "false", None: "unset"}


@require_safe
def page(request: http.Request) -> HttpResponse:
    """Show what is found: on a page, or to htmx as the options of the dialog."""
    text = filters.read(forms.Search(request.GET))["q"]
    shown = view_model.page(text, request.user)
    return responses.show(request, shown, "search/search.html", "search/_results.html")


@require_safe
def flip(request: http.Request) -> HttpResponse:
    """Ask whether a toolkit or tool shall be turned on or off for an agent, with the effect. Changes nothing."""
    form = forms.Flip(request.GET)
    if not form.is_valid():
        raise Http404
    agent, key, on = form.cleaned_data["agent"], form.cleaned_data["key"], form.cleaned_data["on"] == "on"
    if not rights.may_flip(request.user, agent):
        raise PermissionDenied
    was = switches.current_value(agent, key)
    change = switches.previews(agent, key, [on])[on]
    family = "switch" if key in access_index.catalog_view().catalog.toolkits else "override"
    home = reverse("web:agent_access", args=[agent])
    question = notices.Confirmation(
        title=words.asking(key, on, agent),
        reasons=(),
        action=reverse(f"web:{family}", args=[agent, key]),
        fields=(("on", _STATES[on]), ("was", _STATES[was]), ("next", home)),
        confirm_word=words.wanted(on),
        back=home,
        dangerous=bool(change.added),
        effect=model.effect(change),
        differences=tuple(confirmations.tool_changes(change.added, change.removed)),
    )
    return responses.ask_confirmation(request, question)
