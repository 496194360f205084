"""The options of fields that refer to something by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable

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


def offer(form: forms.BaseForm, field: str, names: Callable[[], Iterable[str]]) -> None:
    """Turn a text field into a choice of names. An unknown name that is stored or was submitted stays an option."""
    if field not in form.fields:
        return
    choices = dict.fromkeys(["", *names()])
    for other in (form.initial.get(field), form.data.get(field)):
        choices.setdefault(other or "", None)
    form.fields[field].widget = forms.Select(choices=[(name, name or "---------") for name in choices])
