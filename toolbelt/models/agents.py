"""Who consumes tools? Agents, their always-on tools and allowed toolkits, switches and overrides."""

from __future__ import annotations

from django.db import models

from toolbelt.core import agents as values
from toolbelt.models import catalog, fields, naming


class Agent(naming.Named):
    """One configured consumer. Deleting it deletes its switches, overrides and sessions with it."""

    named_by = ("key",)

    class Kind(models.TextChoices):
        EXPLORE = "explore"
        TASK = "task"
        PLAN = "plan"
        REVIEW = "review"
        GENERAL = "general"

    class OnExceed(models.TextChoices):
        WARN = "warn", "Warn on the surface"
        REFUSE = "refuse", "Refuse what would pass it"
        DEFER = "defer", "Defer toolkits until it fits"

    class McpLoading(models.TextChoices):
        DISPATCH = "dispatch", "By search_tools and call_tool, in a list that stays as it is"
        LIST = "list", "By load_tools, in a list that grows"

    key = models.CharField(max_length=64, unique=True, help_text="The name by which it asks.")
    title = models.CharField(blank=True, help_text="A name for people to read.")
    description = models.TextField(blank=True, help_text="What it is for.")
    role = models.CharField(blank=True, help_text="Its role, for people to read.")
    model = models.CharField(blank=True, help_text="The language model behind it, for people to read.")
    kind = models.CharField(
        max_length=7, choices=Kind, blank=True, help_text="Gives it a loadout, unless it has one of its own."
    )
    # By name, because a loadout may be built in, and has no row then.
    loadout = models.CharField(
        blank=True, help_text="Its loadout: built in or stored. Empty: its kind's, or none."
    )
    protected = models.BooleanField(
        default=False, help_text="Every change of its switches has to be confirmed."
    )
    archived = models.BooleanField(
        default=False,
        db_default=False,
        help_text="It answers nobody and is in no list until it is brought back; what is set stays as it is.",
    )
    session_loadouts = fields.JSONText(
        default=list,
        blank=True,
        shape="array",
        help_text="Loadouts that its own token may equip a session with.",
    )
    subagent_kinds = fields.JSONText(
        default=list,
        blank=True,
        shape="array",
        help_text="Kinds of subagent that its own token may ask for.",
    )
    mcp_loading = models.CharField(
        max_length=8,
        choices=McpLoading,
        default=McpLoading.DISPATCH,
        help_text="How its MCP clients get at the tools that it could load.",
    )
    max_tools = models.PositiveIntegerField(
        null=True, blank=True, help_text="The most tools it may have active. Empty: no limit."
    )
    max_tokens = models.PositiveIntegerField(
        null=True, blank=True, help_text="The most tokens its active tools may cost. Empty: no limit."
    )
    on_exceed = models.CharField(
        max_length=6,
        choices=OnExceed,
        default=OnExceed.WARN,
        help_text="What happens when its tools pass a limit.",
    )
    position = models.PositiveIntegerField(default=0, help_text="Where it stands in lists: 0 is first.")

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
    """A tool that the agent always has, unless it is denied."""

    named_by = ("agent__key", "tool__key")

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="tools")
    tool = models.ForeignKey(catalog.Tool, on_delete=models.PROTECT, related_name="always_on_for")
    options = fields.JSONText(
        shape="object", null=True, blank=True, help_text="Settings handed to the tool. Empty: none."
    )
    position = models.PositiveIntegerField(default=0, help_text="Where it stands in the list: 0 is first.")

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
        default=False, help_text="Loaded in every session from its start, and cannot be unloaded."
    )
    position = models.PositiveIntegerField(
        default=0, help_text="Where it stands among the toolkits that the agent may load: 0 is first."
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
    """Let only what ends say what stands then."""
    return models.CheckConstraint(
        condition=models.Q(ends__isnull=False) | models.Q(then__isnull=True, by=""),
        name=f"{table}_ends",
        violation_error_message="Only what ends says what stands then, and who gave it for so long.",
    )


def _ending(table: str) -> models.Index:
    """Find what ends next, among many that do not."""
    return models.Index(fields=["ends"], condition=models.Q(ends__isnull=False), name=f"{table}_ending")


class Grant(naming.Named):
    """What a switch and an override have in common: on or off, and until when."""

    on: models.BooleanField[bool, bool]
    ends = models.DateTimeField(
        null=True, blank=True, help_text="When it ends, whoever looks then. Empty: it stands for good."
    )
    then = models.BooleanField(
        null=True, blank=True, help_text="What stands when it has ended: on, off, or nothing (unset)."
    )
    by = models.CharField(
        max_length=150, blank=True, default="", db_default="", help_text="Who gave it for so long."
    )

    class Meta:
        abstract = True


class ToolkitSwitch(Grant):
    """An agent's switch for a toolkit: on or off. Unset is the absence of the row."""

    named_by = ("agent__key", "toolkit__key")

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="switches")
    toolkit = models.ForeignKey(catalog.Toolkit, on_delete=models.PROTECT, related_name="switches")
    on = models.BooleanField(help_text="On: the agent has its tools. Off: all of them are denied to it.")

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
    """An agent's override of a tool: on or off. Unset is the absence of the row."""

    named_by = ("agent__key", "tool__key")

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="overrides")
    tool = models.ForeignKey(catalog.Tool, on_delete=models.PROTECT, related_name="overrides")
    on = models.BooleanField(help_text="On: the agent has it, unless it is denied. Off: it is denied to it.")

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
