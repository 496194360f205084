"""The catalog: categories, plugins and their tools, toolkits, and loadouts."""

from __future__ import annotations

from typing import Any

from django.db import models

from toolbelt.core import keys, schema
from toolbelt.models import fields, naming

BLOCK_ENDS = "When the block ends. Empty: never."
POSITION = "The position in lists and in the policy. 0 is first."


def _block_ending(table: str) -> models.Index:
    """Return an index of blocks by their end, without those that do not end."""
    return models.Index(
        fields=["block_ends"], condition=models.Q(block_ends__isnull=False), name=f"{table}_block_ending"
    )


def empty_schema() -> dict[str, Any]:
    """Return the schema of a tool without arguments."""
    return dict(schema.EMPTY)


class Category(naming.Named):
    """A category besides the thirteen built-in ones."""

    named_by = ("name",)

    name = models.CharField(
        max_length=64, unique=True, help_text="The name that plugins, tools and loadouts use."
    )

    class Meta:
        ordering = ["name"]
        verbose_name_plural = "categories"
        constraints = [
            naming.not_blank("category", "name"),
            naming.unique_in_any_case("category", "name"),
        ]


class Plugin(naming.Named):
    """An installed provider of tools. It is disabled rather than deleted while it has tools."""

    named_by = ("name",)

    class Status(models.TextChoices):
        READY = "ready"
        FAILED = "failed"

    name = models.CharField(max_length=64, unique=True, help_text="The name that loadouts and operators use.")
    namespace = models.CharField(
        max_length=61,
        blank=True,
        help_text="The prefix of the plugin's tools: namespace__name. Empty: the tools have no prefix.",
    )
    title = models.CharField(blank=True, help_text="The display name.")
    description = models.TextField(blank=True, help_text="What the plugin provides, for operators.")
    category = models.CharField(
        blank=True, help_text="The category of tools without a category of their own."
    )
    active = models.BooleanField(
        default=True,
        help_text="Whether the plugin is on. If it is off, its tools are unavailable to all agents.",
    )
    status = models.CharField(
        max_length=6,
        choices=Status,
        default=Status.READY,
        help_text="Failed: the plugin could not be started or reached, and its tools are unavailable.",
    )
    error = models.TextField(blank=True, help_text="Why the plugin failed.")
    trusted = models.BooleanField(default=False, help_text="Whether new tools are approved without a review.")
    blocked = models.BooleanField(
        default=False, help_text="The emergency stop: blocks all of its tools for all agents immediately."
    )
    block_ends = models.DateTimeField(null=True, blank=True, help_text=BLOCK_ENDS)
    upstream = fields.JSONText(
        shape="object",
        null=True,
        blank=True,
        help_text="How the MCP server is reached: a command or a URL. Empty: the plugin is no MCP server.",
    )
    in_code = models.BooleanField(
        default=False,
        help_text="Python code provides the tools. If neither it nor a server does, the agent's program runs them.",
    )
    declared_by = fields.JSONText(
        default=list,
        blank=True,
        shape="array",
        help_text="The agents whose tokens may declare the tools, if the agent's own program runs them.",
    )
    not_running = fields.JSONText(
        default=list,
        blank=True,
        shape="array",
        help_text="The tools of a plugin in code that no running process can run. Servers write this.",
    )
    preapproved = fields.JSONText(
        default=dict,
        blank=True,
        shape="object",
        help_text="Versions of tools, by key, that need no review once they are declared or listed.",
    )
    # Processes of the previous version insert rows without these columns during a rolling upgrade.
    keep_descriptions = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Whether agents keep the approved descriptions of a server's tools, whatever the server lists.",
    )
    instructions = models.CharField(
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="The hash of the instructions that the server states.",
    )
    instructions_seen = models.CharField(
        blank=True,
        default="",
        db_default="",
        help_text="The hash of the server's instructions that an operator has seen.",
    )
    reject_tools = fields.JSONText(
        default=list,
        db_default=models.Value("[]"),
        blank=True,
        shape="array",
        help_text="The names of tools that are rejected when the server first lists them. * stands for any text.",
    )
    reject_all_but = fields.JSONText(
        default=list,
        db_default=models.Value("[]"),
        blank=True,
        shape="array",
        help_text="If there are any, all other tools are rejected when the server first lists them.",
    )
    position = models.PositiveIntegerField(default=0, help_text="The position in lists. 0 is first.")

    class Meta:
        ordering = ["position", "name"]
        constraints = [
            naming.not_blank("plugin", "name"),
            naming.unique_in_any_case("plugin", "name"),
            naming.unique_in_any_case("plugin", "namespace", condition=~models.Q(namespace="")),
            naming.no_separator("plugin", "namespace"),
            naming.one_of("plugin", "status", ("ready", "failed")),
        ]
        indexes = [_block_ending("plugin")]


