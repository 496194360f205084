"""The words of requests that a tool served, where the search learns from use.

A row names its tool and agent by text, not by foreign key, so that writing one needs no look-up. It is not
configuration, so it does not move the revision.
"""

from __future__ import annotations

from django.db import models

from toolbelt.models import fields


class LearnedWords(models.Model):
    """The words of one agent's requests that one tool served. Requests themselves are not stored."""

    tool = models.CharField(max_length=200, help_text="The key of the tool.")
    agent = models.CharField(max_length=64, help_text="The key of the agent.")
    words = fields.JSONText(
        shape="object", help_text="Stemmed words, with how often each counted at that time."
    )
    at = models.DateTimeField(help_text="When words were last added. Counts decay from then on.")

    class Meta:
        verbose_name_plural = "learned words"
        indexes = [models.Index(fields=["at"], name="learned_words_oldest")]
        constraints = [
            models.UniqueConstraint(fields=["tool", "agent"], name="learned_words_once"),
        ]

    def __str__(self) -> str:
        return f"words of {self.tool} by {self.agent}"
