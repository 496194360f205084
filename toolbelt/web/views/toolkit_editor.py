"""The editor of a toolkit: its texts, members and triggers, tried out while they are typed, and saved."""

from __future__ import annotations

from collections.abc import Mapping

from django.contrib.auth.decorators import permission_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control import holdings, proposals, queries, rights
from toolbelt.core import belts, catalog
from toolbelt.web import drafts, toolkit_drafts
from toolbelt.web.forms import filters
from toolbelt.web.pages import toolkit_editor as pages
from toolbelt.web.presenters import answers, toolkit_editor
from toolbelt.web.views import answering, editing, saving

ADD, CHANGE, REMOVE = (rights.to(act, "toolkit") for act in ("add", "change", "delete"))
# What a toolkit is called in its own preview until it is there.
_NAMELESS = "new_toolkit"


@require_safe
@permission_required(ADD, raise_exception=True)
def new(request: HttpRequest) -> HttpResponse:
    """Show the form of a new toolkit."""
    return _EDITOR.new(request)


@require_POST
@permission_required(ADD, raise_exception=True)
def create(request: HttpRequest) -> HttpResponse:
    """Make a toolkit, or show what its form comes to."""
    return _EDITOR.create(request)


@require_safe
@permission_required(CHANGE, raise_exception=True)
def edit(request: HttpRequest, toolkit: str) -> HttpResponse:
    """Show the editor, unless the toolkit is the code of a plugin, or larger than the editor takes."""
    stored = _stored(toolkit)
    if stored.plugin:
        text = f"{toolkit} is the code of the plugin {stored.plugin}: its tools, texts and triggers change there."
        home = reverse("web:toolkit", args=[toolkit])
        return answering.led_back(request, home, answers.Notice(text=text, tone="refused"), None)
    if crowded := toolkit_drafts.too_many(len(stored.members), len(stored.triggers)):
        home = reverse("web:toolkit", args=[toolkit])
        return answering.led_back(request, home, answers.Notice(text=crowded, tone="refused"), None)
    return _EDITOR.edit(request, stored)


@require_POST
@permission_required(CHANGE, raise_exception=True)
def save(request: HttpRequest, toolkit: str) -> HttpResponse:
    """Change what differs from what the page showed, or show what the form comes to."""
    _stored(toolkit)
    return _EDITOR.save(request, toolkit, holdings.shelf().catalog)


@require_POST
@permission_required(REMOVE, raise_exception=True)
def remove(request: HttpRequest, toolkit: str) -> HttpResponse:
    """Remove a toolkit that no agent names: its tools stay."""
    home, listed = reverse("web:toolkit", args=[toolkit]), reverse("web:toolkits")
    return saving.remove(request, "toolkit", toolkit, home=home, listing=listed)


def _stored(key: str) -> catalog.Toolkit:
    found = holdings.shelf().catalog.toolkits.get(key)
    if found is None:
        raise Http404(f"There is no toolkit named {key!r}.")
    return found


def _problems(draft: toolkit_drafts.Draft) -> dict[str, str]:
    """Say what is wrong with the draft as it stands, by the place."""
    address = belts.address("toolkit", {"key": draft.name})
    found = proposals.problems("toolkit", draft.name, draft.entry())
    return {**drafts.problems(address, found), **draft.problems()}


def _form(
    request: HttpRequest,
    draft: toolkit_drafts.Draft,
    *,
    new: bool,
    seen: str,
    problems: Mapping[str, str] | None = None,
    status: int = 200,
) -> HttpResponse:
    action = reverse("web:create_toolkit") if new else reverse("web:save_toolkit", args=[draft.name])
    said = filters.said(filters.Trial(request.POST if request.method == "POST" else request.GET))
    key = _NAMELESS if new else draft.name
    entry = {name: value for name, value in draft.entry().items() if value is not None}
    found = proposals.beside("toolkit", key, entry, said["whose"])
    form = pages.form(
        found,
        queries.agent_keys(),
        draft,
        found.catalog.toolkits[key],
        said,
        new=new,
        action=action,
        back=reverse("web:toolkits") if new else reverse("web:toolkit", args=[draft.name]),
        seen=seen,
        reason=request.POST.get("reason", "")[: drafts.LONGEST_REASON],
        problems=problems or {},
        refused=status >= 400,
    )
    page = toolkit_editor.FormPage(form=form, here=request.path)
    template = "toolkits/edit.html"
    if answering.is_in_place(request):
        tried = request.POST.get("act") == "try"
        template = "toolkits/_tried.html" if tried else "toolkits/_editor.html"
    return render(request, template, {"page": page}, status=status)


_EDITOR = editing.Editor(
    kind="toolkit",
    home="web:toolkit",
    form=_form,
    empty=toolkit_drafts.Draft(),
    of=toolkit_drafts.of,
    read=toolkit_drafts.read,
    wrong=toolkit_drafts.Draft.problems,
    problems=_problems,
)
