"""What is read of plugins without the catalog: their errors, which are no part of an entry, and which are in code."""

from __future__ import annotations

from collections.abc import Mapping

from toolbelt import models


def set_error(name: str, error: str) -> None:
    """Store the error of a plugin that has failed; it is cleared when the plugin is ready again."""
    models.Plugin.objects.filter(name=name).exclude(error=error).update(error=error)


def names_in_code() -> frozenset[str]:
    """Return the names of the plugins whose tools are in code."""
    return frozenset(models.Plugin.objects.filter(in_code=True).values_list("name", flat=True))


def errors() -> Mapping[str, str]:
    """Return the error of each plugin that has one."""
    return dict(models.Plugin.objects.exclude(error="").values_list("name", "error"))
