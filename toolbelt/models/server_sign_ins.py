"""Sign-ins with OAuth at upstream servers, and those that wait for their person to come back.

What they keep secret is encrypted (:mod:`toolbelt.store.encryption`). They are not configuration, so they do not move
the revision and are in no belt.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from toolbelt.models import catalog


class ServerSignIn(models.Model):
    """The sign-in at one server, of an operator for all agents or of one person for their own clients."""

    plugin = models.ForeignKey(
        catalog.Plugin, on_delete=models.CASCADE, related_name="sign_ins", help_text="The server."
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        related_name="server_sign_ins",
        help_text="The person whose calls use it. Empty: those of all agents, or none but lists of tools.",
    )
    signed_in_by = models.CharField(max_length=150, help_text="Who signed in.")
    url = models.TextField(help_text="The address that the tokens are for. They are sent to no other.")
    issuer = models.TextField(help_text="The authorization server.")
    scopes = models.TextField(blank=True, help_text="The scopes that it granted, separated by spaces.")
    demanded = models.TextField(
        blank=True,
        default="",
        db_default="",
        help_text="The scopes that the server demanded since and that it lacks, separated by spaces.",
    )
    grant = models.TextField(help_text="The registration and the tokens, encrypted.")
    created = models.DateTimeField(default=timezone.now, help_text="When the person signed in.")
    renewed = models.DateTimeField(default=timezone.now, help_text="When the access token was issued.")
    expires = models.DateTimeField(null=True, help_text="When the access token expires. Empty: not known.")
    error = models.TextField(blank=True, help_text="Why the access token could not be renewed.")
    ended = models.BooleanField(
        default=False, help_text="Whether the authorization server refuses permanently to renew it."
    )
    refusals = models.PositiveIntegerField(
        default=0,
        db_default=0,
        help_text="How often in a row the server refused an access token before it expired, which was then renewed.",
    )
    busy_until = models.DateTimeField(
        null=True, help_text="Until when no process begins to renew it: one does, or one has failed to."
    )

    class Meta:
        default_permissions = ()
        verbose_name = "sign-in at a server"
        verbose_name_plural = "sign-ins at servers"
        constraints = [
            models.UniqueConstraint(
                fields=["plugin", "user"],
                name="server_sign_in_once_for_each_person",
                violation_error_message="This person is signed in at the server already.",
            ),
            models.UniqueConstraint(
                fields=["plugin"],
                condition=models.Q(user__isnull=True),
                name="server_sign_in_once_for_all",
                violation_error_message="An operator is signed in at the server already.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.plugin}: {self.signed_in_by}"


class BegunSignIn(models.Model):
    """A person who was sent to an authorization server, and has not come back. Each is used once."""

    state = models.CharField(
        primary_key=True, max_length=64, help_text="A digest of the state with which the person comes back."
    )
    session = models.CharField(max_length=64, help_text="A digest of the session of the person's login.")
    plugin = models.ForeignKey(catalog.Plugin, on_delete=models.CASCADE, help_text="The server.")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, help_text="The person who signs in."
    )
    is_own = models.BooleanField(
        default=False, db_default=False, help_text="Whether it is for the calls of this person alone."
    )
    url = models.TextField(help_text="The address of the server when the sign-in began.")
    begun = models.TextField(help_text="The registration and the verifier of PKCE, encrypted.")
    expires = models.DateTimeField(db_index=True, help_text="Until when the person may come back.")

    class Meta:
        default_permissions = ()
        verbose_name = "begun sign-in"

    def __str__(self) -> str:
        return f"{self.plugin}: {self.user}"
