"""The toolkits and tools that a conversation of an agent has loaded."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from toolbelt.models import agents, fields, naming


class AgentSession(naming.Named):
    """One conversation of one agent. Its state is one document, so that it is changed as a whole."""

    named_by = ("agent__key", "key")

    agent = models.ForeignKey(agents.Agent, on_delete=models.CASCADE, related_name="sessions")
    key = models.CharField(max_length=200, help_text="The session's id, chosen by the agent's application.")
    loadout = models.CharField(
        blank=True,
        help_text="Replaces the agent's loadout in this session. Empty: the agent's loadout applies.",
    )
    state = fields.JSONText(
        shape="object",
        default=dict,
        blank=True,
        help_text="The names that were loaded and unloaded, and in which request.",
    )
    created = models.DateTimeField(auto_now_add=True)
    changed = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["agent", "key"]
        indexes = [models.Index(fields=["agent", "-changed"], name="session_newest_of_agent")]
        constraints = [
            naming.not_blank("agent_session", "key"),
            models.UniqueConstraint(
                fields=["agent", "key"],
                name="agent_session_once",
                violation_error_message="The agent has a session of this name already.",
            ),
        ]
