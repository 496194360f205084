"""The forms of an agent's settings."""

from __future__ import annotations

from typing import Any

from django import forms

from toolbelt import conf
from toolbelt.core import agents, catalog, loadouts
from toolbelt.web.kit import entry_forms, fields
from toolbelt.web.kit import forms as kit

_LIMIT = {"min": 0, "step": 1, "inputmode": "numeric", "placeholder": "no limit"}


class Settings(entry_forms.EntryForm):
    """The settings of one agent."""

    entry_kind = "agent"
    plain = ("title", "role", "description", "model", "kind", "loadout", "mcp_loading", "protected")

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
            ("dispatch", "With search_tools and call_tool; the tool list stays the same"),
            ("list", "With load_tools; the tool list grows (needs a client that keeps sessions)"),
        ],
    )
    protected = forms.BooleanField(required=False)
    subagent_kinds = fields.Ticks(label="Kinds of subagents that its token may request")

    @classmethod
    def initial_of(cls, value: agents.Agent) -> dict[str, Any]:
        """Return the fields of the form for an agent."""
        budget = value.budget or agents.Budget()
        return {
            **super().initial_of(value),
            "subagent_kinds": list(value.subagent_kinds),
            "max_tools": budget.max_tools,
            "max_tokens": budget.max_tokens,
            "on_exceed": budget.on_exceed,
        }

    def offer(self, stored: catalog.Catalog) -> None:
        """Set the kinds and loadouts to choose from; a chosen loadout stays, even if it was removed."""
        kinds = ((kind, _kind(kind)) for kind in agents.KINDS)
        self.choose("kind", [("", "None"), *kinds])
        chosen = self.given["loadout"]
        names = dict.fromkeys((*loadouts.all_names(stored), *([chosen] if chosen else [])))
        self.choose("loadout", [("", "From its kind, if any"), *((name, name) for name in names)])

    def entry(self) -> dict[str, Any]:
        """Return every key that the form shows; None stands for the default."""
        given = self.given
        budget = {name: given[name] for name in ("max_tools", "max_tokens") if given[name] is not None}
        if given["on_exceed"] not in ("", agents.ON_EXCEED[0]):
            budget["on_exceed"] = given["on_exceed"]
        kinds = entry_forms.merge(given["subagent_kinds"], self.initial.get("subagent_kinds", ()))
        entry = {**super().entry(), "budget": budget or None, "subagent_kinds": kinds or None}
        if entry["mcp_loading"] == agents.MCP_LOADINGS[0]:
            entry["mcp_loading"] = None
        return entry

    def field_at(self, place: str) -> str | None:
        """Return the field of a place; the limits of the budget have one each."""
        return super().field_at(place.removeprefix("budget."))

    @property
    def labels(self) -> dict[str, str]:
        """Return the chosen labels, for readers who may not change them."""
        return {
            name: dict(field.widget.choices).get(self.given[name], self.given[name])
            for name, field in self.fields.items()
            if isinstance(field.widget, forms.Select)
        }


def _kind(kind: str) -> str:
    loadout = conf.KIND_LOADOUTS.get(kind)
    return f"{kind} → {loadout}" if loadout else kind


class Operators(kit.Change):
    """Which users shall operate an agent, and which of them the page showed (``was``)."""

    user = fields.Names(required=False)
    was = fields.Names(required=False)


class Archiving(kit.Change):
    """Whether an agent shall be archived."""

    archived = forms.ChoiceField(choices=[("yes", "yes"), ("no", "no")])
