"""Subscriptions of MCP clients to resources, for the processes that hold their streams.

As with :mod:`toolbelt.models.cancellations`, a row is neither configuration nor history, and expires.
"""

from __future__ import annotations

from django.db import models


class ResourceSubscription(models.Model):
    """One client that is notified when its agent's policy changes, or a resource of an upstream server."""

    key = models.CharField(
        primary_key=True,
        max_length=64,
        help_text="A digest of the token and agent, followed by a digest of the client's sessions.",
    )
    client = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_index=True,
        help_text="The key of the client. Empty: the subscription is to the policy.",
    )
    uri = models.TextField(blank=True, default="", help_text="The URI of an upstream server's resource.")
    at = models.DateTimeField(db_index=True, help_text="When the client last subscribed.")

    def __str__(self) -> str:
        return self.key
