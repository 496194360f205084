"""The result of the last self-check, which a server makes each night."""

from __future__ import annotations

from django.db import models

from toolbelt.models.fields import JSONText


class SelfCheck(models.Model):
    """How many recorded verdicts a replay reproduced. There is at most one row."""

    at = models.DateTimeField(help_text="When it was made.")
    days = models.PositiveIntegerField(help_text="The calls of how many days were looked at.")
    revisions = models.PositiveIntegerField(help_text="How many revisions were rebuilt.")
    calls = models.PositiveIntegerField(help_text="How many calls were decided again.")
    reproduced = models.PositiveIntegerField(help_text="How many for the recorded reason.")
    uncertain = models.PositiveIntegerField(help_text="How many could not be decided again.")
    mismatches = JSONText(shape="array", help_text="The ids of calls that were decided otherwise.")

    def __str__(self) -> str:
        return f"{self.reproduced} of {self.calls}"
