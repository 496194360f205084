"""Search and jump, and the confirmation of a flip that was requested in words."""

from __future__ import annotations

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from toolbelt.control.access import access_index, switches
from toolbelt.control.people import rights
from toolbelt.web.kit import fields, filters, http, model_panel, notices, pieces, responses, titles, words
from toolbelt.web.search import view_model

MAX_LIST_LENGTH = 10_000


class Search(forms.Form):
    """The search text."""

    q = fields.Query()


class Flip(forms.Form):
    """A switch or override of an agent, and its requested state."""

    agent = forms.CharField(max_length=64)
    key = forms.CharField(max_length=200)
    on = forms.ChoiceField(choices=[("on", "on"), ("off", "off")])


@require_safe
def page(request: http.Request) -> HttpResponse:
    """Show the results on a page, or for htmx as the options of the dialog."""
    text = filters.read(Search(request.GET))["q"]
    view = view_model.Page(text, request.user)
    return responses.show(request, view, "search/search.html", "search/_results.html")


@require_safe
def tool_options(request: http.Request) -> HttpResponse:
    """Return the tools that match a text, as the options of a combobox. A list of keys is a single option."""
    return render(request, "search/_tool_options.html", {"page": _Options(request)})


class _Options(pieces.Page):
    """The tools that match a text."""

    def __init__(self, request: http.Request) -> None:
        text = filters.read(Search(request.GET))["q"]
        stored = access_index.catalog_view().catalog
        # A pasted list of keys may be longer than a text to search for.
        names = fields.split_names(request.GET.get("q", "")[:MAX_LIST_LENGTH])
        known, unknown = fields.split_keys(stored, names)
        self.query = text
        self.keys = known if len(names) > 1 else ()
        self.unknown = unknown
        self.tools = () if self.keys else fields.find_tools(stored, text)
        self.more = len(self.tools) == fields.MAX_TOOLS


@require_safe
def flip(request: http.Request) -> HttpResponse:
    """Ask for confirmation to turn a toolkit or tool on or off for an agent, with the effect. Changes nothing."""
    form = Flip(request.GET)
    if not form.is_valid():
        raise Http404
    agent, key, on = form.cleaned_data["agent"], form.cleaned_data["key"], form.cleaned_data["on"] == "on"
    if not rights.may_flip(request.user, agent):
        raise PermissionDenied
    was = switches.current_value(agent, key)
    change = switches.previews(agent, key, [on])[on]
    family = "switch" if key in access_index.catalog_view().catalog.toolkits else "override"
    home = reverse("web:agent_access", args=[agent])
    confirmation = notices.Confirmation(
        title=words.switch_question(titles.label("toolkit", key), on, titles.label("agent", agent)),
        reasons=(),
        action=reverse(f"web:{family}", args=[agent, key]),
        fields=(("on", words.form_value(on)), ("was", words.form_value(was)), ("next", home)),
        confirm_word=words.switch_verb(on),
        back=home,
        dangerous=bool(change.added),
        effect=model_panel.effect(change),
        differences=tuple(model_panel.tool_changes(change.added, change.removed)),
    )
    return responses.ask_confirmation(request, confirmation)
