"""API tokens, each of one agent, one operator or one client's connection, and operators of single agents.

A token's text is shown once, when it is issued; the stored prefix finds it and the stored digest recognizes it, and
neither reveals it. They are not configuration, so they do not move the revision.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from toolbelt.models import agents, client_connections, naming


class ApiToken(models.Model):
    """One token. A revoked token keeps its row, so that its owner is known."""

    class Scope(models.TextChoices):
        AGENT = "", "What its agent may"
        READ = "read", "Read"
        WRITE = "write", "Read and write"

    prefix = models.CharField(
        max_length=11, unique=True, help_text="The beginning of the token, which identifies it."
    )
    digest = models.CharField(max_length=64, editable=False, help_text="The SHA-256 hash of the whole token.")
    name = models.CharField(max_length=100, blank=True, help_text="A name that says what the token is for.")
    agent = models.ForeignKey(
        agents.Agent,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="api_tokens",
        help_text="The agent that uses the token. Empty: the token belongs to an operator.",
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="api_tokens",
        help_text="The operator who uses the token. Empty: the token belongs to an agent.",
    )
    connection = models.ForeignKey(
        client_connections.ClientConnection,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="api_tokens",
        help_text="The MCP client that signed in with OAuth and uses the token. Empty: an operator issued it.",
    )
    access_token = models.OneToOneField(
        "oauth2_provider.AccessToken",
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="api_token",
        help_text="The same token for the authorization server, which removes both.",
    )
    scope = models.CharField(
        max_length=5, choices=Scope, blank=True, help_text="What an operator may do with the token."
    )
    created = models.DateTimeField(auto_now_add=True)
    issued_by = models.CharField(
        max_length=150, blank=True, help_text="Who issued the token, as in the audit log. Empty: not known."
    )
    expires = models.DateTimeField(null=True, blank=True, help_text="When the token expires. Empty: never.")
    revoked = models.DateTimeField(
        null=True, blank=True, help_text="When the token was revoked. Empty: it was not revoked."
    )
    last_used = models.DateTimeField(
        null=True, blank=True, help_text="When the token was last used, accurate to a few minutes."
    )

    class Meta:
        ordering = ["-created", "prefix"]
        verbose_name = "API token"
        constraints = [
            naming.not_blank("api_token", "prefix"),
            models.CheckConstraint(
                condition=Q(agent__isnull=False, user__isnull=True, scope="", connection__isnull=True)
                | Q(
                    agent__isnull=True,
                    user__isnull=False,
                    scope__in=("read", "write"),
                    connection__isnull=True,
                )
                | Q(
                    agent__isnull=False,
                    user__isnull=False,
                    scope="",
                    connection__isnull=False,
                    access_token__isnull=False,
                ),
                name="api_token_of_one",
                violation_error_message="A token is of one agent, of one operator with a scope, or of one connection.",
            ),
        ]

    def __str__(self) -> str:
        return self.prefix


class AgentOperator(models.Model):
    """A user who may flip this agent's switches without permission for every agent."""

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
