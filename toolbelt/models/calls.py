"""Which calls were made, by whom, and how did each end? One row a call, pruned by age.

A record names its agent and tool by words, not by keys of rows: it outlives them. It is no configuration, so it moves
no revision.
"""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from toolbelt.models import fields, naming

OUTCOMES = (
    "ok",
    "unknown-tool",
    "tool-not-active",
    "tool-denied",
    "tool-unavailable",
    "invalid-arguments",
    "timed-out",
    "tool-failed",
    "cancelled",
)


class CallRecord(models.Model):
    """One call, or one refusal of a call."""

    at = models.DateTimeField(default=timezone.now, help_text="When it came in.")
    agent = models.CharField(max_length=64, help_text="The key of the agent that called.")
    session = models.CharField(max_length=200, blank=True, help_text="The session that it named, if any.")
    request_id = models.CharField(max_length=200, blank=True, help_text="The request that it named, if any.")
    tool = models.CharField(max_length=200, help_text="The name that was called; it need not exist.")
    plugin = models.CharField(
        max_length=64, blank=True, help_text="The plugin that provides the tool, if known."
    )
    outcome = models.CharField(
        max_length=20,
        choices=[(word, word) for word in OUTCOMES],
        help_text="ok, the code of the refusal, or cancelled: the caller went away first.",
    )
    error = models.CharField(
        max_length=500, blank=True, help_text="What the model was told, or what the tool broke on."
    )
    duration_ms = models.PositiveIntegerField(help_text="How long it took, in milliseconds.")
    arguments_bytes = models.PositiveBigIntegerField(
        default=0, help_text="The size of the arguments as JSON."
    )
    result_bytes = models.PositiveBigIntegerField(default=0, help_text="The size of the result as JSON.")
    arguments = fields.JSONText(
        null=True,
        blank=True,
        help_text="The arguments without secrets, where TOOLBELT_RECORD_ARGUMENTS asks for them.",
    )

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index("agent", models.F("id").desc(), name="call_of_agent"),
            models.Index("tool", models.F("id").desc(), name="call_of_tool"),
            models.Index(fields=["at"], name="call_oldest"),
        ]
        constraints = [naming.one_of("call_record", "outcome", OUTCOMES)]

    def __str__(self) -> str:
        return f"{self.agent} {self.tool} {self.outcome}"
