"""State of plugins: values by namespace and key, each written as a whole."""

from __future__ import annotations

from typing import Any

from toolbelt import models


def get(namespace: str, key: str, default: Any = None) -> Any:
    """Return the value, or ``default``."""
    row = models.PluginState.objects.filter(namespace=namespace, key=key).first()
    return default if row is None else row.value


def put(namespace: str, key: str, value: Any) -> None:
    """Store the value, replacing an earlier one."""
    models.PluginState.objects.update_or_create(
        namespace=namespace, key=key, defaults={"value": value}, create_defaults={"value": value}
    )


def delete(namespace: str, key: str) -> bool:
    """Delete the value; return whether there was one."""
    return models.PluginState.objects.filter(namespace=namespace, key=key).delete()[0] > 0


def pairs(namespace: str, prefix: str = "") -> dict[str, Any]:
    """Return the values whose key has this prefix, in key order."""
    rows = models.PluginState.objects.filter(namespace=namespace, key__startswith=prefix)
    # SQLite ignores case when it compares prefixes, and each database sorts differently.
    matching = {key: value for key, value in rows.values_list("key", "value") if key.startswith(prefix)}
    return dict(sorted(matching.items()))
