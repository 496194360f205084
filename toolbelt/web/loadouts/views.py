"""The loadouts: their list, one of them, and its editor."""

from __future__ import annotations

from collections.abc import Mapping

from django.http import HttpResponse
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
    page = view_model.page(access_index.load())
    page.may_add, page.may_order = map(request.user.has_perm, (ADD, CHANGE))
    return responses.show(request, page, "loadouts/list.html")


@require_safe
def page(request: http.Request, loadout: str) -> HttpResponse:
    """Show one loadout."""
    user = request.user
    shown = detail.page(
        access_index.load(), loadout, filters.read(filters.Holders(request.GET)), path=request.path
    )
    shown.may_change = shown.is_stored and user.has_perm(CHANGE)
    shown.may_remove = shown.is_stored and user.has_perm(REMOVE)
    shown.may_add = user.has_perm(ADD)
    return responses.show(request, shown, "loadouts/loadout.html")


class Editor(entry_editor.Editor):
    """The editor of loadouts. A new one may start as a copy, also of a built-in one."""

    kind, form, template = "loadout", forms.Loadout, "loadouts/_form.html"

    def stored(self, stored: catalog.Catalog) -> Mapping[str, catalog.Loadout]:
        """Return the stored loadouts."""
        return {loadout.name: loadout for loadout in stored.loadouts.values()}

    def find(self, stored: catalog.Catalog, name: str) -> catalog.Loadout | None:
        """Return the loadout of this name, stored or built in."""
        return view_model.get(stored, name)
