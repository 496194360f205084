"""The last answer of each upstream server to a request for its tools, one row for each server.

It is stored for operators, because the process that asked is seldom the one that shows it. It is not configuration, so
it does not move the revision and is in no belt.
"""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from toolbelt.models import catalog, fields, naming


class Listing(naming.Named):
    """The last answer of one server, and the problems with it."""

    named_by = ("plugin__name",)

    plugin = models.OneToOneField(
        catalog.Plugin, on_delete=models.CASCADE, related_name="listing", help_text="The server."
    )
    asked = models.DateTimeField(
        default=timezone.now, help_text="When the server was last asked for its tools."
    )
    answered = models.DateTimeField(null=True, blank=True, help_text="When the server last responded.")
    protocol = models.CharField(blank=True, help_text="The negotiated protocol revision.")
    server = models.CharField(blank=True, help_text="The server's own name and version.")
    tools = models.PositiveIntegerField(default=0, help_text="The number of listed tools.")
    problems = fields.JSONText(
        default=list,
        blank=True,
        shape="array",
        help_text="The parts of the response that could not be used: a list of {path, message}.",
    )
    error = models.TextField(blank=True, help_text="Why the last attempt failed.")
    sign_in_needed = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Whether it failed because no one is signed in at the server.",
    )
    # Processes of the previous version insert rows without this column during a rolling upgrade.
    seen_by = models.CharField(
        blank=True,
        default="",
        db_default="",
        help_text="The process that asked: its kind, its process id and its host.",
    )
    instructions = models.TextField(
        blank=True,
        default="",
        db_default="",
        help_text="The instructions that the server states. They reach no model.",
    )
    instructions_seen = models.TextField(
        blank=True,
        default="",
        db_default="",
        help_text="The instructions that an operator has seen, to show what differs.",
    )
    stderr = models.TextField(blank=True, help_text="The last lines of its process's error output.")

    class Meta:
        ordering = ["plugin"]
