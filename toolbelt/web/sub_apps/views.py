"""The sub-apps: their list, one of them, and its editor."""

from __future__ import annotations

from collections.abc import Mapping

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from toolbelt.control.access import access_index
from toolbelt.core import catalog
from toolbelt.web.kit import entry_editor, http, responses
from toolbelt.web.sub_apps import forms, view_model


@require_safe
def listing(request: http.Request) -> HttpResponse:
    """Show the list."""
    return responses.show(request, view_model.listing(access_index.load()), "sub_apps/list.html")


@require_safe
def page(request: http.Request, sub_app: str) -> HttpResponse:
    """Show one sub-app."""
    return responses.show(request, view_model.page(access_index.load(), sub_app), "sub_apps/sub_app.html")


class Editor(entry_editor.Editor):
    """The editor of sub-apps."""

    kind, form, template = "sub_app", forms.SubApp, "sub_apps/_form.html"
    about = "A sub-app's tools are on for the agents that it embeds, unless they are turned off or blocked."

    def stored(self, stored: catalog.Catalog) -> Mapping[str, catalog.SubApp]:
        """Return the sub-apps."""
        return stored.sub_apps
