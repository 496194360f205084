"""Agents, their always-on tools and allowed toolkits, switches and overrides."""

from __future__ import annotations

from django.db import models

from toolbelt.core import agents as values
from toolbelt.models import catalog, fields, naming


class Agent(naming.Named):
    """One configured agent. Deleting it deletes its switches, overrides, sessions, learned words and context use."""

    named_by = ("key",)

    class Kind(models.TextChoices):
        EXPLORE = "explore"
        TASK = "task"
        PLAN = "plan"
        REVIEW = "review"
        GENERAL = "general"

    class OnExceed(models.TextChoices):
        WARN = "warn", "Show a warning"
        REFUSE = "refuse", "Refuse changes that exceed it"
        DEFER = "defer", "Defer toolkits until it fits"

    class McpLoading(models.TextChoices):
        DISPATCH = "dispatch", "With search_tools and call_tool; the list changes with the grants only"
        LIST = "list", "With load_tools; the list of tools grows"
        CONSTANT = "constant", "With search_tools and call_tool; the list never changes in a conversation"

    key = models.CharField(max_length=64, unique=True, help_text="The agent's key in requests and belts.")
    title = models.CharField(blank=True, help_text="The display name.")
    description = models.TextField(blank=True, help_text="What the agent is for.")
    role = models.CharField(blank=True, help_text="The agent's role, for operators.")
    model = models.CharField(
        blank=True,
        help_text="The language model that the agent uses. Its name decides the form of a directive.",
    )
    kind = models.CharField(
        max_length=7,
        choices=Kind,
        blank=True,
        help_text="The kind of agent, which determines the loadout if none is set.",
    )
    # By name, because a built-in loadout has no row.
    loadout = models.CharField(
        blank=True,
        help_text="The name of a built-in or stored loadout. Empty: the kind's loadout, if there is one.",
    )
    protected = models.BooleanField(
        default=False, help_text="Whether every change of the agent's switches requires confirmation."
    )
    archived = models.BooleanField(
        default=False,
        db_default=False,
        help_text="An archived agent rejects all requests and is left out of lists. Its settings are kept.",
    )
    session_loadouts = fields.JSONText(
        default=list,
        blank=True,
        shape="array",
        help_text="The loadouts that the agent's own token may set for a session.",
    )
    subagent_kinds = fields.JSONText(
        default=list,
        blank=True,
        shape="array",
        help_text="The kinds of subagent that the agent's own token may ask for.",
    )
    denied_risks = fields.JSONText(
        default=list,
        db_default=models.Value([], models.JSONField()),
        blank=True,
        shape="array",
        help_text="The risks whose tools the agent does not have: writes, destructive, unstated. An override that is on"
        " makes an exception.",
    )
    mcp_loading = models.CharField(
        max_length=8,
        choices=McpLoading,
        default=McpLoading.DISPATCH,
        help_text="How the agent's MCP clients use loadable tools.",
    )
    max_tools = models.PositiveIntegerField(
        null=True, blank=True, help_text="The maximum number of active tools. Empty: no limit."
    )
    max_tokens = models.PositiveIntegerField(
        null=True, blank=True, help_text="The maximum number of tokens of the active tools. Empty: no limit."
    )
    on_exceed = models.CharField(
        max_length=6,
        choices=OnExceed,
        default=OnExceed.WARN,
        help_text="What happens when the active tools exceed a limit.",
    )
    position = models.PositiveIntegerField(default=0, help_text="The position in lists. 0 is first.")

    class Meta:
        ordering = ["position", "key"]
        constraints = [
            naming.not_blank("agent", "key"),
            naming.unique_in_any_case("agent", "key"),
            naming.one_of("agent", "kind", ("", *values.KINDS)),
            naming.one_of("agent", "on_exceed", values.ON_EXCEED),
            naming.one_of("agent", "mcp_loading", values.MCP_LOADINGS),
        ]