class Tool(naming.Named):
    """One function that a model can call, or another kind of entry that an upstream server offers. It is retired rather
    than deleted while something refers to it.
    """

    named_by = ("key",)

    class Kind(models.TextChoices):
        TOOL = "tool"
        PROMPT = "prompt"
        RESOURCE = "resource"
        TEMPLATE = "template", "Resource template"
        ELICITATION = "elicitation"

    key = models.CharField(max_length=64, unique=True, help_text="The name that models use to call the tool.")
    kind = models.CharField(
        max_length=11,
        choices=Kind,
        default=Kind.TOOL,
        help_text="The kind of entry. Prompts and resources are granted like tools, but are not counted as tools.",
    )
    plugin = models.ForeignKey(
        Plugin,
        on_delete=models.PROTECT,
        related_name="tools",
        null=True,
        blank=True,
        help_text="The plugin that provides the tool.",
    )
    title = models.CharField(blank=True, help_text="The display name.")
    description = models.TextField(blank=True, help_text="The description that models receive.")
    category = models.CharField(blank=True, help_text="The category. Empty: the plugin's category.")
    input_schema = fields.JSONText(
        shape="object", default=empty_schema, help_text="The JSON Schema of the arguments."
    )
    output_schema = fields.JSONText(
        shape="object", null=True, blank=True, help_text="The JSON Schema of the result, if there is one."
    )
    annotations = fields.JSONText(
        shape="object",
        default=dict,
        blank=True,
        help_text="MCP's hints, such as readOnlyHint and destructiveHint.",
    )
    policy = models.TextField(
        blank=True,
        help_text="Policy text while the tool is active. Only for tools that are in no toolkit.",
    )
    default_on = models.BooleanField(
        default=False, help_text="Whether agents without a loadout have the tool by default."
    )
    blocked = models.BooleanField(
        default=False, help_text="The emergency stop: blocks the tool for all agents immediately."
    )
    block_ends = models.DateTimeField(null=True, blank=True, help_text=BLOCK_ENDS)
    retired = models.BooleanField(
        default=False,
        help_text="Whether the plugin no longer offers the tool. Its switches and history are kept.",
    )
    seen = models.BooleanField(
        default=True,
        help_text="Whether an operator has reviewed the tool. A new tool is unavailable until then.",
    )
    approved = models.CharField(
        blank=True,
        help_text="The hash of the version that an operator approved. Prefixed with rejected: if it was rejected."
        " Empty: any version.",
    )
    details = fields.JSONText(
        shape="object",
        null=True,
        blank=True,
        help_text="Details from the server, sent once approved: the complete outputSchema, icons and _meta.",
    )
    details_approved = models.CharField(
        blank=True,
        help_text="The hash of the details that an operator approved. Prefixed with rejected: if they were rejected.",
    )
    approved_version = fields.JSONText(
        shape="object",
        null=True,
        blank=True,
        help_text="The approved version, while a newer one awaits review.",
    )
    upstream_name = models.CharField(
        blank=True,
        help_text="The server's own name for the entry if it differs from the key; a resource's URI.",
    )
    repairs = fields.JSONText(
        shape="object",
        null=True,
        blank=True,
        help_text="What was repaired of the schemas that the server lists, by place.",
    )
    tokens = models.PositiveIntegerField(
        default=0,
        editable=False,
        help_text="The size of the tool's definition in o200k tokens, counted when it is stored.",
    )
    declared_versions = fields.JSONText(
        shape="object",
        null=True,
        blank=True,
        editable=False,
        help_text="The versions that agents' programs declared within 24 hours, by hash.",
    )
    schema_problem = models.TextField(
        blank=True,
        default="",
        editable=False,
        help_text="Why no model can be given the tool, checked when it is stored. Empty: nothing.",
    )
    varies = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text="Whether the server's processes list different descriptions. Agents keep the approved one.",
    )
    keep_description = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Whether agents keep the approved description, whatever the server lists.",
    )
    recorded_fields = fields.JSONText(
        shape="array",
        default=list,
        db_default=models.Value("[]"),
        blank=True,
        help_text="The arguments that records of calls keep, by their paths, such as amount or to.domain.",
    )
    brings = fields.JSONText(
        shape="array",
        default=list,
        db_default=models.Value("[]"),
        blank=True,
        help_text="The labels that a call of it leaves in its session, for rules: private, untrusted.",
    )

    class Meta:
        ordering = ["key"]
        constraints = [
            naming.not_blank("tool", "key"),
            naming.one_of("tool", "kind", ("tool", "prompt", "resource", "template", "elicitation")),
            naming.unique_in_any_case("tool", "key"),
            models.CheckConstraint(
                condition=~models.Q(key__in=sorted(keys.RESERVED)),
                name="tool_key_not_reserved",
                violation_error_message="This name is reserved for Toolbelt's own tools.",
            ),
        ]
        indexes = [_block_ending("tool")]


