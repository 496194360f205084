"""Client plugins, whose tools the agent's own program runs: creating one, and choosing who may declare its tools."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urljoin

from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control.catalog import entries
from toolbelt.control.people import rights
from toolbelt.control.reports import queries
from toolbelt.control.servers import client_plugins
from toolbelt.core import catalog, errors
from toolbelt.web.kit import entry_forms, http, notices, pieces, responses
from toolbelt.web.plugins import forms

_ADD = rights.permission("add", "plugin")
_CHANGE = rights.permission("change", "plugin")


@require_safe
@permission_required(_ADD, raise_exception=True)
def add(request: http.Request) -> HttpResponse:
    """Show the form for a client plugin."""
    return _shown(request, forms.ClientPlugin())


@require_POST
@permission_required(_ADD, raise_exception=True)
def save(request: http.Request) -> HttpResponse:
    """Create the plugin, and show its page."""
    form = forms.ClientPlugin(request.POST)

    def show_again(error: errors.ToolbeltError, status: int) -> HttpResponse:
        form.refuse(error, default_field="name" if isinstance(error, entries.NameTaken) else None)
        return _shown(request, form, status=status)

    responses.declare(request, reverse("web:plugins"), form=show_again)
    given = form.checked()
    name = given["name"]
    fields = {"namespace": given["namespace"], "title": given["title"], "declared_by": given["agent"]}
    entry = {"name": name, **{field: value for field, value in fields.items() if value}}
    entries.create(responses.write(request, given), "plugin", entry)
    responses.declare(request, reverse("web:plugin", args=[name]))
    text = f"{name} created. Declare its tools, then review them here."
    return responses.respond(request, notices.Notice(text=text))


@require_POST
@permission_required(_CHANGE, raise_exception=True)
def choose_declarers(request: http.Request, plugin: str) -> HttpResponse:
    """Set which agents' tokens may declare the plugin's tools."""
    responses.declare(request, reverse("web:plugin", args=[plugin]))
    given = forms.Declarers(request.POST).checked()
    client_plugins.find(plugin)
    change = entries.change(
        responses.write(request, given),
        "plugin",
        plugin,
        {"declared_by": entry_forms.merge(given["agent"], given["was"]) or None},
        was={"declared_by": given["was"] or None},
    )
    done = f"Who may declare the tools of {plugin}: operators, and {', '.join(given['agent']) or 'no agent'}"
    unchanged = "these agents can already declare the tools"
    return responses.respond_changed(request, change, done, unchanged=unchanged)


def declaring(plugin: catalog.Plugin, origin: str) -> pieces.View | None:
    """Return what the page of a client plugin shows to the program's developer; None for any other plugin."""
    if plugin.runner != "client":
        return None
    return pieces.View(
        agents=plugin.declared_by,
        choices=agent_choices(plugin.declared_by),
        url=urljoin(origin, reverse("api:declare_tools", args=[plugin.name])),
    )


def agent_choices(chosen: Iterable[str]) -> tuple[pieces.Choice, ...]:
    """Return the agents to tick; one that is chosen and does not exist can still be unticked."""
    chosen = tuple(chosen)
    return tuple(
        pieces.Choice(value=key, label=key, chosen=key in chosen)
        for key in dict.fromkeys((*queries.agent_keys(), *chosen))
    )


def _shown(request: http.Request, form: forms.ClientPlugin, *, status: int = 200) -> HttpResponse:
    page = pieces.View(form=form, choices=agent_choices(form["agent"].value() or ()))
    return render(request, "plugins/add_client.html", {"page": page}, status=status)
