"""The form of a loadout."""

from __future__ import annotations

from typing import Any

from django import forms

from toolbelt.core import catalog, keys, loadouts
from toolbelt.core.rules import reasons
from toolbelt.web.kit import entry_forms, fields


class Loadout(entry_forms.EntryForm):
    """The form of a loadout."""

    entry_kind = "loadout"
    plain_fields = ("description", "parent")
    list_fields = ("plugins", "categories", "discoverable", "disabled", "denied_risks")
    fields_by_key = {"plugins": "plugins_more"}

    name = forms.CharField(
        required=False,
        widget=forms.TextInput(attrs={"required": True}),
        help_text="Its name for agents and other loadouts: letters, digits, _, . and -.",
    )
    parent = forms.CharField(
        required=False,
        label="Extends",
        widget=forms.Select,
        help_text="The new loadout includes everything that this one includes.",
    )
    description = fields.Text(rows=2)
    categories = fields.Checkboxes()
    plugins = fields.Checkboxes(help_text="No plugin is installed.")
    plugins_more = fields.NameList(
        label="Other plugins", help_text="Names of plugins that are not installed here, separated by spaces."
    )
    discoverable = fields.NameList(
        rows=4,
        label="On request",
        help_text="One plugin or tool per line, or a prefix with *, such as docker*. A single * matches everything.",
    )
    disabled = fields.NameList(
        rows=4,
        help_text="One plugin or tool per line. Turns it off for every agent with this loadout or one that extends it, "
        "whatever else includes it.",
    )
    denied_risks = fields.Checkboxes(label="Risks that are off")

    def set_choices(self, stored: catalog.Catalog) -> None:
        """Set the loadouts, categories and plugins to choose from; chosen ones stay options."""
        plugins, categories = self.values["plugins"], self.values["categories"]
        self.choose("parent", self._parents(stored))
        self.choose(
            "denied_risks", [(risk, reasons.RISKS[risk].capitalize()) for risk in catalog.DENIED_RISKS]
        )
        self.choose("plugins", entry_forms.choices(stored.plugins, plugins))
        every = (*catalog.CATEGORIES, *stored.categories, *categories)
        self.choose("categories", entry_forms.choices(every, categories))
        installed = {keys.fold(name) for name in stored.plugins}
        others = (name for name in plugins if keys.fold(name) not in installed)
        data: Any = self.data
        self.data = data = data.copy()
        data["plugins_more"] = " ".join([*self.values["plugins_more"], *others])

    def entry(self) -> dict[str, Any]:
        """Return every key of the form with its value; None means the default."""
        plugins = [*self.values["plugins"], *self.values["plugins_more"]]
        merged = entry_forms.merge(plugins, self.initial.get("plugins", ()))
        return {**super().entry(), "plugins": merged or None}

    def _parents(self, stored: catalog.Catalog) -> list[tuple[str, str]]:
        """Return the loadouts that it may extend: not itself or one that extends it, unless that is chosen."""
        chosen = self.values["parent"]
        names = [
            name
            for name in loadouts.all_names(stored)
            if keys.fold(name) == keys.fold(chosen) or self.is_new or not self._extends_this(stored, name)
        ]
        return [("", "None"), *entry_forms.choices([*names, *([chosen] if chosen else [])], [chosen])]

    def _extends_this(self, stored: catalog.Catalog, name: str) -> bool:
        links = loadouts.chain(stored.loadouts, name)
        return keys.fold(self.entry_name) in {keys.fold(name), *(keys.fold(link.name) for link in links)}
