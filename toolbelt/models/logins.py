"""Logins of people: the browsers that they are logged in with, and links with which they choose a password.

They are not configuration, so they do not move the revision and are in no belt.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Login(models.Model):
    """A browser that a person is logged in with. The session itself is Django's."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="logins", help_text="The person."
    )
    session_key = models.CharField(max_length=40, unique=True, help_text="Django's session.")
    browser = models.CharField(max_length=300, blank=True, help_text="What the browser calls itself.")
    address = models.CharField(max_length=45, blank=True, help_text="The address that it last used.")
    since = models.DateTimeField(help_text="When it was first seen.")
    last_used = models.DateTimeField(help_text="When it was last seen, within five minutes.")

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"login of {self.user}"


class PasswordLink(models.Model):
    """A link with which a person chooses a password, once. A new one replaces it."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="password_link",
        help_text="The person.",
    )
    digest = models.CharField(max_length=64, unique=True, help_text="The SHA-256 of the secret in the link.")
    is_invitation = models.BooleanField(help_text="Whether the person has had no password yet.")
    made_by = models.CharField(max_length=150, help_text="Who made it.")
    made = models.DateTimeField(help_text="When it was made.")
    expires = models.DateTimeField(help_text="Until when it can be used.")

    class Meta:
        default_permissions = ()
        verbose_name = "password link"

    def __str__(self) -> str:
        return f"password link of {self.user}"
