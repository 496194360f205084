"""The tokens that agents were sent: a row for each agent and day.

A row names its agent by text, not by foreign key, so that writing one needs no look-up. It is not configuration, so it
does not move the revision.
"""

from __future__ import annotations

from django.db import models


class ContextUse(models.Model):
    """The tokens that an agent's models were sent on one day (UTC), and those that were saved."""

    agent = models.CharField(max_length=64, help_text="The key of the agent.")
    day = models.DateField(help_text="The day, in UTC.")
    answers = models.PositiveBigIntegerField(help_text="How many surfaces and tool lists were answered.")
    sent = models.PositiveBigIntegerField(
        help_text="The tokens of these answers, and of those of meta-tools."
    )
    allowed = models.PositiveBigIntegerField(
        help_text="The tokens of the same surfaces and tool lists, if each had contained every allowed tool."
    )

    class Meta:
        verbose_name_plural = "context use"
        indexes = [models.Index(fields=["day"], name="context_use_oldest")]
        constraints = [models.UniqueConstraint(fields=["agent", "day"], name="context_use_once")]

    def __str__(self) -> str:
        return f"{self.agent} {self.day}"
