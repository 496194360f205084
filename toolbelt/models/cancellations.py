"""Requests to cancel calls that run in another process.

A row is neither configuration nor history: it is a message to another process of the same server, and is deleted
afterwards.
"""

from __future__ import annotations

from django.db import models


class Cancellation(models.Model):
    """One call that its client cancelled."""

    key = models.CharField(
        primary_key=True, max_length=64, help_text="A digest that identifies the client and the call."
    )
    at = models.DateTimeField(db_index=True, help_text="When the client requested the cancellation.")

    def __str__(self) -> str:
        return self.key
