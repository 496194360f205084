"""Which MCP clients asked to hear of a resource? For the processes that hold their streams.

As with :mod:`toolbelt.models.cancellations`, a row is nobody's configuration and no history: it goes by itself.
"""

from __future__ import annotations

from django.db import models


class ResourceSubscription(models.Model):
    """One client that is told when the policy of its agent changes."""

    key = models.CharField(
        primary_key=True,
        max_length=64,
        help_text="A digest of the token and agent, then one of the client's sessions.",
    )
    at = models.DateTimeField(db_index=True, help_text="When the client last subscribed.")

    def __str__(self) -> str:
        return self.key
