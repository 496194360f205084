"""The list of agents, creating one, and the header of the pages of one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control.access import access_index
from toolbelt.control.agents import agents
from toolbelt.control.people import rights
from toolbelt.control.reports import queries
from toolbelt.core import agents as values
from toolbelt.core import catalog, errors, inventory, loadouts
from toolbelt.web.kit import (
    audit_words,
    fields,
    filters,
    http,
    model_panel,
    notices,
    paging,
    pieces,
    responses,
    saved_views,
    texts,
    titles,
    words,
)
from toolbelt.web.kit import forms as kit

_NEVER = datetime.min.replace(tzinfo=UTC)
_SORTS: Mapping[str, Callable[[queries.Summary], Any]] = {
    "agent": lambda summary: summary.agent.key.casefold(),
    "profile": lambda summary: (summary.loadout, summary.agent.kind),
    "tools": lambda summary: summary.inventory.spent.tools,
    "tokens": lambda summary: summary.inventory.spent.tokens,
    "change": lambda summary: summary.last.at if summary.last else _NEVER,
}
_COLUMNS = {
    "agent": "Agent",
    "profile": "Loadout or kind",
    "tools": "Tools",
    "tokens": "Tokens",
    "change": "Last change",
}
_CHOICES = {
    "": "Default order",
    "agent": "Name",
    "-tools": "Most tools",
    "-tokens": "Most tokens",
    "-change": "Last changed",
}
_ADD = rights.permission("add", "agent")


class Agents(forms.Form):
    """The filters, order and offset of the list of agents."""

    q = fields.Query()
    kind = forms.CharField(required=False, max_length=20)
    loadout = forms.CharField(required=False, max_length=64)
    archived = forms.BooleanField(required=False)
    sort = forms.CharField(required=False, max_length=20)
    offset = fields.Offset()


VIEWS = saved_views.FilteredList(
    page="agents", form=Agents, names=("q", "kind", "loadout", "archived", "sort")
)


class NewAgent(kit.Fields, kit.Change):
    """A new agent, and what it starts from: nothing, ``loadout:NAME`` or a copy of ``agent:KEY``."""

    key = forms.CharField(
        max_length=200,
        help_text="Its name in addresses and commands: letters, digits, _, . and -.",
        widget=forms.TextInput({"required": True, "autofocus": True, "spellcheck": "false"}),
    )
    title = forms.CharField(required=False, help_text="The name that people read. Optional.")
    start = forms.CharField(
        required=False,
        label="Start from",
        widget=forms.Select,
        help_text="A copy has the same settings, switches, overrides and toolkits, but no tokens or history.",
    )

    def offer(self, stored: catalog.Catalog) -> None:
        """Set what an agent may start from."""
        names, keys = loadouts.all_names(stored), queries.agent_keys()
        choices = [
            ("", "Blank: only the tools that are on by default"),
            ("A loadout", [(f"loadout:{name}", f"Loadout {name}") for name in names]),
            ("A copy of an agent", [(f"agent:{key}", f"Copy of {key}") for key in keys]),
        ]
        self.choose("start", [choice for choice in choices if choice[1]])

    def field_at(self, place: str) -> str | None:
        """Return the field of a place; a problem of the loadout is one of what the agent starts from."""
        name = place.rpartition(".")[2]
        return super().field_at({"loadout": "start"}.get(name, name))


@require_safe
def listing(request: http.Request) -> HttpResponse:
    """Show the agents, narrowed and sorted as the form says, or only their table to htmx."""
    given, may_flip = filters.read(Agents(request.GET)), rights.flip_check(request.user)
    every = list(queries.summaries(archived=bool(given["archived"])))
    shown = matching(every, given)
    if given["sort"].endswith("change"):
        shown = list(queries.with_last(shown))
    sort = paging.sort(shown, _SORTS, given["sort"])
    total = every[0].total if every else 0
    part = paging.part(shown, given["offset"])
    own = [] if given["archived"] else [summary for summary in shown if may_flip(summary.agent.key)]
    page = pieces.View(
        agents=tuple(present(summary) for summary in queries.with_last(part.items)),
        columns=paging.columns(_COLUMNS, given, sort, request.path),
        query=given["q"],
        kinds=pieces.choices(values.KINDS, given["kind"], "Any kind"),
        loadouts=pieces.choices(
            sorted({summary.loadout for summary in every if summary.loadout}), given["loadout"], "Any loadout"
        ),
        sorts=pieces.choices(_CHOICES, sort),
        narrowed=len(shown) != len(every),
        archived=bool(given["archived"]),
        configured=bool(every) or queries.is_any_agent(),
        matches=words.counted(len(shown), "archived agent" if given["archived"] else "agent")
        + (f", {words.tools(total)} in the catalog" if every else ""),
        pages=part.pages(given, request.path),
        bulk=_bulk(own, given),
        views=VIEWS.present(request, given),
    )
    return responses.show(request, page, "agents/list.html", "agents/_table.html")


@require_safe
@permission_required(_ADD, raise_exception=True)
def new(request: http.Request) -> HttpResponse:
    """Show the form of a new agent; ``from`` is what it starts from."""
    return _form(request, NewAgent(initial={"start": request.GET.get("from", "")}))


@require_POST
@permission_required(_ADD, raise_exception=True)
def create(request: http.Request) -> HttpResponse:
    """Create an agent, and go on to connect it."""
    form = NewAgent(request.POST)

    def show_again(error: errors.ToolbeltError, status: int) -> HttpResponse:
        form.refuse(error, default_field="start" if isinstance(error, errors.NotFound) else "key")
        return _form(request, form, status)

    responses.declare(request, reverse("web:agents"), form=show_again)
    given = form.checked()
    kind, _, name = given["start"].partition(":")
    write, key, title = responses.write(request), given["key"], given["title"]
    if kind == "agent":
        done = agents.duplicate(write, name, key, title=title)
    else:
        done = agents.create(write, key, title=title, loadout=name if kind == "loadout" else "")
    notice = notices.Notice(
        text=f"Agent {titles.label('agent', key)} created.", undo=responses.undo_entry(request, done)
    )
    responses.declare(request, reverse("web:connect", args=[key]))
    return responses.respond(request, notice)


def _form(request: http.Request, form: NewAgent, status: int = 200) -> HttpResponse:
    form.offer(access_index.catalog_view().catalog)
    return responses.show(request, pieces.View(form=form), "agents/new.html", status=status)


def _bulk(summaries: Sequence[queries.Summary], filters: Mapping[str, Any]) -> pieces.View | None:
    """Return the bar that switches a toolkit for all agents that the list shows."""
    toolkits = list(summaries[0].access.catalog.toolkits) if summaries else []
    if not toolkits:
        return None
    return pieces.View(
        fields=paging.hidden_fields(filters, ("sort", "offset")),
        count=f"For all {words.number(len(summaries))} matching agents"
        if len(summaries) > 1
        else "For the agent shown",
        words=pieces.SWITCH_ACTIONS,
        toolkits=pieces.choices(toolkits, "", "Choose a toolkit"),
    )


def matching(every: Iterable[queries.Summary], filters: Mapping[str, Any]) -> list[queries.Summary]:
    """Return the agents that the filter shows."""
    kind, loadout = filters["kind"], filters["loadout"]
    shown = []
    for summary in every:
        agent = summary.agent
        if (kind and agent.kind != kind) or (loadout and summary.loadout != loadout):
            continue
        if words.contains(filters["q"], agent.key, agent.title, agent.role, agent.description):
            shown.append(summary)
    return shown


def present(summary: queries.Summary, *, may_undo: bool = False) -> pieces.View:
    """Present an agent, in a list or as the header of its pages."""
    spent = summary.inventory.spent
    return pieces.View(
        key=summary.agent.key,
        title=texts.visible(summary.agent.title or summary.agent.key),
        role=summary.agent.role,
        profile=profile(summary.agent, summary.loadout),
        loadout=summary.loadout,
        protected=summary.agent.protected,
        archived=summary.agent.archived,
        active=words.number(spent.tools),
        total=words.number(summary.total),
        percent=round(100 * spent.tools / summary.total) if summary.total else 0,
        tokens=words.approx(spent.tokens),
        shares=model_panel.shares(spent),
        last_change=audit_words.last_change(summary.last, may_undo, summary.access.catalog),
        trouble=trouble(summary.inventory),
        budget=model_panel.meter(spent),
    )


def profile(agent: values.Agent, loadout: str) -> str:
    """Return where an agent's tools come from, switches aside."""
    if agent.loadout:
        return f"loadout {agent.loadout}"
    if agent.kind:
        return f"kind {agent.kind} → {loadout}" if loadout else f"kind {agent.kind}"
    return "no loadout"


def trouble(has: inventory.Inventory) -> str:
    """Return what needs attention, in two words."""
    if has.conflicts:
        return "conflict"
    if has.spent.is_exceeded:
        return "over budget"
    return "deferred by budget" if has.deferred else ""
