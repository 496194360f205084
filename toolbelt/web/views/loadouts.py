"""The loadouts: their list, one of them, its editor, and its removal."""

from __future__ import annotations

from collections.abc import Mapping

from django.contrib.auth.decorators import permission_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control import holdings, rights
from toolbelt.core import catalog, errors
from toolbelt.web import drafts, loadout_drafts
from toolbelt.web.forms import filters
from toolbelt.web.pages import loadout as one
from toolbelt.web.pages import loadout_form
from toolbelt.web.pages import loadouts as pages
from toolbelt.web.presenters import loadouts
from toolbelt.web.views import answering, editing, saving

ADD, CHANGE, REMOVE = (rights.to(act, "loadout") for act in ("add", "change", "delete"))


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    """Show the list."""
    user = request.user
    page = pages.page(
        holdings.every(),
        here=request.path,
        notice=answering.kept(request)[0],
        may_add=user.has_perm(ADD),
        may_order=user.has_perm(CHANGE),
    )
    return render(request, "loadouts/list.html", {"page": page})


@require_safe
def page(request: HttpRequest, loadout: str) -> HttpResponse:
    """Show one loadout."""
    user = request.user
    try:
        filled = one.page(
            holdings.every(),
            loadout,
            filters.said(filters.Holders(request.GET)),
            path=request.path,
            here=request.get_full_path(),
            notice=answering.kept(request)[0],
            may_change=user.has_perm(CHANGE),
            may_add=user.has_perm(ADD),
            may_remove=user.has_perm(REMOVE),
        )
    except errors.NotFound as error:
        raise Http404(str(error)) from error
    return render(request, "loadouts/loadout.html", {"page": filled})


@require_safe
@permission_required(ADD, raise_exception=True)
def new(request: HttpRequest) -> HttpResponse:
    """Show the form of a new loadout; ``from`` names one to begin with."""
    copied = pages.get(holdings.shelf().catalog, request.GET.get("from", ""))
    draft = loadout_drafts.of(copied) if copied else loadout_drafts.Draft()
    if copied is not None:
        draft = loadout_drafts.renamed(draft, "")
    return _form(request, draft, new=True, seen="{}", copied=copied.name if copied else "")


@require_POST
@permission_required(ADD, raise_exception=True)
def create(request: HttpRequest) -> HttpResponse:
    """Make a loadout."""
    return _EDITOR.create(request)


@require_safe
@permission_required(CHANGE, raise_exception=True)
def edit(request: HttpRequest, loadout: str) -> HttpResponse:
    """Show the editor."""
    return _EDITOR.edit(request, _stored(loadout))


@require_POST
@permission_required(CHANGE, raise_exception=True)
def save(request: HttpRequest, loadout: str) -> HttpResponse:
    """Change what differs from what the page showed."""
    _stored(loadout)
    return _EDITOR.save(request, loadout, holdings.shelf().catalog)


@require_POST
@permission_required(REMOVE, raise_exception=True)
def remove(request: HttpRequest, loadout: str) -> HttpResponse:
    """Remove a stored loadout that nothing refers to."""
    home, listed = reverse("web:loadout", args=[loadout]), reverse("web:loadouts")
    return saving.remove(request, "loadout", loadout, home=home, listing=listed)


def _stored(name: str) -> catalog.Loadout:
    found = next((one for one in holdings.shelf().catalog.loadouts.values() if one.name == name), None)
    if found is None:
        raise Http404(f"There is no stored loadout named {name!r}.")
    return found


def _form(
    request: HttpRequest,
    draft: loadout_drafts.Draft,
    *,
    new: bool,
    seen: str,
    problems: Mapping[str, str] | None = None,
    copied: str = "",
    status: int = 200,
) -> HttpResponse:
    action = reverse("web:create_loadout") if new else reverse("web:save_loadout", args=[draft.name])
    form = loadout_form.form(
        holdings.shelf().catalog,
        draft,
        new=new,
        action=action,
        back=reverse("web:loadouts") if new else reverse("web:loadout", args=[draft.name]),
        seen=seen,
        reason=request.POST.get("reason", "")[: drafts.LONGEST_REASON],
        problems=problems or {},
    )
    page = loadouts.FormPage(form=form, copied=copied, here=request.path)
    template = "loadouts/_form.html" if answering.is_in_place(request) else "loadouts/edit.html"
    return render(request, template, {"page": page}, status=status)


_EDITOR = editing.Editor(
    kind="loadout",
    home="web:loadout",
    form=_form,
    empty=loadout_drafts.Draft(),
    of=loadout_drafts.of,
    read=loadout_drafts.read,
)
