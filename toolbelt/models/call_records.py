"""Records of calls: who made them, and their outcome. One row for each call, pruned by age.

A record names its agent and tool by text, not by foreign key, so that it outlives them. Records are not configuration,
so they do not move the revision.
"""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from toolbelt.core import outcomes
from toolbelt.models import fields, naming


class CallRecord(models.Model):
    """One call, or one refused call."""

    at = models.DateTimeField(default=timezone.now, help_text="When the call arrived.")
    agent = models.CharField(max_length=64, help_text="The key of the agent that called.")
    session = models.CharField(max_length=200, blank=True, help_text="The session of the call, if any.")
    request_id = models.CharField(max_length=200, blank=True, help_text="The request id of the call, if any.")
    tool = models.CharField(max_length=200, help_text="The name that was called. The tool need not exist.")
    plugin = models.CharField(
        max_length=64, blank=True, help_text="The plugin that provides the tool, if known."
    )
    outcome = models.CharField(
        max_length=20,
        choices=[(word, word) for word in outcomes.STORED],
        help_text="ok, the code of a refusal, cancelled if the client disconnected first, or admitted while the agent's"
        " own program runs it.",
    )
    call_id = models.CharField(
        max_length=32,
        null=True,
        blank=True,
        unique=True,
        help_text="The key of an admitted call, for its report. Empty: Toolbelt ran the call, or refused it.",
    )
    report_by = models.DateTimeField(
        null=True,
        blank=True,
        help_text="The time from which an admitted call without a report counts as unreported.",
    )
    reason = models.CharField(
        max_length=32,
        blank=True,
        help_text="The reason code of the tool's state, whatever the agent reads.",
    )
    revision = models.PositiveBigIntegerField(
        null=True, blank=True, help_text="The revision of the configuration that decided on it."
    )
    # The facts that a call was decided by are null in records that were written before they were recorded, or without a
    # decision: so they can be told from empty ones, and adding the columns rewrote no row.
    state = models.CharField(  # noqa: DJ001
        max_length=24,
        null=True,
        blank=True,
        help_text="The digest of what the session had loaded for this request. Empty: nothing.",
    )
    subagent = models.CharField(  # noqa: DJ001
        max_length=7, null=True, blank=True, help_text="The kind of subagent that called. Empty: none."
    )
    person = models.CharField(  # noqa: DJ001
        max_length=150,
        null=True,
        blank=True,
        help_text="The person for whom a client called that signed in. Empty: the caller had a token.",
    )
    dispatched = models.BooleanField(
        null=True, blank=True, help_text="Whether the call came through call_tool."
    )
    definition = models.CharField(  # noqa: DJ001
        max_length=24,
        null=True,
        blank=True,
        help_text="The beginning of the hash of the tool's version. Empty: there is no such tool.",
    )
    arguments_digest = models.CharField(  # noqa: DJ001
        max_length=32,
        null=True,
        blank=True,
        help_text="A keyed digest of the arguments that the tool gets. Empty: they are too large, or not JSON.",
    )
    rule = models.CharField(  # noqa: DJ001
        max_length=64,
        null=True,
        blank=True,
        help_text="The gate rule that decided about the call: it denied it, asked about it, or waived that."
        " Empty: none.",
    )
    would = models.TextField(  # noqa: DJ001
        null=True,
        blank=True,
        help_text="The observed gate rules that would have decided, separated by spaces. Empty: none.",
    )
    trial = models.PositiveBigIntegerField(
        null=True,
        blank=True,
        help_text="The number of the roll-out in whose new arm the session was. Empty: none.",
    )
    detail = models.CharField(  # noqa: DJ001
        max_length=200,
        null=True,
        blank=True,
        help_text="What a call of load_tools or unload_tools named, and the status of the answer. Empty: another tool.",
    )
    chosen_fields = fields.JSONText(
        shape="object",
        null=True,
        blank=True,
        help_text="The arguments that an operator chose to record, by their paths. Empty: none are chosen, or they are"
        " too large.",
    )
    error = models.CharField(
        max_length=500, blank=True, help_text="The message to the model, or the tool's error."
    )
    duration_ms = models.PositiveIntegerField(
        help_text="The duration of the call, in milliseconds. 0 until it is reported."
    )
    arguments_bytes = models.PositiveBigIntegerField(
        default=0, help_text="The size of the arguments as JSON, in bytes."
    )
    result_bytes = models.PositiveBigIntegerField(
        default=0, help_text="The size of the result as JSON, in bytes."
    )
    arguments = fields.JSONText(
        null=True,
        blank=True,
        help_text="The arguments without secrets, if TOOLBELT_RECORD_ARGUMENTS is on.",
    )

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index("agent", models.F("id").desc(), name="call_of_agent"),
            models.Index("tool", models.F("id").desc(), name="call_of_tool"),
            models.Index(fields=["at"], name="call_oldest"),
        ]
        constraints = [naming.one_of("call_record", "outcome", outcomes.STORED)]

    def __str__(self) -> str:
        return f"{self.agent} {self.tool} {self.outcome_now}"

    @property
    def outcome_now(self) -> str:
        """The outcome as it counts now: an admitted call without a report is unreported after its deadline."""
        is_overdue = (
            self.outcome == outcomes.ADMITTED
            and self.report_by is not None
            and self.report_by < timezone.now()
        )
        return outcomes.UNREPORTED if is_overdue else self.outcome


class SessionState(models.Model):
    """What sessions had loaded when calls were made in them: one row for all calls in the same state."""

    digest = models.CharField(
        max_length=24, primary_key=True, help_text="The digest of the document, which records of calls name."
    )
    document = fields.JSONText(
        shape="object",
        help_text="The loadout that the session chose, whether its agent chose it, and what was loaded, the oldest"
        " load first.",
    )
    used = models.DateField(help_text="The last day, in UTC, on which a call was recorded with it.")

    class Meta:
        indexes = [models.Index(fields=["used"], name="session_state_oldest")]

    def __str__(self) -> str:
        return self.digest
