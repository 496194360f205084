"""Why did a plugin fail? The one column of a plugin that no entry holds, as it is found and not configured."""

from __future__ import annotations

from collections.abc import Mapping

from toolbelt import models


def tell_error(name: str, error: str) -> None:
    """Keep the error of a plugin that has failed; the error goes when it is ready again."""
    models.Plugin.objects.filter(name=name).exclude(error=error).update(error=error)


def errors() -> Mapping[str, str]:
    """Give the error of each plugin that has one."""
    return dict(models.Plugin.objects.exclude(error="").values_list("name", "error"))
