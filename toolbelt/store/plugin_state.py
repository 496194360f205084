"""What does a plugin remember? Values by namespace and key, each written whole."""

from __future__ import annotations

from typing import Any

from toolbelt import models


def get(namespace: str, key: str, default: Any = None) -> Any:
    """Give the value, ``default`` where there is none."""
    row = models.PluginState.objects.filter(namespace=namespace, key=key).first()
    return default if row is None else row.value


def put(namespace: str, key: str, value: Any) -> None:
    """Keep the value, whatever was there."""
    models.PluginState.objects.update_or_create(
        namespace=namespace, key=key, defaults={"value": value}, create_defaults={"value": value}
    )


def delete(namespace: str, key: str) -> bool:
    """Forget the value; say whether there was one."""
    return models.PluginState.objects.filter(namespace=namespace, key=key).delete()[0] > 0


def pairs(namespace: str, prefix: str = "") -> dict[str, Any]:
    """Give the values whose key begins so, in key order."""
    rows = models.PluginState.objects.filter(namespace=namespace, key__startswith=prefix)
    # SQLite takes a for A when it compares beginnings, and each database has an order of its own.
    found = {key: value for key, value in rows.values_list("key", "value") if key.startswith(prefix)}
    return dict(sorted(found.items()))
