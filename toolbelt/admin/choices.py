"""What is there to choose from, where an entry names something by its name?"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from django import forms

from toolbelt import models
from toolbelt.core import catalog, loadouts


def categories() -> list[str]:
    """Name the categories: the thirteen, and the operators' own."""
    return [*catalog.CATEGORIES, *models.Category.objects.values_list("name", flat=True)]


def all_loadouts() -> list[str]:
    """Name the loadouts: those that are built in, and those that are stored."""
    stored = list(models.Loadout.objects.values_list("name", flat=True))
    replaced = {name.casefold() for name in stored}
    return [*(name for name in loadouts.BUILT_IN if name.casefold() not in replaced), *stored]


def offer(form: forms.BaseForm, field: str, names: Callable[[], Iterable[str]]) -> None:
    """Let a text be chosen from names; one that is none of them, as stored or as sent, is kept to be seen."""
    if field not in form.fields:
        return
    known = dict.fromkeys(["", *names()])
    for other in (form.initial.get(field), form.data.get(field)):
        known.setdefault(other or "", None)
    form.fields[field].widget = forms.Select(choices=[(name, name or "---------") for name in known])