class AgentTool(naming.Named):
    """A tool that the agent always has, unless a rule turns it off."""

    named_by = ("agent__key", "tool__key")

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="tools")
    tool = models.ForeignKey(catalog.Tool, on_delete=models.PROTECT, related_name="always_on_for")
    options = fields.JSONText(
        shape="object", null=True, blank=True, help_text="Options passed to the tool. Empty: none."
    )
    position = models.PositiveIntegerField(default=0, help_text="The position in the list. 0 is first.")

    class Meta:
        ordering = ["agent", "position", "id"]
        verbose_name = "always-on tool"
        constraints = [
            models.UniqueConstraint(
                fields=["agent", "tool"],
                name="agent_tool_once",
                violation_error_message="The agent has this tool already.",
            ),
        ]


class AgentToolkit(naming.Named):
    """A toolkit that the agent may load."""

    named_by = ("agent__key", "toolkit__key")

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="allowed_toolkits")
    toolkit = models.ForeignKey(catalog.Toolkit, on_delete=models.PROTECT, related_name="allowed_for")
    initial = models.BooleanField(
        default=False,
        help_text="Whether the toolkit is loaded from the start of every session and cannot be unloaded.",
    )
    position = models.PositiveIntegerField(
        default=0, help_text="The position among the agent's allowed toolkits. 0 is first."
    )

    class Meta:
        ordering = ["agent", "position", "id"]
        verbose_name = "allowed toolkit"
        constraints = [
            models.UniqueConstraint(
                fields=["agent", "toolkit"],
                name="agent_toolkit_once",
                violation_error_message="The agent may load this toolkit already.",
            ),
            naming.one_of("agent_toolkit", "initial", (True, False)),
        ]


def _ends(table: str) -> models.CheckConstraint:
    """Return the constraint that only a grant with an expiry has a later value."""
    return models.CheckConstraint(
        condition=models.Q(ends__isnull=False) | models.Q(then__isnull=True, by=""),
        name=f"{table}_ends",
        violation_error_message="A value after the expiry, and its author, require an expiry.",
    )


def _ending(table: str) -> models.Index:
    """Return an index of grants by expiry, without those that do not expire."""
    return models.Index(fields=["ends"], condition=models.Q(ends__isnull=False), name=f"{table}_ending")


class Grant(naming.Named):
    """The common fields of switches and overrides: on or off, and their expiry."""

    on: models.BooleanField[bool, bool]
    ends = models.DateTimeField(null=True, blank=True, help_text="When the setting expires. Empty: never.")
    then = models.BooleanField(
        null=True, blank=True, help_text="The value after the expiry: on, off, or empty (default)."
    )
    by = models.CharField(
        max_length=150, blank=True, default="", db_default="", help_text="The operator who set the expiry."
    )

    class Meta:
        abstract = True


class ToolkitSwitch(Grant):
    """An agent's switch for a toolkit: on or off. An unset switch has no row."""

    named_by = ("agent__key", "toolkit__key")

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="switches")
    toolkit = models.ForeignKey(catalog.Toolkit, on_delete=models.PROTECT, related_name="switches")
    on = models.BooleanField(help_text="On: the agent has the toolkit's tools. Off: all of them are off.")

    class Meta:
        ordering = ["agent", "toolkit"]
        verbose_name_plural = "toolkit switches"
        constraints = [
            models.UniqueConstraint(
                fields=["agent", "toolkit"],
                name="toolkit_switch_once",
                violation_error_message="The agent has a switch for this toolkit already.",
            ),
            naming.one_of("toolkit_switch", "on", (True, False)),
            _ends("toolkit_switch"),
        ]
        indexes = [_ending("toolkit_switch")]


class ToolOverride(Grant):
    """An agent's override of a tool: on or off. An unset override has no row."""

    named_by = ("agent__key", "tool__key")

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="overrides")
    tool = models.ForeignKey(catalog.Tool, on_delete=models.PROTECT, related_name="overrides")
    on = models.BooleanField(
        help_text="On: the agent has the tool, unless another rule turns it off. Off: the agent does not have it."
    )

    class Meta:
        ordering = ["agent", "tool"]
        constraints = [
            models.UniqueConstraint(
                fields=["agent", "tool"],
                name="tool_override_once",
                violation_error_message="The agent has an override of this tool already.",
            ),
            naming.one_of("tool_override", "on", (True, False)),
            _ends("tool_override"),
        ]
        indexes = [_ending("tool_override")]
