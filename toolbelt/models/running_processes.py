"""The processes that run plugins, and what each can run.

A row is neither configuration nor history: it is a message to other processes of the same installation, and is deleted
when it is old.
"""

from __future__ import annotations

from django.db import models

from toolbelt.models import fields


class RunningProcess(models.Model):
    """One server process."""

    id = models.CharField(primary_key=True, max_length=32, help_text="A random id of the process.")
    at = models.DateTimeField(db_index=True, help_text="When the process last said what it can run.")
    tools = fields.JSONText(
        default=list, blank=True, shape="array", help_text="The tools of plugins in code that it can run."
    )

    def __str__(self) -> str:
        return str(self.id)
