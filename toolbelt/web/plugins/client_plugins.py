"""Client plugins, whose tools the agent's own program runs: creating one, and choosing who may declare its tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbelt import conf
from toolbelt.control.catalog import entries
from toolbelt.control.people import rights
from toolbelt.control.reports import queries
from toolbelt.control.servers import client_plugins
from toolbelt.core import catalog, errors
from toolbelt.web.kit import entry_forms, http, notices, pieces, responses
from toolbelt.web.plugins import forms

_ADD = rights.permission("add", "plugin")
_CHANGE = rights.permission("change", "plugin")
# The page /plugins/add/ adds a server, so no plugin can have that address for its own page.
RESERVED = frozenset({"add"})
_EXAMPLE = """[
  {
    "name": "refund",
    "description": "Refund an order.",
    "input_schema": {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}
  }
]"""


@require_safe
@permission_required(_ADD, raise_exception=True)
def add(request: http.Request) -> HttpResponse:
    """Show the form for a client plugin."""
    return _form(request)


@require_POST
@permission_required(_ADD, raise_exception=True)
def save(request: http.Request) -> HttpResponse:
    """Create the plugin, and show its page."""

    def again(error: errors.ToolbeltError, status: int) -> HttpResponse:
        return _form(request, _problems(error, request.POST.get("name", "")), status=status)

    responses.declare(request, reverse("web:plugins"), form=again)
    given = forms.ClientPlugin(request.POST).checked()
    name = given["name"]
    if name in RESERVED:
        message = "This name is reserved: choose another name."
        raise errors.Invalid([errors.Problem(path=f"plugins.{name}.name", message=message)])
    fields = {"namespace": given["namespace"], "title": given["title"], "declared_by": given["agent"]}
    entry = {"name": name, **{field: value for field, value in fields.items() if value}}
    entries.create(responses.write(request, given), "plugin", entry)
    responses.declare(request, reverse("web:plugin", args=[name]))
    text = f"{name} created. Declare its tools, then review them here."
    return responses.respond(request, notices.Notice(text=text))


@require_POST
@permission_required(_CHANGE, raise_exception=True)
def choose_declarers(request: http.Request, plugin: str) -> HttpResponse:
    """Let the tokens of the agents that are ticked declare the plugin's tools, and no others."""
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
    if change.is_nothing:
        return responses.respond(
            request, notices.Notice(text="No changes: these agents may declare already.")
        )
    names = ", ".join(given["agent"]) or "no agent"
    text = f"Who may declare the tools of {plugin}: operators, and {names}."
    return responses.respond(request, notices.Notice(text=text, undo=change.entry))


def declaring(plugin: catalog.Plugin, origin: str) -> pieces.View | None:
    """Fill what the page of a client plugin shows to its program's developer; None for any other plugin."""
    if plugin.runner != "client":
        return None
    url = f"{origin}{reverse('api:declare_tools', args=[plugin.name])}"
    return pieces.View(
        agents=plugin.declared_by,
        names=" or ".join(plugin.declared_by),
        choices=agent_choices(plugin.declared_by),
        command=f"{conf.COMMAND} declare {plugin.name} tools.json",
        file=_EXAMPLE,
        curl='curl -X PUT -H "Authorization: Bearer $TOOLBELT_TOKEN" \\\n'
        '  -H "Content-Type: application/json" \\\n'
        f'  -d "{{\\"tools\\": $(cat tools.json)}}" \\\n'
        f"  {url}",
    )


def agent_choices(chosen: Iterable[str]) -> tuple[pieces.Choice, ...]:
    """Return the agents to tick; one that is chosen and does not exist can still be unticked."""
    chosen = tuple(chosen)
    return tuple(
        pieces.Choice(value=key, label=key, chosen=key in chosen)
        for key in dict.fromkeys((*queries.agent_keys(), *chosen))
    )


def _problems(error: errors.ToolbeltError, name: str) -> dict[str, str]:
    """Return what is wrong by the field that shows it; empty for what is wrong with no field alone."""
    if not isinstance(error, errors.Invalid):
        return {"name" if isinstance(error, entries.NameTaken) else "": str(error)}
    messages: dict[str, list[str]] = {}
    for problem in error.problems:
        place = problem.path.removeprefix(f"plugins.{name}").removeprefix(".")
        messages.setdefault(place.partition("[")[0] or "name", []).append(problem.message)
    return {field: " ".join(texts) for field, texts in messages.items()}


def _form(
    request: http.Request, problems: Mapping[str, str] = MappingProxyType({}), *, status: int = 200
) -> HttpResponse:
    typed: Any = request.POST
    page = pieces.View(
        name=typed.get("name", ""),
        namespace=typed.get("namespace", ""),
        title=typed.get("title", ""),
        choices=agent_choices(typed.getlist("agent")),
        problems=problems,
        problem=problems.get("", ""),
    )
    return render(request, "plugins/add_client.html", {"page": page}, status=status)
