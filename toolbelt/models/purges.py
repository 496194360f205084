"""Purges: what must leave every conversation that began before.

A row names a tool or a toolkit by text, not by foreign key, so that it outlives them. It is neither configuration nor
history, but answers depend on it: a write moves the revision.
"""

from __future__ import annotations

from django.db import models

from toolbelt.models import naming

KINDS = ("tool", "toolkit")


class Purge(models.Model):
    """The last purge of a tool or of the texts of a toolkit."""

    kind = models.CharField(
        max_length=7, choices=[(kind, kind) for kind in KINDS], help_text="What is purged."
    )
    name = models.CharField(max_length=200, help_text="The key of the tool or toolkit.")
    at = models.DateTimeField(
        unique=True, help_text="Conversations that began before, and have read it, begin again."
    )

    class Meta:
        constraints = [
            naming.one_of("purge", "kind", KINDS),
            models.UniqueConstraint(fields=["kind", "name"], name="purge_once"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"
