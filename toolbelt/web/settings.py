"""The settings of an agent, its operators, and archiving it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from django import forms
from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbelt import conf
from toolbelt.control.access import access_index
from toolbelt.control.agents import agents, subagents
from toolbelt.control.people import rights, roles
from toolbelt.control.reports import queries
from toolbelt.core import agents as values
from toolbelt.core import belts, catalog, errors, loadouts
from toolbelt.core.rules import reasons
from toolbelt.web import agents as agents_page
from toolbelt.web.kit import entry_forms, fields, http, model_panel, notices, pieces, responses, titles, words
from toolbelt.web.kit import forms as kit

_LIMIT = {"min": 0, "step": 1, "inputmode": "numeric", "placeholder": "no limit"}


class Settings(entry_forms.EntryForm):
    """The settings of one agent."""

    entry_kind = "agent"
    plain_fields = ("title", "role", "description", "model", "kind", "loadout", "mcp_loading", "protected")
    list_fields = ("subagent_kinds",)

    title = forms.CharField(required=False)
    role = forms.CharField(required=False, help_text="One line, shown beside the agent's name.")
    description = fields.Text(rows=3)
    model = forms.CharField(
        required=False, help_text="The language model that this agent uses. For information only."
    )
    kind = forms.CharField(
        required=False,
        label="Kind",
        widget=forms.Select,
        help_text="Determines the loadout of an agent without its own.",
    )
    loadout = forms.CharField(
        required=False, widget=forms.Select, help_text="Switches and overrides take precedence over it."
    )
    max_tools = forms.IntegerField(
        required=False, label="Maximum tools", widget=forms.NumberInput(attrs={**_LIMIT})
    )
    max_tokens = forms.IntegerField(
        required=False,
        label="Maximum tokens",
        help_text="Tools and policy together, with the texts of toolkits that are off.",
        widget=forms.NumberInput(attrs={**_LIMIT}),
    )
    on_exceed = forms.ChoiceField(
        required=False,
        label="When exceeded",
        choices=[
            ("warn", "Warn: show a warning, change nothing"),
            ("refuse", "Refuse: reject turning on or loading more tools"),
            ("defer", "Defer: move whole toolkits to on request"),
        ],
    )
    mcp_loading = forms.ChoiceField(
        required=False,
        label="How MCP clients load tools",
        choices=[
            ("dispatch", "With search_tools and call_tool; the tool list changes with your switches only"),
            ("list", "With load_tools; the tool list grows (needs a client that keeps sessions)"),
            ("constant", "With search_tools and call_tool; the tool list never changes in a conversation"),
        ],
    )
    protected = forms.BooleanField(required=False)
    read_only = forms.BooleanField(required=False)
    subagent_kinds = fields.Checkboxes(label="Kinds of subagents that its token may request")

    @classmethod
    def initial_of(cls, value: values.Agent) -> dict[str, Any]:
        """Return the fields of the form for an agent."""
        budget = value.budget or values.Budget()
        return {
            **super().initial_of(value),
            "max_tools": budget.max_tools,
            "max_tokens": budget.max_tokens,
            "on_exceed": budget.on_exceed,
            "read_only": value.denied_risks == catalog.DENIED_RISKS,
            "denied_risks": value.denied_risks,
        }

    def set_choices(self, stored: catalog.Catalog) -> None:
        """Set the kinds and loadouts to choose from; a chosen loadout stays even if it was removed."""
        loadout_of = conf.KIND_LOADOUTS
        kinds = [
            (kind, f"{kind} → {loadout_of[kind]}" if kind in loadout_of else kind) for kind in values.KINDS
        ]
        self.choose("kind", [("", "None"), *kinds])
        chosen = self.values["loadout"]
        names = dict.fromkeys((*loadouts.all_names(stored), *([chosen] if chosen else [])))
        self.choose("loadout", [("", "From its kind, if any"), *((name, name) for name in names)])

    def entry(self) -> dict[str, Any]:
        """Return every key of the form with its value; None means the default."""
        data = self.values
        budget = {name: data[name] for name in ("max_tools", "max_tokens") if data[name] is not None}
        if data["on_exceed"] not in ("", values.ON_EXCEED[0]):
            budget["on_exceed"] = data["on_exceed"]
        entry = {**super().entry(), "budget": budget or None, "denied_risks": self._denied_risks() or None}
        if entry["mcp_loading"] == values.MCP_LOADINGS[0]:
            entry["mcp_loading"] = None
        return entry

    def _denied_risks(self) -> list[str]:
        """Return all of them if the agent is read-only. Some that were set elsewhere stay as they are."""
        stored = tuple(self.initial.get("denied_risks", ()))
        if self.values["read_only"]:
            return list(catalog.DENIED_RISKS)
        return [] if stored == catalog.DENIED_RISKS else list(stored)

    @property
    def some_denied(self) -> str:
        """Return which risks are denied, in words, if they are not all or none."""
        stored = tuple(self.initial.get("denied_risks", ()))
        return (
            "" if stored == catalog.DENIED_RISKS else words.listing([reasons.RISKS[risk] for risk in stored])
        )

    def field_at(self, path: str) -> str | None:
        """Return the field of a path; each limit of the budget has its own field."""
        if path.startswith("denied_risks"):
            return "read_only"
        return super().field_at(path.removeprefix("budget."))

    @property
    def labels(self) -> dict[str, str]:
        """Return the labels of the chosen values, for readers who may not change them."""
        return {
            name: dict(field.widget.choices).get(self.values[name], self.values[name])
            for name, field in self.fields.items()
            if isinstance(field.widget, forms.Select)
        }


class Operators(kit.Change):
    """The operators of an agent, and those that the page showed (``was``)."""

    user = fields.Names(required=False)
    was = fields.Names(required=False)


class Archiving(kit.Change):
    """Whether to archive an agent, or to restore it."""

    archived = forms.ChoiceField(choices=[("yes", "yes"), ("no", "no")])


@require_safe
def page(request: http.Request, agent: str) -> HttpResponse:
    """Show the page."""
    return _render(request, agent)


@require_POST
@permission_required(rights.FLIP, raise_exception=True)
def change(request: http.Request, agent: str) -> HttpResponse:
    """Save the fields that differ from what the page showed; newer changes of other fields are kept."""
    was = entry_forms.read_was(request.POST)
    stored = belts.value("agent", {**was, "key": agent}, access_index.catalog_view().catalog)
    form = Settings(request.POST, name=agent, initial=Settings.initial_of(stored))

    def show_again(error: errors.ToolbeltError, status: int) -> HttpResponse:
        address = belts.address("agent", {"key": agent})
        form.show_problems(entry_forms.problems_by_path(address, error.problems), is_saved=True)
        return _render(request, agent, status=status, form=form, seen=was)

    home = reverse("web:settings", args=[agent])
    name = titles.label("agent", agent)
    title, fields = f"Save the settings of {name}?", (*form.fields, "was", "next")
    responses.declare(request, home, form=show_again, title=title, verb="Save changes", fields=fields)
    data, changes = form.checked(), form.changes()
    seen = {key: was.get(key) for key in changes}
    result = agents.edit(responses.write(request, data), agent, changes, was=seen)
    unchanged, detail = f"the settings of {name} are already up to date", model_panel.summarize(result.effect)
    return responses.respond_changed(
        request, result, f"Settings of {name} saved", unchanged=unchanged, detail=detail
    )


@require_POST
@permission_required(rights.SET_OPERATORS, raise_exception=True)
def set_operators(request: http.Request, agent: str) -> HttpResponse:
    """Set the operators of this agent only to the ticked users."""
    form = Operators(request.POST)
    responses.declare(request, reverse("web:settings", args=[agent]))
    data = form.checked()
    result = roles.set_operators(responses.write(request, data), agent, data["user"], was=data["was"])
    names = ", ".join(result.after) or "none"
    text = f"Operators of {titles.label('agent', agent)} only: {names}."
    return responses.respond(request, notices.Notice(text=text, undo=result.entry))


@require_POST
@permission_required(rights.FLIP, raise_exception=True)
def archive(request: http.Request, agent: str) -> HttpResponse:
    """Archive the agent, after a confirmation, or restore it."""
    form = Archiving(request.POST)
    home = reverse("web:settings", args=[agent])
    responses.declare(request, home)
    data = form.checked()
    archived = data["archived"] == "yes"

    def ask(error: errors.ConfirmationRequired) -> HttpResponse:
        # Archiving affects everything that the agent has, so there is no difference to show.
        confirmation = dataclasses.replace(responses.build_confirmation(request, error), effect=None)
        return responses.ask_confirmation(request, confirmation)

    responses.declare(
        request,
        home,
        title=f"{'Archive' if archived else 'Restore'} {titles.label('agent', agent)}?",
        verb="Archive agent" if archived else "Restore agent",
        fields=("archived", "reason", "next"),
        ask=ask,
    )
    result = agents.archive(responses.write(request, data), agent, archived)
    word = "archived" if archived else "restored"
    notice = notices.Notice(
        text=f"{titles.label('agent', agent)} is {word}{' already' if result.is_nothing else ''}.",
        detail="" if archived else "It works as before.",
        undo=result.entry,
    )
    return responses.respond(request, notice)


class _Page(pieces.Page):
    """The settings of an agent, with a ``form`` that was rejected (``seen`` is the entry that its page showed)."""

    def __init__(
        self,
        request: http.Request,
        agent: str,
        form: Settings | None = None,
        seen: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        settings, user = queries.settings(agent), request.user
        self.stored = stored = settings.summary.agent
        if form is None:
            initial = Settings.initial_of(stored)
            form, seen = Settings(initial, name=agent, initial=initial), settings.entry
        form.set_choices(settings.surface.resolution.context.catalog)
        self.agent = agents_page.PageHeader(settings.summary)
        self.subagents = tuple(subagents.compare(settings.surface.resolution))
        self.form = form
        self.seen = json.dumps(seen, ensure_ascii=False)
        self.operators = roles.allowed_users(agent)
        self.users = sorted((*self.operators.own, *self.operators.others))
        self.may_change = user.has_perm(rights.FLIP) and not stored.archived
        self.may_flip = rights.may_flip(user, agent)


def _render(
    request: http.Request,
    agent: str,
    form: Settings | None = None,
    seen: Mapping[str, Any] = MappingProxyType({}),
    status: int = 200,
) -> HttpResponse:
    return responses.show(request, _Page(request, agent, form, seen), "settings/settings.html", status=status)
