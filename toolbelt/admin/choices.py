"""The options of fields that refer to something by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from django import forms

from toolbelt import models
from toolbelt.core import catalog, loadouts


def categories() -> list[str]:
    """Return the names of the built-in categories, then of those that operators added."""
    return [*catalog.CATEGORIES, *models.Category.objects.values_list("name", flat=True)]


def all_loadouts() -> list[str]:
    """Return the names of the built-in loadouts that are not replaced, then of the stored ones."""
    stored = list(models.Loadout.objects.values_list("name", flat=True))
    replaced = {name.casefold() for name in stored}
    return [*(name for name in loadouts.BUILT_IN if name.casefold() not in replaced), *stored]


# The fields that refer to something by name, with the names that exist.
NAMES: Mapping[str, Callable[[], list[str]]] = {
    "category": categories,
    "loadout": all_loadouts,
    "parent": all_loadouts,
}


def select(names: Iterable[str], *others: str | None) -> forms.Select:
    """Return a choice of names. An unknown name that is stored or was submitted (``others``) stays an option."""
    choices = dict.fromkeys(["", *names, *(other or "" for other in others)])
    return forms.Select(choices=[(name, name or "---------") for name in choices])
