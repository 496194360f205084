"""Applications that embed agents, and the tools that they bind to them."""

from __future__ import annotations

from django.db import models

from toolbelt.models import agents, catalog, naming


class SubApp(naming.Named):
    """An application that embeds agents and binds tools to them by name."""

    named_by = ("key",)

    key = models.CharField(max_length=64, unique=True, help_text="The sub-app's key.")
    title = models.CharField(blank=True, help_text="The display name.")
    description = models.TextField(blank=True, help_text="What the sub-app is for.")
    position = models.PositiveIntegerField(default=0, help_text="The position in lists. 0 is first.")

    class Meta:
        ordering = ["position", "key"]
        verbose_name = "sub-app"
        constraints = [naming.not_blank("sub_app", "key"), naming.unique_in_any_case("sub_app", "key")]


class SubAppTool(naming.Named):
    """A tool that a sub-app binds to its agents."""

    named_by = ("sub_app__key", "tool__key")

    sub_app = models.ForeignKey(SubApp, on_delete=models.CASCADE, related_name="bound_tools")
    tool = models.ForeignKey(catalog.Tool, on_delete=models.PROTECT, related_name="sub_apps")
    position = models.PositiveIntegerField(default=0, help_text="The position in the sub-app. 0 is first.")

    class Meta:
        ordering = ["sub_app", "position", "id"]
        verbose_name = "sub-app's tool"
        constraints = [
            models.UniqueConstraint(
                fields=["sub_app", "tool"],
                name="sub_app_tool_once",
                violation_error_message="The sub-app has this tool already.",
            ),
        ]


class SubAppAgent(naming.Named):
    """An agent that a sub-app embeds."""

    named_by = ("sub_app__key", "agent__key")

    sub_app = models.ForeignKey(SubApp, on_delete=models.CASCADE, related_name="embedded_agents")
    agent = models.ForeignKey(agents.Agent, on_delete=models.CASCADE, related_name="sub_apps")
    position = models.PositiveIntegerField(default=0, help_text="The position in the sub-app. 0 is first.")

    class Meta:
        ordering = ["sub_app", "position", "id"]
        verbose_name = "sub-app's agent"
        constraints = [
            models.UniqueConstraint(
                fields=["sub_app", "agent"],
                name="sub_app_agent_once",
                violation_error_message="The sub-app has this agent already.",
            ),
        ]
