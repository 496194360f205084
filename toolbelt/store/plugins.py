"""The errors of failed plugins: the only column of a plugin that is not part of an entry."""

from __future__ import annotations

from collections.abc import Mapping

from toolbelt import models


def set_error(name: str, error: str) -> None:
    """Store the error of a plugin that has failed; it is cleared when the plugin is ready again."""
    models.Plugin.objects.filter(name=name).exclude(error=error).update(error=error)


def errors() -> Mapping[str, str]:
    """Return the error of each plugin that has one."""
    return dict(models.Plugin.objects.exclude(error="").values_list("name", "error"))
