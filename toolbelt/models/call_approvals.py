"""Requests to people to approve one call each, and what became of them. Neither configuration nor a secret's place.

A row names its agent and tool by text, not by foreign key, so that it outlives them.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from toolbelt.core import call_approvals
from toolbelt.models import fields, naming


class Approval(models.Model):
    """A request to approve one call. Of those that are open, one at most is for the same call."""

    key = models.CharField(max_length=12, unique=True, help_text="What people and models call it.")
    binding = models.CharField(
        max_length=64,
        help_text="A digest of what it is for: the caller, the tool's version, the arguments and the rules that ask.",
    )
    digest = models.CharField(
        max_length=64, help_text="A digest of the call alone, whatever rules ask about it now."
    )
    agent = models.CharField(max_length=64, help_text="The key of the agent that called.")
    session = models.CharField(max_length=200, blank=True, help_text="The session of the call, if any.")
    subagent = models.CharField(max_length=7, blank=True, help_text="The kind of subagent. Empty: none.")
    asked_by = models.CharField(
        max_length=150,
        blank=True,
        help_text="The operator whose token made the call, who may not decide. Empty: an agent's token.",
    )
    tool = models.CharField(max_length=200, help_text="The key of the tool.")
    rules = fields.JSONText(shape="array", help_text="The gate rules that ask.")
    needed = models.PositiveSmallIntegerField(default=1, help_text="How many people have to approve it.")
    wanted = fields.JSONText(
        shape="array",
        default=list,
        blank=True,
        help_text="How many people of which groups have to approve it, by rule. Empty groups: all who may decide.",
    )
    preview = fields.JSONText(shape="object", help_text="The arguments, without secrets.")
    edited = fields.JSONText(
        shape="object", default=dict, blank=True, help_text="The arguments that an operator replaced."
    )
    edited_by = models.CharField(max_length=150, blank=True, help_text="Who replaced them.")
    edited_digest = models.CharField(
        max_length=64,
        blank=True,
        help_text="A digest of the arguments with which it ran, if they were edited.",
    )
    state = models.CharField(
        max_length=9,
        choices=[(word, word) for word in call_approvals.STATES],
        default="pending",
        help_text="What became of it. An open one that is past its time has expired.",
    )
    asked = models.DateTimeField(help_text="When the call was made first.")
    expires = models.DateTimeField(help_text="Until when it can be decided, or the decision holds.")
    decided = models.DateTimeField(null=True, blank=True, help_text="When it was approved or rejected.")
    approved_by = fields.JSONText(shape="array", default=list, blank=True, help_text="Who approved it.")
    rejected_by = models.CharField(max_length=150, blank=True, help_text="Who rejected it.")
    note = models.TextField(blank=True, help_text="What the model reads if it is rejected.")
    spent = models.DateTimeField(null=True, blank=True, help_text="When its call began to run.")
    call_id = models.CharField(
        max_length=32,
        blank=True,
        help_text="The key of the admission that spent it. Empty: Toolbelt ran the call, or it has not run.",
    )
    outcome = models.CharField(
        max_length=20, blank=True, help_text="How its call ended. Empty once it is spent: it may have run."
    )
    again = models.CharField(
        max_length=64,
        blank=True,
        help_text="A digest of what it is for in any session: as the binding, without the session.",
    )
    always = models.DateTimeField(
        null=True,
        blank=True,
        help_text="Until when the same call is approved automatically, in any session. Empty: never.",
    )
    always_of = models.CharField(
        max_length=12, blank=True, help_text="The approval for a while by which this one was approved."
    )
    version = models.PositiveIntegerField(default=0, help_text="How often something was done to it.")

    class Meta:
        ordering = ["-id"]
        default_permissions = ("view",)
        permissions = [("decide_approval", "Can decide about calls that wait for approval")]
        indexes = [
            models.Index(fields=["state", "agent"], name="approval_of_agent"),
            models.Index(fields=["digest"], name="approval_of_call"),
            models.Index(fields=["asked"], name="approval_oldest"),
            models.Index(fields=["again"], condition=Q(always__isnull=False), name="approval_for_a_while"),
        ]
        constraints = [
            naming.one_of("approval", "state", call_approvals.STATES),
            models.UniqueConstraint(
                fields=["binding"], condition=Q(state__in=call_approvals.OPEN), name="approval_once_open"
            ),
        ]

    def __str__(self) -> str:
        return self.key
