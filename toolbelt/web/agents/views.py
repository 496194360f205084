"""The list of agents, and creating one."""

from __future__ import annotations

from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control import writing
from toolbelt.control.access import access_index
from toolbelt.control.agents import agents
from toolbelt.control.people import rights
from toolbelt.core import errors
from toolbelt.web.agents import forms, view_model
from toolbelt.web.kit import filters, http, notices, pieces, responses

_ADD = rights.permission("add", "agent")


@require_safe
def listing(request: http.Request) -> HttpResponse:
    """Show the agents, or only their table to htmx."""
    may_flip = rights.flip_check(request.user)
    narrowed = filters.read(forms.Agents(request.GET))
    page = view_model.page(narrowed, request.path, may_flip=may_flip)
    page.views = forms.VIEWS.present(request, narrowed)
    return responses.show(request, page, "agents/list.html", "agents/_table.html")


@require_safe
@permission_required(_ADD, raise_exception=True)
def new(request: http.Request) -> HttpResponse:
    """Show the form of a new agent; ``from`` is what it starts from."""
    return _form(request, forms.NewAgent(initial={"start": request.GET.get("from", "")}))


@require_POST
@permission_required(_ADD, raise_exception=True)
def create(request: http.Request) -> HttpResponse:
    """Create an agent, and go on to connect it."""
    form = forms.NewAgent(request.POST)

    def show_again(error: errors.ToolbeltError, status: int) -> HttpResponse:
        form.refuse(error, otherwise="start" if isinstance(error, errors.NotFound) else "key")
        return _form(request, form, status)

    responses.declare(request, reverse("web:agents"), form=show_again)
    given = form.checked()
    done = _create(responses.write(request), given["key"], given["title"], given["start"])
    notice = notices.Notice(text=f"Agent {given['key']} created.", undo=responses.undo_of(request, done))
    responses.declare(request, reverse("web:connect", args=[given["key"]]))
    return responses.respond(request, notice)


def _create(write: writing.Write, key: str, title: str, start: str) -> writing.Change:
    kind, _, name = start.partition(":")
    if kind == "agent":
        return agents.duplicate(write, name, key, title=title)
    return agents.create(write, key, title=title, loadout=name if kind == "loadout" else "")


def _form(request: http.Request, form: forms.NewAgent, status: int = 200) -> HttpResponse:
    form.offer(access_index.catalog_view().catalog)
    return responses.show(request, pieces.View(form=form), "agents/new.html", status=status)
