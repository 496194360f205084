"""Drafts: changes that are kept instead of made, and their trials. Only what is rolled out is configuration.

A draft names what it changes by text, not by foreign key, so that it outlives it.
"""

from __future__ import annotations

import uuid

from django.db import models

from toolbelt.models import agents, fields, naming

TRIAL_MODES = ("observe", "schedule", "rollout")
TRIAL_STATES = ("running", "ended", "stopped", "applied", "failed", "reverted")


class Draft(models.Model):
    """A change that is kept: what the audit log would record of it."""

    key = models.UUIDField(
        primary_key=True, default=uuid.uuid4, help_text="Also the batch of its entries in the audit log."
    )
    title = models.CharField(max_length=200, help_text="What it changes, in a few words.")
    author = models.CharField(max_length=150, help_text="Who saved it.")
    reason = models.TextField(blank=True, help_text="The reason that its author gave.")
    at = models.DateTimeField(help_text="When it was saved.")
    ends = models.DateTimeField(help_text="When it is discarded, unless it was applied.")
    revision = models.PositiveBigIntegerField(help_text="The revision of the configuration that it changes.")
    changes = fields.JSONText(shape="array", help_text="Its changes, as the audit log would record them.")
    shown = fields.JSONText(
        shape="object",
        default=dict,
        blank=True,
        help_text="The versions of the tools that it approves or rejects, as its author saw them.",
    )
    digest = models.CharField(max_length=64, help_text="The digest of the changes.")
    applied = models.DateTimeField(null=True, blank=True, help_text="When it was applied. Empty: it was not.")
    applied_by = models.CharField(max_length=150, blank=True, help_text="Who applied it.")

    class Meta:
        ordering = ["-at"]
        default_permissions = ("view",)
        indexes = [models.Index(fields=["ends"], name="draft_oldest")]

    def __str__(self) -> str:
        return self.title


class Trial(models.Model):
    """A draft that is observed for a while, applied at a time, or rolled out to some sessions first."""

    draft = models.ForeignKey(Draft, on_delete=models.CASCADE, related_name="trials")
    mode = models.CharField(
        max_length=8, choices=[(word, word) for word in TRIAL_MODES], help_text="What is done with the draft."
    )
    author = models.CharField(max_length=150, help_text="Who began it, and as whom it is applied.")
    user = models.BigIntegerField(
        null=True,
        help_text="The primary key of that user, unless it is observed: another one of the name is not meant.",
    )
    token = models.CharField(
        max_length=11, blank=True, help_text="The prefix of the token with which it was begun, if any."
    )
    via = models.CharField(
        max_length=7, default="screen", help_text="The interface through which it was begun."
    )
    confirmed = fields.JSONText(
        shape="array",
        default=list,
        blank=True,
        help_text="What had to be confirmed, and was, when it was scheduled or rolled out.",
    )
    starts = models.DateTimeField(help_text="From when calls are counted, or when the draft is applied.")
    ends = models.DateTimeField(help_text="When it ends, or until when the draft may be applied.")
    percent = models.PositiveSmallIntegerField(
        null=True, help_text="The share of sessions that it is rolled out to, in percent."
    )
    agents = fields.JSONText(
        shape="array", default=list, blank=True, help_text="The keys of the agents that it is rolled out to."
    )
    state = models.CharField(
        max_length=8,
        choices=[(word, word) for word in TRIAL_STATES],
        default="running",
        help_text="What became of it.",
    )
    note = models.TextField(blank=True, help_text="Why it stopped, failed, or was reverted.")
    mark = models.BigIntegerField(default=0, help_text="The id of the newest call that was counted.")
    calls = models.PositiveBigIntegerField(default=0, help_text="How many calls it could concern.")
    unproven = fields.JSONText(
        shape="object",
        default=dict,
        blank=True,
        help_text="How many of them could not be replayed, by reason.",
    )
    unknown = fields.JSONText(
        shape="object",
        default=dict,
        blank=True,
        help_text="The arguments that are not recorded and decide, by tool.",
    )
    arms = fields.JSONText(
        shape="object",
        default=dict,
        blank=True,
        help_text="Of a roll-out: the sessions of both arms, those with a refused or failed call, and the calls that"
        " only its changes refuse.",
    )

    class Meta:
        ordering = ["-id"]
        default_permissions = ("view",)
        constraints = [
            naming.one_of("trial", "mode", TRIAL_MODES),
            naming.one_of("trial", "state", TRIAL_STATES),
            models.UniqueConstraint(
                fields=["draft"], condition=models.Q(state="running"), name="trial_once_running"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.mode} {self.draft_id}"


class Rollout(models.Model):
    """What a roll-out that runs changes for an agent. Configuration: it decides what the agent's sessions have."""

    agent = models.OneToOneField(
        agents.Agent, on_delete=models.CASCADE, primary_key=True, related_name="rollout"
    )
    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="rollouts")
    percent = models.PositiveSmallIntegerField(help_text="The share of the agent's sessions, in percent.")
    changes = fields.JSONText(
        shape="array", help_text="Its changes of the agent, as the audit log would record them."
    )

    class Meta:
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.agent_id} {self.trial_id}"


class TrialDay(models.Model):
    """The calls of a day that would have gone otherwise: of one tool by one agent, for one reason."""

    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="days")
    day = models.DateField(help_text="The day, in UTC.")
    agent = models.CharField(max_length=64, help_text="The key of the agent that called.")
    tool = models.CharField(max_length=200, help_text="The name that was called.")
    before = models.CharField(max_length=8, help_text="What became of the calls.")
    after = models.CharField(max_length=8, help_text="What would have become of them.")
    words = models.TextField(blank=True, help_text="Why.")
    calls = models.PositiveBigIntegerField(default=0, help_text="How many calls.")
    ran = models.PositiveBigIntegerField(default=0, help_text="How many of them ran.")
    sessions = fields.JSONText(
        shape="array", default=list, blank=True, help_text="Digests of the sessions of these calls."
    )
    examples = fields.JSONText(
        shape="array", default=list, blank=True, help_text="The ids of some of these calls."
    )
    last = models.DateTimeField(help_text="When the last of them was made.")

    class Meta:
        ordering = ["day", "id"]
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.day} {self.agent} {self.tool}"
