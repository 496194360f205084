"""Which process holds the connection to an upstream server for an agent or session.

A row is neither configuration nor history: it tells the other processes of the installation whom to ask, and is deleted
when the connection ends.
"""

from __future__ import annotations

from django.db import models


class UpstreamConnection(models.Model):
    """One connection. Other processes on the same host reach its process through the socket at ``address``."""

    key = models.CharField(
        primary_key=True, max_length=64, help_text="A digest of the server and the holder."
    )
    claim = models.CharField(
        max_length=32, unique=True, help_text="A new id each time that a process takes over the connection."
    )
    plugin = models.CharField(max_length=200, help_text="The server.")
    holder = models.CharField(
        max_length=300, db_index=True, help_text="The agent or session that the connection is for."
    )
    host = models.CharField(max_length=200, help_text="The host of the process that holds the connection.")
    address = models.CharField(max_length=200, help_text="The address at which that process listens.")
    expires = models.DateTimeField(
        db_index=True, help_text="When the claim expires, unless the process renews it."
    )

    def __str__(self) -> str:
        return f"{self.plugin} for {self.holder}"
