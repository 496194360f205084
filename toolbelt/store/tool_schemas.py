"""The check of tools' schemas when a tool is saved, for rows that nothing else checks: those of fixtures.

A tool with an invalid schema is unavailable instead of preventing its agents' surfaces, and a system check reports it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.db import Error
from django.db.models import signals

from toolbelt import models
from toolbelt.core import catalog, schema

_CHECKED = frozenset({"kind", "input_schema", "output_schema"})


def problem_of(row: models.Tool) -> str:
    """Return why no model can be given the tool; empty if there is nothing."""
    output_schema = "" if row.output_schema is None else schema.canonical(row.output_schema)
    kind: Any = row.kind
    return catalog.schema_problem(kind, schema.canonical(row.input_schema), output_schema)


def is_checked(fields: Collection[str] | None) -> bool:
    """Return whether writing these fields (None: all) may change the problem."""
    return fields is None or not _CHECKED.isdisjoint(fields)


def connect() -> None:
    """Check the schemas whenever a tool is saved, and report the problems as a system check."""
    signals.pre_save.connect(_before_saving, sender=models.Tool, dispatch_uid="toolbelt.schemas")
    signals.post_save.connect(_after_saving, sender=models.Tool, dispatch_uid="toolbelt.schemas")
    checks.register(check, checks.Tags.database)


def check(
    app_configs: Sequence[AppConfig] | None, databases: Iterable[str] | None = None, **options: Any
) -> list[checks.CheckMessage]:
    """Return a warning for each tool that is unavailable because its schema is invalid."""
    return [message for alias in databases or () for message in _messages(alias)]


def _messages(alias: str) -> list[checks.CheckMessage]:
    rows = models.Tool.objects.using(alias).exclude(schema_problem="").order_by("key")
    try:
        # `migrate` runs the checks first: the table or the column may be missing.
        problems = list(rows.values_list("key", "schema_problem"))
    except Error:
        return []
    return [
        checks.Warning(
            f"The tool {key!r} is unavailable: {problem}.",
            hint="Correct the schema in the fixture and load it again, or import a belt with the tool.",
            id="toolbelt.W011",
        )
        for key, problem in problems
    ]


def _before_saving(instance: models.Tool, update_fields: Collection[str] | None, **options: Any) -> None:
    if is_checked(update_fields):
        instance.schema_problem = problem_of(instance)


def _after_saving(
    instance: models.Tool, using: str, update_fields: Collection[str] | None, **options: Any
) -> None:
    if update_fields is not None and is_checked(update_fields) and "schema_problem" not in update_fields:
        rows = models.Tool.objects.using(using).filter(pk=instance.pk)
        rows.update(schema_problem=instance.schema_problem)
