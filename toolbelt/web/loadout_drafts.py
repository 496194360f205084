"""What does the editor of a loadout send?"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from toolbelt.core import catalog
from toolbelt.web import drafts


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """One loadout as it was typed."""

    name: str = ""
    description: str = ""
    parent: str = ""
    plugins: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    discoverable: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()

    def entry(self) -> dict[str, Any]:
        """Give every key that the editor shows; None stands for one that has its default."""
        return {
            "description": self.description or None,
            "parent": self.parent or None,
            "plugins": list(self.plugins) or None,
            "categories": list(self.categories) or None,
            "discoverable": list(self.discoverable) or None,
            "disabled": list(self.disabled) or None,
        }


def of(loadout: catalog.Loadout) -> Draft:
    """Begin with a loadout that there is."""
    return Draft(
        name=loadout.name,
        description=drafts.text(loadout.description),
        parent=loadout.parent,
        plugins=loadout.plugins,
        categories=loadout.categories,
        discoverable=loadout.discoverable,
        disabled=loadout.disabled,
    )


def read(posted: QueryDict, name: str, shown: Draft) -> Draft:
    """Read a form; ``shown`` is what the page began with, whose order and spelling stay where nothing else is said."""

    def listed(field: str, stored: tuple[str, ...]) -> tuple[str, ...]:
        typed = [*posted.getlist(field), *drafts.names(posted.get(f"{field}_more", ""))]
        return tuple(drafts.ticked(typed, stored))

    return Draft(
        name=name or posted.get("name", "").strip(),
        description=drafts.text(posted.get("description", "")),
        parent=posted.get("parent", "").strip(),
        plugins=listed("plugins", shown.plugins),
        categories=listed("categories", shown.categories),
        discoverable=listed("discoverable", shown.discoverable),
        disabled=listed("disabled", shown.disabled),
    )


def renamed(draft: Draft, name: str) -> Draft:
    """Begin another loadout with what this one holds."""
    return dataclasses.replace(draft, name=name)
