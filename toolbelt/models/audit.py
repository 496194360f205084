"""What was changed, by whom, through which shell, and why? A log to which Toolbelt only ever adds.

Its entries name what they are about by words, not by keys of rows: they outlive what they tell of. Rows refuse to be
changed or deleted here. The database refuses UPDATE, whoever asks for it, and nothing else: raw SQL can delete
entries, for whoever keeps them only so long, and for tests that empty their database.
"""

from __future__ import annotations

from typing import Any, Never

from django.db import models
from django.utils import timezone

from toolbelt.core import errors
from toolbelt.models import fields, naming

VIA = ("screen", "admin", "api", "command", "import", "mcp", "system")


def refuse() -> Never:
    """Say that what was recorded stays."""
    raise errors.Refused(
        "The audit log is only ever added to: record another entry that takes this one back."
    )


class Entries(models.QuerySet["AuditEntry"]):
    """Entries, to be read; several can be added together, and not be changed or deleted."""

    def update(self, **changes: Any) -> Never:
        """Refuse."""
        refuse()

    def bulk_update(self, *args: Any, **options: Any) -> Never:
        """Refuse."""
        refuse()

    def delete(self) -> Never:
        """Refuse."""
        refuse()


class AuditEntry(models.Model):
    """One change: one flip, one edit, one import of one thing."""

    at = models.DateTimeField(default=timezone.now, help_text="When it was done.")
    actor = models.CharField(max_length=150, help_text="The user name of who did it.")
    via = models.CharField(
        max_length=7, choices=[(word, word) for word in VIA], help_text="The shell it came through."
    )
    action = models.CharField(max_length=64, help_text="What was done, such as switch.set.")
    subject_kind = models.CharField(max_length=16, help_text="What kind of thing was changed, such as agent.")
    subject_key = models.CharField(max_length=200, help_text="Which one.")
    key = models.CharField(
        max_length=200, blank=True, help_text="The toolkit or tool under it, where the change was about one."
    )
    before = fields.JSONText(null=True, blank=True, help_text="What it was; nothing: unset, or not there.")
    after = fields.JSONText(null=True, blank=True, help_text="What it became; nothing: unset, or gone.")
    reason = models.TextField(blank=True, help_text="Why, in the words of who did it.")
    batch = models.UUIDField(null=True, blank=True, help_text="Shared by the entries of one bulk change.")
    undoes = models.ForeignKey(
        "self",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="undone_by",
        help_text="The entry that this one took back.",
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
        ]
        constraints = [naming.one_of("audit_entry", "via", VIA)]

    def __str__(self) -> str:
        return f"{self.action} {self.subject_key} {self.key}".rstrip()

    def save(self, *args: Any, **options: Any) -> None:
        """Add the entry; refuse to write it a second time."""
        if not self._state.adding:
            refuse()
        super().save(*args, **{**options, "force_insert": True})

    def delete(self, *args: Any, **options: Any) -> Never:
        """Refuse."""
        refuse()
