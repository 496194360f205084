"""The loadouts: their list, one of them, and its editor."""

from __future__ import annotations

from collections.abc import Mapping

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from toolbelt.control.access import access_index
from toolbelt.core import catalog
from toolbelt.web.kit import entry_editor, filters, http, responses
from toolbelt.web.loadouts import forms, view_model


@require_safe
def listing(request: http.Request) -> HttpResponse:
    """Show the list."""
    return responses.show(request, view_model.listing(access_index.load()), "loadouts/list.html")


@require_safe
def page(request: http.Request, loadout: str) -> HttpResponse:
    """Show one loadout."""
    shown = view_model.page(
        access_index.load(), loadout, filters.read(filters.FindAgents(request.GET)), path=request.path
    )
    return responses.show(request, shown, "loadouts/loadout.html")


class Editor(entry_editor.Editor):
    """The editor of loadouts. A new one may start as a copy, also of a built-in one."""

    kind, form, template = "loadout", forms.Loadout, "loadouts/_form.html"

    def stored(self, stored: catalog.Catalog) -> Mapping[str, catalog.Loadout]:
        """Return the stored loadouts."""
        return {loadout.name: loadout for loadout in stored.loadouts.values()}

    def source(self, request: http.Request, stored: catalog.Catalog) -> catalog.Loadout | None:
        """Return the loadout that ``from`` names, stored or built in."""
        return view_model.get(stored, request.GET.get("from", ""))
