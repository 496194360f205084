"""What does a plugin remember? JSON values by key, each plugin's in a namespace of its own.

It is the plugins' own and no configuration, so it moves no revision and stands in no belt.
"""

from __future__ import annotations

from django.db import models

from toolbelt.models import fields, naming


class PluginState(naming.Named):
    """One value of one plugin."""

    named_by = ("namespace", "key")

    namespace = models.CharField(
        max_length=64, help_text="The plugin's namespace; its name, where it has no namespace."
    )
    key = models.CharField(max_length=200, help_text="What the plugin calls the value.")
    value = fields.JSONText(null=True, blank=True, help_text="What it keeps; nothing: null.")
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
