"""The lists of tools with which sessions of MCP clients began, where those never change.

As with :mod:`toolbelt.models.cancellations`, a row is neither configuration nor history, and expires.
"""

from __future__ import annotations

from django.db import models


class FirstList(models.Model):
    """A list that all sessions share which began with it. It is found by the digest in a session's id."""

    key = models.CharField(
        primary_key=True, max_length=64, help_text="A digest of the agent and of the list's content."
    )
    tools = models.TextField(
        help_text="The name, definition's digest and JSON of each tool, as a JSON array."
    )
    at = models.DateTimeField(db_index=True, help_text="When the last session began with it.")

    def __str__(self) -> str:
        return self.key
