"""What the models of conversations were told: observed, for operators. No answer depends on it.

A row names its agent by text, not by foreign key, so that writing one needs no look-up. It is not configuration, so it
does not move the revision.
"""

from __future__ import annotations

from django.db import models

from toolbelt.models import fields

WAYS = ("append", "words")


class Told(models.Model):
    """What a conversation was told at one time: its start, or what was appended since its ``parent``."""

    agent = models.CharField(max_length=64, help_text="The key of the agent.")
    session = models.CharField(
        max_length=200, blank=True, help_text="The session of the conversation. Empty: none was named."
    )
    chain = models.CharField(max_length=24, help_text="The digest of everything that it has received.")
    root = models.CharField(
        max_length=24, blank=True, help_text="The digest of its start. Empty: it was not recorded."
    )
    parent = models.CharField(max_length=24, blank=True, help_text="The digest before this. Empty: it began.")
    line = models.CharField(max_length=64, help_text="The format, and the line of models.")
    way = models.CharField(
        max_length=6,
        choices=[(way, way) for way in WAYS],
        help_text="Whether added tools are appended with their definitions, or only named in words.",
    )
    entry = models.PositiveIntegerField(help_text="How often something was appended, up to this.")
    changes = fields.JSONText(shape="object", default=dict, help_text="The names that were said, by kind.")
    tokens = models.PositiveIntegerField(
        default=0, help_text="How many tokens were sent, roughly: of the start, or of what was appended."
    )
    at = models.DateTimeField(help_text="When it was first said.")
    seen = models.DateTimeField(help_text="When the conversation was last at this point, roughly.")

    class Meta:
        verbose_name_plural = "told"
        indexes = [
            models.Index(fields=["agent", "-seen"], name="told_newest_of_agent"),
            models.Index(fields=["seen"], name="told_oldest"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["agent", "session", "chain"], name="told_once"),
        ]

    def __str__(self) -> str:
        return f"{self.agent} {self.session} {self.chain}"


class Start(models.Model):
    """What the conversations of an agent began with that have the same start: stored once for all of them."""

    agent = models.CharField(max_length=64, help_text="The key of the agent.")
    root = models.CharField(max_length=24, help_text="The digest of the start.")
    names = fields.JSONText(
        shape="array", help_text="Its tools, and the toolkits whose texts it has: tool fetch, toolkit kb."
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["agent", "root"], name="start_once")]

    def __str__(self) -> str:
        return f"{self.agent} {self.root}"
