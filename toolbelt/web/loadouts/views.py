"""The loadouts: their list, one of them, and its editor."""

from __future__ import annotations

from collections.abc import Mapping

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from toolbelt.control.access import access_index
from toolbelt.control.people import rights
from toolbelt.core import catalog
from toolbelt.web.kit import entry_editor, filters, http, responses
from toolbelt.web.loadouts import detail, forms, view_model

ADD, CHANGE, REMOVE = (rights.permission(act, "loadout") for act in ("add", "change", "delete"))


@require_safe
def listing(request: http.Request) -> HttpResponse:
    """Show the list."""
    user = request.user
    page = view_model.page(
        access_index.load(),
        here=request.path,
        notice=responses.pop_notice(request)[0],
        may_add=user.has_perm(ADD),
        may_order=user.has_perm(CHANGE),
    )
    return render(request, "loadouts/list.html", {"page": page})


@require_safe
def page(request: http.Request, loadout: str) -> HttpResponse:
    """Show one loadout."""
    user = request.user
    filled = detail.page(
        access_index.load(),
        loadout,
        filters.read(filters.Holders(request.GET)),
        path=request.path,
        here=request.get_full_path(),
        notice=responses.pop_notice(request)[0],
        may_change=user.has_perm(CHANGE),
        may_add=user.has_perm(ADD),
        may_remove=user.has_perm(REMOVE),
    )
    return render(request, "loadouts/loadout.html", {"page": filled})


class Editor(entry_editor.Editor):
    """The editor of loadouts. A new one may start as a copy, also of a built-in one."""

    kind, form, template = "loadout", forms.Loadout, "loadouts/_form.html"

    def stored(self, stored: catalog.Catalog) -> Mapping[str, catalog.Loadout]:
        """Return the stored loadouts."""
        return {loadout.name: loadout for loadout in stored.loadouts.values()}

    def find(self, stored: catalog.Catalog, name: str) -> catalog.Loadout | None:
        """Return the loadout of this name, stored or built in."""
        return view_model.get(stored, name)
