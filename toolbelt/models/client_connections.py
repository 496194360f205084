"""Connections of MCP clients that a person allowed, and how far each client came on the way to one.

The authorization server's own tables (clients, codes, tokens) are those of django-oauth-toolkit. Neither they nor these
are configuration, so they do not move the revision.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

from django.conf import settings
from django.db import models
from django.utils import timezone

from toolbelt.models import agents, naming

# The steps of a sign-in that are recorded, in order. The first call is that of a token.
Step = Literal["discovery", "registration", "login", "consent", "token"]
STEPS: Final[tuple[Step, ...]] = get_args(Step)


class ClientConnection(models.Model):
    """One client that acts as an agent for a person. A revoked one keeps its row, so that it stays known."""

    agent = models.ForeignKey(
        agents.Agent,
        on_delete=models.CASCADE,
        related_name="client_connections",
        help_text="The agent whose tools the client calls.",
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="client_connections",
        help_text="The person who allowed the client.",
    )
    application = models.ForeignKey(
        "oauth2_provider.Application",
        on_delete=models.SET_NULL,
        null=True,
        related_name="client_connections",
        help_text="The client's registration. Empty: it was removed.",
    )
    client = models.CharField(max_length=255, help_text="The name that the client gave itself.")
    redirect_host = models.CharField(max_length=255, help_text="Where the person was sent back to.")
    created = models.DateTimeField(default=timezone.now, help_text="When the person allowed the client.")
    last_used = models.DateTimeField(
        null=True, blank=True, help_text="When the client last sent a request, accurate to a few minutes."
    )
    revoked = models.DateTimeField(
        null=True, blank=True, help_text="When the connection was revoked. Empty: it was not revoked."
    )

    class Meta:
        ordering = ["-created", "-id"]
        verbose_name = "connection of an MCP client"
        verbose_name_plural = "connections of MCP clients"
        constraints = [
            models.UniqueConstraint(
                fields=["agent", "user", "application"],
                condition=models.Q(revoked__isnull=True),
                name="client_connection_once",
                violation_error_message="This client is connected already.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.client} as {self.agent} for {self.user}"


class SignInAttempt(models.Model):
    """How far one client came. It is what was observed, and nothing is decided by it."""

    agent = models.ForeignKey(
        agents.Agent,
        on_delete=models.CASCADE,
        null=True,
        related_name="sign_in_attempts",
        help_text="The agent. Empty: the client has not named one yet.",
    )
    application = models.ForeignKey(
        "oauth2_provider.Application",
        on_delete=models.CASCADE,
        null=True,
        related_name="sign_in_attempts",
        help_text="The client's registration. Empty: it has not registered.",
    )
    address = models.CharField(max_length=45, help_text="The network address of the client, or of its user.")
    client = models.CharField(max_length=255, help_text="What the client calls itself.")
    step = models.CharField(
        max_length=12, choices=[(step, step) for step in STEPS], help_text="The last step that succeeded."
    )
    request = models.CharField(max_length=100, blank=True, help_text="The request that failed, if one did.")
    error = models.CharField(max_length=64, blank=True, help_text="The error code of that request.")
    detail = models.CharField(max_length=300, blank=True, help_text="What the error said.")
    at = models.DateTimeField(default=timezone.now, db_index=True, help_text="When the last step was tried.")

    class Meta:
        ordering = ["-at", "-id"]
        default_permissions = ()
        verbose_name = "sign-in attempt"
        constraints = [naming.one_of("sign_in_attempt", "step", STEPS)]

    def __str__(self) -> str:
        return f"{self.client}: {self.step}"
