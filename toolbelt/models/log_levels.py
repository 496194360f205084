"""The log level of each MCP client, for all processes of the server (``logging/setLevel``)."""

from __future__ import annotations

from django.db import models


class LogLevel(models.Model):
    """The level that one client set for its session."""

    key = models.CharField(
        primary_key=True, max_length=64, help_text="A digest of the client's token, agent and session."
    )
    level = models.CharField(max_length=9, help_text="The lowest level that the client receives.")
    at = models.DateTimeField(db_index=True, help_text="When the client set the level.")

    def __str__(self) -> str:
        return f"{self.key} {self.level}"
