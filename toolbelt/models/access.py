"""Who may come in, and how far? Tokens for the network, each of one agent or of one operator; operators of one agent.

A token's text is shown once, when it is issued; what is kept finds it (the prefix) and recognises it (the digest),
and cannot be turned back into it. Neither is configuration, so they move no revision.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from toolbelt.models import agents, naming


class ApiToken(models.Model):
    """One token. Revoking it keeps the row, so that it can be said whose it was."""

    class Scope(models.TextChoices):
        AGENT = "", "What its agent may"
        READ = "read", "Read"
        WRITE = "write", "Read and write"

    prefix = models.CharField(
        max_length=11, unique=True, help_text="How the token begins: enough to tell it from others."
    )
    digest = models.CharField(max_length=64, editable=False, help_text="SHA-256 of the whole token.")
    name = models.CharField(max_length=100, blank=True, help_text="What it is for, in a few words.")
    agent = models.ForeignKey(
        agents.Agent,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="api_tokens",
        help_text="The agent that asks and calls with it. Empty: it is an operator's.",
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="api_tokens",
        help_text="The operator who acts with it. Empty: it is an agent's.",
    )
    scope = models.CharField(
        max_length=5, choices=Scope, blank=True, help_text="What an operator may do with it."
    )
    created = models.DateTimeField(auto_now_add=True)
    expires = models.DateTimeField(
        null=True, blank=True, help_text="When it ends. Empty: when it is revoked."
    )
    revoked = models.DateTimeField(null=True, blank=True, help_text="When it was revoked. Empty: it was not.")
    last_used = models.DateTimeField(
        null=True, blank=True, help_text="When it was last used, to within some minutes."
    )

    class Meta:
        ordering = ["-created", "prefix"]
        verbose_name = "API token"
        constraints = [
            naming.not_blank("api_token", "prefix"),
            models.CheckConstraint(
                condition=Q(agent__isnull=False, user__isnull=True, scope="")
                | Q(agent__isnull=True, user__isnull=False, scope__in=("read", "write")),
                name="api_token_of_one",
                violation_error_message="A token is of one agent, or of one operator with a scope.",
            ),
        ]

    def __str__(self) -> str:
        return self.prefix


class AgentOperator(models.Model):
    """A user who may flip this agent's switches, though they may not flip every agent's."""

    agent = models.ForeignKey(agents.Agent, on_delete=models.CASCADE, related_name="operators")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="operates")

    class Meta:
        ordering = ["agent", "user"]
        verbose_name = "operator of an agent"
        verbose_name_plural = "operators of agents"
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["agent", "user"],
                name="agent_operator_once",
                violation_error_message="They operate this agent already.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} of {self.agent}"
