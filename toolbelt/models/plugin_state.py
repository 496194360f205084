"""State of plugins: JSON values by key, in a namespace for each plugin.

It belongs to the plugins and is not configuration, so it does not move the revision and is in no belt.
"""

from __future__ import annotations

from django.db import models

from toolbelt.models import fields, naming


class PluginState(naming.Named):
    """One value of one plugin."""

    named_by = ("namespace", "key")

    namespace = models.CharField(
        max_length=64, help_text="The plugin's namespace, or its name if it has none."
    )
    key = models.CharField(max_length=200, help_text="The plugin's key for the value.")
    value = fields.JSONText(null=True, blank=True, help_text="The value. Empty: null.")
    changed = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["namespace", "key"]
        verbose_name_plural = "plugin state"
        constraints = [
            naming.not_blank("plugin_state", "namespace"),
            models.UniqueConstraint(
                fields=["namespace", "key"],
                name="plugin_state_once",
                violation_error_message="The plugin keeps a value under this key already.",
            ),
        ]
