"""The belt that was applied last, to notice what has changed since."""

from __future__ import annotations

from django.db import models

from toolbelt.models.fields import JSONText


class AppliedBelt(models.Model):
    """The belt that ``belt apply`` applied last. There is at most one row."""

    name = models.CharField(max_length=200, help_text="The name of its file.")
    digest = models.CharField(max_length=64, help_text="The digest of its document.")
    at = models.DateTimeField(help_text="When it was applied.")
    actor = models.CharField(max_length=150, help_text="Who applied it.")
    entry = models.BigIntegerField(help_text="The id of the newest audit entry after it was applied.")
    entries = JSONText(
        shape="object", help_text="The digest of what was decided of each of its entries, by kind and name."
    )
    prunes = models.BooleanField(help_text="Whether agents that it does not have were archived.")

    def __str__(self) -> str:
        return self.name
