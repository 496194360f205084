"""What did an upstream server say when it was last asked for its tools? One row a server, overwritten each time.

It is kept for operators, as the process that asked is seldom the one that shows it. It is no configuration, so it
moves no revision and stands in no belt.
"""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from toolbelt.models import catalog, fields, naming


class Listing(naming.Named):
    """The last answer of one server, and what of it could not be taken."""

    named_by = ("plugin__name",)

    plugin = models.OneToOneField(
        catalog.Plugin, on_delete=models.CASCADE, related_name="listing", help_text="The server."
    )
    asked = models.DateTimeField(default=timezone.now, help_text="When it was last asked.")
    answered = models.DateTimeField(null=True, blank=True, help_text="When it last answered.")
    protocol = models.CharField(blank=True, help_text="The protocol revision that was agreed on.")
    server = models.CharField(blank=True, help_text="What the server calls itself, with its version.")
    tools = models.PositiveIntegerField(default=0, help_text="How many tools it listed.")
    problems = fields.JSONText(
        default=list,
        blank=True,
        shape="array",
        help_text="What of the answer could not be taken: a list of {path, message}.",
    )
    error = models.TextField(blank=True, help_text="Why it could not be asked the last time.")
    stderr = models.TextField(
        blank=True, help_text="The last lines that its process wrote to its error output."
    )

    class Meta:
        ordering = ["plugin"]
