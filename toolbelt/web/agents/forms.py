"""The filter of the list of agents, and the form of a new one."""

from __future__ import annotations

from django import forms

from toolbelt.control.reports import queries
from toolbelt.core import catalog, loadouts
from toolbelt.web.kit import fields, saved_views
from toolbelt.web.kit import forms as kit


class Agents(forms.Form):
    """What narrows and sorts the list of agents, and where in it to begin."""

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