class Toolkit(naming.Named):
    """A named bundle of tools with one switch, policy text and triggers."""

    named_by = ("key",)

    key = models.CharField(
        max_length=64, unique=True, help_text="The key that switches, agents and models use."
    )
    title = models.CharField(blank=True, help_text="The display name.")
    description = models.TextField(
        blank=True, help_text="What the toolkit is for. Agents that may load it read this."
    )
    # By name, because a belt may import the toolkit before the plugin is installed.
    plugin = models.CharField(
        max_length=64,
        blank=True,
        help_text="The plugin whose code defines the members and policy. Empty: operators define them.",
    )
    policy = models.TextField(
        blank=True,
        help_text="Policy text while a member is active. {active_tools} is replaced by the active members.",
    )
    policy_when_off = models.TextField(blank=True, help_text="Policy text while no member is active.")
    tool_notes = fields.JSONText(
        shape="object",
        default=dict,
        blank=True,
        help_text="Notes by tool key. A note is part of the policy while its tool is active.",
    )
    triggers = fields.JSONText(
        default=list,
        blank=True,
        shape="array",
        help_text="Triggers that focus a message on tools: a list of {name, any, all, none, focus, tool_choice}.",
    )
    examples = models.TextField(
        blank=True, help_text="Examples for operators (a SKILL.md). Models never receive them."
    )
    blocked = models.BooleanField(
        default=False, help_text="The emergency stop: blocks all of its tools for all agents immediately."
    )
    block_ends = models.DateTimeField(null=True, blank=True, help_text=BLOCK_ENDS)
    brings = fields.JSONText(
        shape="array",
        default=list,
        db_default=models.Value("[]"),
        blank=True,
        help_text="The labels that a call of any of its tools leaves in its session, for rules: private, untrusted.",
    )
    position = models.PositiveIntegerField(default=0, help_text=POSITION)

    class Meta:
        ordering = ["position", "key"]
        constraints = [
            naming.not_blank("toolkit", "key"),
            naming.unique_in_any_case("toolkit", "key"),
            naming.no_separator("toolkit", "key"),
            models.CheckConstraint(
                condition=~models.Q(key__in=sorted(keys.RESERVED)),
                name="toolkit_key_not_reserved",
                violation_error_message="This name is reserved for Toolbelt's own tools.",
            ),
        ]
        indexes = [_block_ending("toolkit")]


class Member(naming.Named):
    """A tool in a toolkit."""

    named_by = ("toolkit__key", "tool__key")

    toolkit = models.ForeignKey(Toolkit, on_delete=models.CASCADE, related_name="members")
    tool = models.ForeignKey(Tool, on_delete=models.PROTECT, related_name="memberships")
    options = fields.JSONText(
        shape="object",
        null=True,
        blank=True,
        help_text="Options that the toolkit passes to the tool. Empty: none.",
    )
    position = models.PositiveIntegerField(default=0, help_text="The position in the toolkit. 0 is first.")

    class Meta:
        ordering = ["toolkit", "position", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["toolkit", "tool"],
                name="member_once",
                violation_error_message="This tool is in the toolkit already.",
            ),
        ]


class Loadout(naming.Named):
    """A named profile that may inherit from another. One with the name of a built-in loadout replaces it."""

    named_by = ("name",)

    name = models.CharField(
        max_length=64, unique=True, help_text="The name that agents and other loadouts use."
    )
    description = models.TextField(blank=True, help_text="What the loadout is for.")
    # By name, because a built-in parent has no row.
    parent = models.CharField(
        blank=True,
        help_text="The built-in or stored loadout that this one extends. Empty: none.",
    )
    plugins = fields.JSONText(
        default=list, blank=True, shape="array", help_text="Plugins whose tools the loadout turns on."
    )
    categories = fields.JSONText(
        default=list, blank=True, shape="array", help_text="Categories whose tools the loadout turns on."
    )
    discoverable = fields.JSONText(
        default=list,
        blank=True,
        shape="array",
        help_text="Plugins and tools that are available on request: names, prefixes such as docker*, or * for all.",
    )
    disabled = fields.JSONText(
        default=list,
        blank=True,
        shape="array",
        help_text="Plugins and tools that the loadout turns off. Loadouts that extend it cannot turn them on again.",
    )
    denied_risks = fields.JSONText(
        default=list,
        db_default=models.Value([], models.JSONField()),
        blank=True,
        shape="array",
        help_text="The risks whose tools the loadout turns off: writes, destructive, unstated. Loadouts that extend it"
        " cannot turn them on again.",
    )
    position = models.PositiveIntegerField(default=0, help_text="The position in lists. 0 is first.")

    class Meta:
        ordering = ["position", "name"]
        constraints = [naming.not_blank("loadout", "name"), naming.unique_in_any_case("loadout", "name")]
