"""The sub-apps: their list, one of them, and its editor."""

from __future__ import annotations

from collections.abc import Mapping

from django.http import HttpResponse
from django.shortcuts import render
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
    user = request.user
    page = view_model.listing(
        access_index.load(),
        here=request.path,
        notice=responses.pop_notice(request)[0],
        may_add=user.has_perm(ADD),
        may_order=user.has_perm(CHANGE),
    )
    return render(request, "sub_apps/list.html", {"page": page})


@require_safe
def page(request: http.Request, sub_app: str) -> HttpResponse:
    """Show one sub-app."""
    user = request.user
    filled = view_model.page(
        access_index.load(),
        sub_app,
        here=request.path,
        notice=responses.pop_notice(request)[0],
        may_change=user.has_perm(CHANGE),
        may_remove=user.has_perm(REMOVE),
    )
    return render(request, "sub_apps/sub_app.html", {"page": filled})


class Editor(entry_editor.Editor):
    """The editor of sub-apps."""

    kind, form, template = "sub_app", forms.SubApp, "sub_apps/_form.html"
    about = "The tools that a sub-app binds are on for the agents that it embeds, unless a rule blocks them."

    def stored(self, stored: catalog.Catalog) -> Mapping[str, catalog.SubApp]:
        """Return the sub-apps."""
        return stored.sub_apps
