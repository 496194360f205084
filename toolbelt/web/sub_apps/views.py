"""The sub-apps: their list, one of them, and its editor."""

from __future__ import annotations

from collections.abc import Mapping

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from toolbelt.control.access import access_index
from toolbelt.control.people import rights
from toolbelt.core import catalog
from toolbelt.web.kit import entry_editor, http, responses
from toolbelt.web.sub_apps import forms, view_model

ADD, CHANGE, REMOVE = (rights.permission(act, "sub_app") for act in ("add", "change", "delete"))


@require_safe
def listing(request: http.Request) -> HttpResponse:
    """Show the list."""
    page = view_model.listing(access_index.load())
    page.may_add, page.may_order = map(request.user.has_perm, (ADD, CHANGE))
    return responses.show(request, page, "sub_apps/list.html")


@require_safe
def page(request: http.Request, sub_app: str) -> HttpResponse:
    """Show one sub-app."""
    shown = view_model.page(access_index.load(), sub_app)
    shown.may_change, shown.may_remove = map(request.user.has_perm, (CHANGE, REMOVE))
    return responses.show(request, shown, "sub_apps/sub_app.html")


class Editor(entry_editor.Editor):
    """The editor of sub-apps."""

    kind, form, template = "sub_app", forms.SubApp, "sub_apps/_form.html"
    about = "The tools that a sub-app binds are on for the agents that it embeds, unless a rule blocks them."

    def stored(self, stored: catalog.Catalog) -> Mapping[str, catalog.SubApp]:
        """Return the sub-apps."""
        return stored.sub_apps
