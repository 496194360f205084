"""The audit log: what was changed, by whom, through which interface, and why. Entries are only ever added.

Entries name their subject by text, not by foreign key, so that they outlive it. The models refuse to change or delete
them. The database refuses every UPDATE, but not a DELETE by raw SQL, for retention and for tests that empty their
database.
"""

from __future__ import annotations

from typing import Any, Never

from django.db import models
from django.utils import timezone

from toolbelt.core import errors, facts
from toolbelt.models import fields, naming

VIA = ("screen", "admin", "api", "command", "import", "mcp", "system")


def refuse() -> Never:
    """Raise Refused: entries cannot be changed or deleted."""
    raise errors.Refused("The audit log is only ever added to: record a new entry that undoes this one.")


class Entries(models.QuerySet["AuditEntry"]):
    """Entries, which can be read, and added in bulk, but not changed or deleted."""

    def update(self, **changes: Any) -> Never:
        """Raise Refused."""
        refuse()

    def bulk_update(self, *args: Any, **options: Any) -> Never:
        """Raise Refused."""
        refuse()

    def delete(self) -> Never:
        """Raise Refused."""
        refuse()


class AuditEntry(models.Model):
    """One change: one flip, one edit, one import of one entry."""

    at = models.DateTimeField(default=timezone.now, help_text="When the change was made.")
    actor = models.CharField(
        max_length=150,
        help_text="The user name of the operator, or the name of the plugin that was observed.",
    )
    actor_kind = models.CharField(
        max_length=7,
        choices=[(word, word) for word in facts.ACTOR_KINDS],
        default="person",
        help_text="What the actor is. A server, a program and the clock only observe.",
    )
    asked_by = models.CharField(
        max_length=150, blank=True, help_text="Who asked for what was observed. Empty: no one did."
    )
    via = models.CharField(
        max_length=7,
        choices=[(word, word) for word in VIA],
        help_text="The interface through which the change was made.",
    )
    action = models.CharField(max_length=64, help_text="The action, such as switch.set.")
    subject_kind = models.CharField(
        max_length=16, help_text="The kind of object that was changed, such as agent."
    )
    subject_key = models.CharField(max_length=200, help_text="The key of the object that was changed.")
    key = models.CharField(
        max_length=200, blank=True, help_text="The toolkit or tool of the agent, if the change was about one."
    )
    before = fields.JSONText(
        null=True,
        blank=True,
        help_text="The value before the change. Empty: not set, or the object did not exist.",
    )
    after = fields.JSONText(
        null=True,
        blank=True,
        help_text="The value after the change. Empty: not set, or the object was removed.",
    )
    reason = models.TextField(blank=True, help_text="The reason that the operator gave.")
    batch = models.UUIDField(null=True, blank=True, help_text="Shared by the entries of one bulk change.")
    undoes = models.ForeignKey(
        "self",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="undone_by",
        help_text="The entry that this one undid.",
    )
    revision = models.BigIntegerField(
        null=True,
        blank=True,
        help_text="The number of the last write of configuration, with this change. Empty: it was not recorded yet.",
    )
    unlogged = fields.JSONText(
        null=True,
        blank=True,
        help_text="What was written without the log before this change: the revision since which, whether the catalog"
        " was written, and the agents that were. Empty: nothing.",
    )

    objects = Entries.as_manager()

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "audit entries"
        base_manager_name = "objects"
        indexes = [
            models.Index("subject_kind", "subject_key", models.F("id").desc(), name="audit_of_subject"),
            models.Index(fields=["-at"], name="audit_newest"),
            models.Index(fields=["actor"], name="audit_of_actor"),
            models.Index(fields=["batch"], name="audit_of_batch"),
            models.Index(fields=["key"], name="audit_of_key"),
        ]
        constraints = [
            naming.one_of("audit_entry", "via", VIA),
            naming.one_of("audit_entry", "actor_kind", facts.ACTOR_KINDS),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.subject_key} {self.key}".rstrip()

    def save(self, *args: Any, **options: Any) -> None:
        """Add the entry; raise Refused for an existing one."""
        if not self._state.adding:
            refuse()
        super().save(*args, **{**options, "force_insert": True})

    def delete(self, *args: Any, **options: Any) -> Never:
        """Raise Refused."""
        refuse()
