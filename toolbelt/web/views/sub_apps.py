"""The sub-apps: their list, one of them, its editor, and its removal."""

from __future__ import annotations

from collections.abc import Mapping

from django.contrib.auth.decorators import permission_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control import holdings, queries, rights
from toolbelt.core import catalog, errors
from toolbelt.web import drafts, sub_app_drafts
from toolbelt.web.pages import sub_apps as pages
from toolbelt.web.presenters import sub_apps
from toolbelt.web.views import answering, editing, saving

ADD, CHANGE, REMOVE = (rights.to(act, "sub_app") for act in ("add", "change", "delete"))


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    """Show the list."""
    user = request.user
    page = pages.listing(
        holdings.every(),
        here=request.path,
        notice=answering.kept(request)[0],
        may_add=user.has_perm(ADD),
        may_order=user.has_perm(CHANGE),
    )
    return render(request, "sub_apps/list.html", {"page": page})


@require_safe
def page(request: HttpRequest, sub_app: str) -> HttpResponse:
    """Show one sub-app."""
    user = request.user
    try:
        filled = pages.page(
            holdings.every(),
            sub_app,
            here=request.path,
            notice=answering.kept(request)[0],
            may_change=user.has_perm(CHANGE),
            may_remove=user.has_perm(REMOVE),
        )
    except errors.NotFound as error:
        raise Http404(str(error)) from error
    return render(request, "sub_apps/sub_app.html", {"page": filled})


@require_safe
@permission_required(ADD, raise_exception=True)
def new(request: HttpRequest) -> HttpResponse:
    """Show the form of a new sub-app."""
    return _EDITOR.new(request)


@require_POST
@permission_required(ADD, raise_exception=True)
def create(request: HttpRequest) -> HttpResponse:
    """Make a sub-app, or take another row into its form."""
    return _EDITOR.create(request)


@require_safe
@permission_required(CHANGE, raise_exception=True)
def edit(request: HttpRequest, sub_app: str) -> HttpResponse:
    """Show the editor."""
    return _EDITOR.edit(request, _stored(sub_app).sub_apps[sub_app])


@require_POST
@permission_required(CHANGE, raise_exception=True)
def save(request: HttpRequest, sub_app: str) -> HttpResponse:
    """Change what differs from what the page showed, or take another row into the form."""
    return _EDITOR.save(request, sub_app, _stored(sub_app))


@require_POST
@permission_required(REMOVE, raise_exception=True)
def remove(request: HttpRequest, sub_app: str) -> HttpResponse:
    """Remove a sub-app: its tools and agents stay."""
    home, listed = reverse("web:sub_app", args=[sub_app]), reverse("web:sub_apps")
    return saving.remove(request, "sub_app", sub_app, home=home, listing=listed)


def _stored(sub_app: str) -> catalog.Catalog:
    """Give the catalog that has this sub-app."""
    found = holdings.shelf().catalog
    if sub_app not in found.sub_apps:
        raise Http404(f"There is no sub-app named {sub_app!r}.")
    return found


def _form(
    request: HttpRequest,
    draft: sub_app_drafts.Draft,
    *,
    new: bool,
    seen: str,
    problems: Mapping[str, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    action = reverse("web:create_sub_app") if new else reverse("web:save_sub_app", args=[draft.name])
    form = pages.form(
        holdings.shelf().catalog,
        queries.agent_keys(),
        draft,
        new=new,
        action=action,
        back=reverse("web:sub_apps") if new else reverse("web:sub_app", args=[draft.name]),
        seen=seen,
        reason=request.POST.get("reason", "")[: drafts.LONGEST_REASON],
        problems=problems or {},
    )
    page = sub_apps.FormPage(form=form, here=request.path)
    template = "sub_apps/_form.html" if answering.is_in_place(request) else "sub_apps/edit.html"
    return render(request, template, {"page": page}, status=status)


_EDITOR = editing.Editor(
    kind="sub_app",
    home="web:sub_app",
    form=_form,
    empty=sub_app_drafts.Draft(),
    of=sub_app_drafts.of,
    read=sub_app_drafts.read,
)
