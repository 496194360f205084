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
    # Processes of the previous version insert rows without these columns during a rolling upgrade.
    name = models.CharField(
        blank=True,
        default="",
        db_default="",
        help_text="Its process id and its host, for messages; empty once it has ended.",
    )
    address = models.CharField(
        blank=True,
        default="",
        db_default="",
        max_length=300,
        help_text="The address that it is reached at on this machine, if `toolbelt serve` started it.",
    )
    problems = fields.JSONText(
        null=True,
        blank=True,
        shape="array",
        help_text="What keeps plugins and servers from running in it: a list of {code, subject, what}.",
    )

    def __str__(self) -> str:
        return str(self.id)
