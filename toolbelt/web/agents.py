"""The list of agents, the form that creates an agent, and the header of an agent's pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control import impacts, trials
from toolbelt.control.access import access_index
from toolbelt.control.agents import agents
from toolbelt.control.people import rights
from toolbelt.control.reports import queries
from toolbelt.core import agents as values
from toolbelt.core import catalog, errors, loadouts
from toolbelt.core.rules import inventory
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
    """A new agent, and its starting point: empty, ``loadout:NAME`` or a copy of ``agent:KEY``."""

    key = forms.CharField(
        max_length=200,
        help_text="Its name in addresses and commands: letters, digits, _, . and -.",
        widget=forms.TextInput({"required": True, "autofocus": True, "spellcheck": "false"}),
    )
    title = forms.CharField(required=False, help_text="The name that people read. Optional.")
    read_only = forms.BooleanField(required=False)
    start = forms.CharField(
        required=False,
        label="Start from",
        widget=forms.Select,
        help_text="A copy has the same settings, switches, overrides and toolkits, but no tokens or history.",
    )

    def set_choices(self, stored: catalog.Catalog) -> None:
        """Set the starting points to choose from."""
        names, options = loadouts.all_names(stored), titles.agent_options()
        choices = [
            ("", "Blank: only the tools that are on by default"),
            ("A loadout", [(f"loadout:{name}", f"Loadout {name}") for name in names]),
            (
                "A copy of an agent",
                [(f"agent:{key}", f"Copy of {option}") for key, option in options.items()],
            ),
        ]
        self.choose("start", [choice for choice in choices if choice[1]])

    def field_at(self, path: str) -> str | None:
        """Return the field of a path; problems of the loadout belong to the starting point."""
        name = path.rpartition(".")[2]
        return super().field_at({"loadout": "start"}.get(name, name))


@require_safe
def listing(request: http.Request) -> HttpResponse:
    """Show the agents, filtered and sorted; htmx gets only their table."""
    return responses.show(request, _Page(request), "agents/list.html", "agents/_table.html")


class _Page(pieces.Page):
    """The agents, filtered and sorted."""

    def __init__(self, request: http.Request) -> None:
        criteria, may_flip = filters.read(Agents(request.GET)), rights.flip_check(request.user)
        summaries = list(queries.summaries(archived=bool(criteria["archived"])))
        matches = matching(summaries, criteria)
        if criteria["sort"].endswith("change"):
            matches = list(queries.with_last(matches))
        sort = paging.sort(matches, _SORTS, criteria["sort"])
        total = summaries[0].total if summaries else 0
        part = paging.part(matches, criteria["offset"])
        flippable = [] if criteria["archived"] else [each for each in matches if may_flip(each.agent.key)]
        self.agents = tuple(Header(summary) for summary in queries.with_last(part.items))
        self.columns = paging.columns(_COLUMNS, criteria, sort, request.path)
        self.query = criteria["q"]
        self.kinds = pieces.choices(values.KINDS, criteria["kind"], "Any kind")
        self.loadouts = pieces.choices(
            sorted({each.loadout for each in summaries if each.loadout}), criteria["loadout"], "Any loadout"
        )
        self.sorts = pieces.choices(_CHOICES, sort)
        self.is_filtered = len(matches) != len(summaries)
        self.archived = bool(criteria["archived"])
        self.configured = bool(summaries) or queries.is_any_agent()
        self.matches = words.counted(len(matches), "archived agent" if criteria["archived"] else "agent") + (
            f", {words.tools(total)} in the catalog" if summaries else ""
        )
        self.pages = part.pages(criteria, request.path)
        bulk = _Bulk(flippable, criteria)
        self.bulk = bulk if bulk.toolkits else None
        self.views = VIEWS.present(request, criteria)


@require_safe
@permission_required(_ADD, raise_exception=True)
def new(request: http.Request) -> HttpResponse:
    """Show the form of a new agent; ``from`` is its starting point."""
    return _form(request, NewAgent(initial={"start": request.GET.get("from", "")}))


@require_POST
@permission_required(_ADD, raise_exception=True)
def create(request: http.Request) -> HttpResponse:
    """Create an agent, and redirect to its Connect page."""
    form = NewAgent(request.POST)

    def show_again(error: errors.ToolbeltError, status: int) -> HttpResponse:
        form.refuse(error, default_field="start" if isinstance(error, errors.NotFound) else "key")
        return _form(request, form, status)

    responses.declare(request, reverse("web:agents"), form=show_again)
    data = form.checked()
    kind, _, name = data["start"].partition(":")
    write, key, title = responses.write(request), data["key"], data["title"]
    # A copy of an agent that denies risks denies them, too.
    denied = catalog.DENIED_RISKS if data["read_only"] else ()
    if kind == "agent":
        change = agents.duplicate(write, name, key, title=title, denied_risks=denied)
    else:
        loadout = name if kind == "loadout" else ""
        change = agents.create(write, key, title=title, loadout=loadout, denied_risks=denied)
    notice = notices.Notice(
        text=f"Agent {titles.label('agent', key)} created.", undo=responses.undo_entry(request, change)
    )
    responses.declare(request, reverse("web:connect", args=[key]))
    return responses.respond(request, notice)


def _form(request: http.Request, form: NewAgent, status: int = 200) -> HttpResponse:
    form.set_choices(access_index.catalog_view().catalog)
    return responses.show(request, pieces.FormPage(form), "agents/new.html", status=status)


class _Bulk(pieces.View):
    """The bar that switches a toolkit for all matching agents."""

    words = pieces.SWITCH_ACTIONS

    def __init__(self, summaries: Sequence[queries.Summary], criteria: Mapping[str, Any]) -> None:
        toolkits = list(summaries[0].access.catalog.toolkits) if summaries else []
        count = (
            f"all {words.number(len(summaries))} matching agents" if len(summaries) > 1 else "the agent shown"
        )
        self.count = f"For {count}"
        self.fields = paging.hidden_fields(criteria, ("sort", "offset"))
        self.toolkits = pieces.choices(toolkits, "", "Choose a toolkit") if toolkits else ()


def matching(summaries: Iterable[queries.Summary], criteria: Mapping[str, Any]) -> list[queries.Summary]:
    """Return the agents that match the criteria."""
    kind, loadout = criteria["kind"], criteria["loadout"]
    matches = []
    for summary in summaries:
        agent = summary.agent
        if (kind and agent.kind != kind) or (loadout and summary.loadout != loadout):
            continue
        if words.contains(criteria["q"], agent.key, agent.title, agent.role, agent.description):
            matches.append(summary)
    return matches


class Header(pieces.View):
    """An agent for a list or for the header of its pages."""

    def __init__(self, summary: queries.Summary, *, may_undo: bool = False) -> None:
        spent = summary.inventory.spent
        self.key = summary.agent.key
        self.title = texts.visible(summary.agent.title or summary.agent.key)
        self.role = summary.agent.role
        self.profile = profile(summary.agent, summary.loadout)
        self.loadout = summary.loadout
        self.protected = summary.agent.protected
        self.is_read_only = set(summary.agent.denied_risks) == set(catalog.DENIED_RISKS)
        self.archived = summary.agent.archived
        self.active = words.number(spent.tools)
        self.total = words.number(summary.total)
        self.percent = round(100 * spent.tools / summary.total) if summary.total else 0
        self.tokens = words.approx(spent.tokens)
        self.shares = model_panel.shares(spent)
        stored = summary.access.catalog
        self.last_change = audit_words.LastChange(summary.last, may_undo, stored) if summary.last else None
        self.problem = problem_label(summary.inventory)
        self.budget = model_panel.meter(spent)


class PageHeader(Header):
    """The header of an agent's pages, with its live conversations and the roll-out that runs."""

    def __init__(self, summary: queries.Summary, *, may_undo: bool = False) -> None:
        super().__init__(summary, may_undo=may_undo)
        self.live = impacts.of_agents([self.key])
        # The roll-out that runs for some of its sessions.
        rollout = summary.agent.rollout
        self.trial = None if rollout is None else trials.numbered(rollout.trial)


def profile(agent: values.Agent, loadout: str) -> str:
    """Return where an agent's tools come from, apart from its switches."""
    if agent.loadout:
        return f"loadout {agent.loadout}"
    if agent.kind:
        return f"kind {agent.kind} → {loadout}" if loadout else f"kind {agent.kind}"
    return "no loadout"


def problem_label(contents: inventory.Inventory) -> str:
    """Return the problem that needs attention, in two words; empty if there is none."""
    if contents.conflicts:
        return "conflict"
    if contents.spent.is_exceeded:
        return "over budget"
    return "deferred by budget" if contents.deferred else ""
