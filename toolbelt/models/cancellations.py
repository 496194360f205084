"""Which calls were taken back where they do not run? For the processes that run them.

A row is nobody's configuration and no history: it says something to another process of the same server, and goes.
"""

from __future__ import annotations

from django.db import models


class Cancellation(models.Model):
    """One call that its client wants no more."""

    key = models.CharField(
        primary_key=True, max_length=64, help_text="A digest of whose call it is, and which."
    )
    at = models.DateTimeField(db_index=True, help_text="When the client said so.")

    def __str__(self) -> str:
        return self.key
