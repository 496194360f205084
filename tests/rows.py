"""Insert a row into every table, for tests of migrations and backups."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable
from typing import Any

from django.apps.registry import Apps
from django.db import models as orm

from toolbelt.models.fields import JSONText

# Triggers write the revisions, and `migrate` writes content types and permissions.
_WRITTEN_BY_OTHERS = frozenset(
    {"toolbelt.revision", "toolbelt.agentrevision", "contenttypes.contenttype", "auth.permission"}
)
_AT = dt.datetime(2031, 2, 3, 4, 5, 6, 789, tzinfo=dt.UTC)
# Values that a constraint or check requires, or that a migration reads. Texts may contain the tag.
_VALUES: dict[str, dict[str, Any]] = {
    "toolbelt.agent": {"archived": False, "loadout": "name_{tag}", "session_loadouts": ["name_{tag}"]},
    "toolbelt.apitoken": {"agent": None, "connection": None, "access_token": None},
    "toolbelt.signinattempt": {"step": "token"},
    "toolbelt.auditentry": {
        "reason": "as the installed code has it",
        "subject_kind": "plugin",
        "subject_key": "name_{tag}",
    },
    "toolbelt.loadout": {
        "parent": "minimal",
        **{key: ["name_{tag}"] for key in ("categories", "disabled", "discoverable", "plugins")},
    },
}


def insert(apps: Apps, labels: Iterable[str], tag: str) -> list[orm.Model]:
    """Insert a row into every table of these apps, with a value in every column, and return the rows.

    Names contain the tag, so that rows with other tags can be inserted too. ``apps`` may be historical.
    """
    rows: dict[type[orm.Model], orm.Model] = {}
    existing = [
        model
        for model in apps.get_models(include_auto_created=True)
        if model._meta.app_label in labels and model._meta.label_lower not in _WRITTEN_BY_OTHERS
    ]

    begun = set()

    def add(model: type[orm.Model]) -> None:
        # Two tables of the authorization server refer to each other.
        if model in begun:
            return
        begun.add(model)
        for field in model._meta.concrete_fields:
            if (
                field.remote_field
                and field.remote_field.model in existing
                and field.remote_field.model is not model
            ):
                add(field.remote_field.model)
        rows[model] = model._base_manager.create(**_values(model, rows, tag))

    for model in existing:
        add(model)
    return [*rows.values()]


def _values(model: type[orm.Model], rows: dict[type[orm.Model], orm.Model], tag: str) -> dict[str, Any]:
    fixed = _VALUES.get(model._meta.label_lower, {})
    values: dict[str, Any] = {}
    for field in model._meta.concrete_fields:
        if isinstance(field, orm.AutoField):
            continue
        value = fixed[field.name] if field.name in fixed else _value(field, rows, tag)
        if isinstance(value, list):
            value = [text.format(tag=tag) for text in value]
        values[field.name] = value.format(tag=tag) if isinstance(value, str) else value
    return values


def _value(field: orm.Field[Any, Any], rows: dict[type[orm.Model], orm.Model], tag: str) -> Any:
    if field.remote_field:
        model = field.remote_field.model
        return rows.get(model) or model._base_manager.first()
    if field.choices:
        return [value for value, _ in field.flatchoices if value][-1]
    match field:
        case JSONText(shape="array"):
            return [f"{field.name} {tag}"]
        case JSONText():
            return {f"{field.name} {tag}": [1, None, "ü"]}
        case orm.JSONField():
            return [f"{field.name} {tag}"]
        case orm.BooleanField():
            return True
        case orm.DateTimeField():
            return _AT + dt.timedelta(minutes=int(tag) if field.unique and tag.isdecimal() else 0)
        case orm.DateField():
            return _AT.date()
        case orm.UUIDField():
            return uuid.uuid5(uuid.NAMESPACE_OID, tag)
        case orm.GenericIPAddressField():
            return "192.0.2.1"
        case orm.IntegerField():
            return 7
        case _:
            text = f"{field.name}_{tag}"
            return text[-field.max_length :] if field.max_length else text
