"""Client plugins, whose tools the agent's program runs: creating one, and choosing who may declare its tools."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urljoin

from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control.catalog import entries
from toolbelt.control.people import rights
from toolbelt.control.servers import approvals
from toolbelt.core import catalog, errors
from toolbelt.web.kit import entry_forms, http, notices, pieces, responses, titles
from toolbelt.web.plugins import forms

_ADD = rights.permission("add", "plugin")
_CHANGE = rights.permission("change", "plugin")


@require_safe
@permission_required(_ADD, raise_exception=True)
def add(request: http.Request) -> HttpResponse:
    """Show the form for a client plugin."""
    return _render(request, forms.ClientPlugin())


@require_POST
@permission_required(_ADD, raise_exception=True)
def save(request: http.Request) -> HttpResponse:
    """Create the plugin, and show its page."""
    form = forms.ClientPlugin(request.POST)

    def show_again(error: errors.ToolbeltError, status: int) -> HttpResponse:
        form.refuse(error, default_field="name" if isinstance(error, entries.NameTaken) else None)
        return _render(request, form, status=status)

    responses.declare(request, reverse("web:plugins"), form=show_again)
    data = form.checked()
    name = data["name"]
    fields = {"namespace": data["namespace"], "title": data["title"], "declared_by": data["agent"]}
    entry = {"name": name, **{field: value for field, value in fields.items() if value}}
    entries.create(responses.write(request, data), "plugin", entry)
    responses.declare(request, reverse("web:plugin", args=[name]))
    text = f"{name} created. Declare its tools, then review them here."
    return responses.respond(request, notices.Notice(text=text))


@require_POST
@permission_required(_CHANGE, raise_exception=True)
def choose_declarers(request: http.Request, plugin: str) -> HttpResponse:
    """Set which agents' tokens may declare the plugin's tools."""
    responses.declare(request, reverse("web:plugin", args=[plugin]))
    data = forms.Declarers(request.POST).checked()
    approvals.find(plugin, "client")
    change = entries.change(
        responses.write(request, data),
        "plugin",
        plugin,
        {"declared_by": entry_forms.merge(data["agent"], data["was"]) or None},
        was={"declared_by": data["was"] or None},
    )
    result = f"Who may declare the tools of {plugin}: operators, and {', '.join(data['agent']) or 'no agent'}"
    unchanged = "these agents can already declare the tools"
    return responses.respond_changed(request, change, result, unchanged=unchanged)


class Declaring(pieces.View):
    """How a program declares the tools of a client plugin."""

    def __init__(self, plugin: catalog.Plugin, origin: str) -> None:
        self.agents = plugin.declared_by
        self.choices = agent_choices(plugin.declared_by)
        self.url = urljoin(origin, reverse("api:declare_tools", args=[plugin.name]))


def agent_choices(chosen: Iterable[str]) -> tuple[pieces.Choice, ...]:
    """Return the agents as checkboxes, including chosen agents that no longer exist."""
    chosen = tuple(chosen)
    return tuple(
        pieces.Choice(value=key, label=label, chosen=key in chosen)
        for key, label in ({key: key for key in chosen} | titles.agent_options()).items()
    )


def _render(request: http.Request, form: forms.ClientPlugin, *, status: int = 200) -> HttpResponse:
    return responses.show(request, _FormPage(form), "plugins/add_client.html", status=status)


class _FormPage(pieces.FormPage):
    """The form for a client plugin."""

    def __init__(self, form: forms.ClientPlugin) -> None:
        super().__init__(form)
        self.choices = agent_choices(form["agent"].value() or ())
