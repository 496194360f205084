"""What exists? Categories, plugins and their tools, toolkits over them, loadouts."""

from __future__ import annotations

from typing import Any

from django.db import models

from toolbelt.core import keys, schema
from toolbelt.models import fields, naming

POSITION = "Where it stands in lists, and in the policy that models are told: 0 is first."


def empty_schema() -> dict[str, Any]:
    """Give the schema of a tool that takes no arguments."""
    return dict(schema.EMPTY)


class Category(naming.Named):
    """A category beyond the thirteen that are built in."""

    named_by = ("name",)

    name = models.CharField(max_length=64, unique=True, help_text="What plugins, tools and loadouts call it.")

    class Meta:
        ordering = ["name"]
        verbose_name_plural = "categories"
        constraints = [
            naming.not_blank("category", "name"),
            naming.unique_in_any_case("category", "name"),
        ]


class Plugin(naming.Named):
    """An installed provider of tools. Never deleted while it has tools: it is made inactive instead."""

    named_by = ("name",)

    class Status(models.TextChoices):
        READY = "ready"
        FAILED = "failed"

    name = models.CharField(max_length=64, unique=True, help_text="What loadouts and operators call it.")
    namespace = models.CharField(
        max_length=61,
        blank=True,
        help_text="All tools of the plugin are called namespace__name. Empty: they keep their own names.",
    )
    title = models.CharField(blank=True, help_text="A name for people to read.")
    description = models.TextField(blank=True, help_text="What it brings, for operators.")
    category = models.CharField(
        blank=True, help_text="The category of its tools that state none of their own."
    )
    active = models.BooleanField(
        default=True, help_text="Switched off, none of its tools is available to anyone."
    )
    status = models.CharField(
        max_length=6,
        choices=Status,
        default=Status.READY,
        help_text="Failed: it could not be started or reached, and its tools are unavailable.",
    )
    error = models.TextField(blank=True, help_text="Why it failed.")
    trusted = models.BooleanField(
        default=False, help_text="Tools that newly appear in it count without an operator having seen them."
    )
    blocked = models.BooleanField(
        default=False, help_text="The emergency stop: all of its tools are denied to everyone, at once."
    )
    upstream = fields.JSONText(
        shape="object",
        null=True,
        blank=True,
        help_text="How its MCP server is reached: a command, or a url. Empty: it is Python code.",
    )
    position = models.PositiveIntegerField(default=0, help_text="Where it stands in lists: 0 is first.")

    class Meta:
        ordering = ["position", "name"]
        constraints = [
            naming.not_blank("plugin", "name"),
            naming.unique_in_any_case("plugin", "name"),
            naming.unique_in_any_case("plugin", "namespace", condition=~models.Q(namespace="")),
            naming.no_separator("plugin", "namespace"),
            naming.one_of("plugin", "status", ("ready", "failed")),
        ]


class Tool(naming.Named):
    """One function that a model can call. Never deleted while something names it: it is retired instead."""

    named_by = ("key",)

    key = models.CharField(max_length=64, unique=True, help_text="The name by which models call it.")
    plugin = models.ForeignKey(
        Plugin,
        on_delete=models.PROTECT,
        related_name="tools",
        null=True,
        blank=True,
        help_text="What provides it.",
    )
    title = models.CharField(blank=True, help_text="A name for people to read.")
    description = models.TextField(blank=True, help_text="What models are told about it.")
    category = models.CharField(blank=True, help_text="Empty: its plugin's category.")
    input_schema = fields.JSONText(
        shape="object", default=empty_schema, help_text="The JSON Schema of its arguments."
    )
    output_schema = fields.JSONText(
        shape="object", null=True, blank=True, help_text="The JSON Schema of its result, if stated."
    )
    annotations = fields.JSONText(
        shape="object",
        default=dict,
        blank=True,
        help_text="Hints such as readOnlyHint and destructiveHint, as MCP has them.",
    )
    policy = models.TextField(
        blank=True, help_text="Told to the model while the tool is active, if it is in no toolkit."
    )
    default_on = models.BooleanField(
        default=False, help_text="Agents without a loadout have it unless something denies it."
    )
    blocked = models.BooleanField(default=False, help_text="The emergency stop: denied to everyone, at once.")
    retired = models.BooleanField(
        default=False, help_text="Its plugin no longer offers it. Its switches and history are kept."
    )
    seen = models.BooleanField(
        default=True, help_text="An operator has seen it. A new tool is unavailable until then."
    )
    approved = models.CharField(
        blank=True, help_text="The hash of the version that an operator approved; empty: any."
    )
    approved_version = fields.JSONText(
        shape="object",
        null=True,
        blank=True,
        help_text="What the approved version said, while another one waits for approval.",
    )
    upstream_name = models.CharField(
        blank=True, help_text="What its server calls it, where its key had to be made to fit."
    )
    tokens = models.PositiveIntegerField(
        default=0,
        editable=False,
        help_text="What a model is sent of it, in o200k tokens. Counted when stored.",
    )

    class Meta:
        ordering = ["key"]
        constraints = [
            naming.not_blank("tool", "key"),
            naming.unique_in_any_case("tool", "key"),
            models.CheckConstraint(
                condition=~models.Q(key__in=sorted(keys.RESERVED)),
                name="tool_key_not_reserved",
                violation_error_message="This name is reserved for Toolbelt's own tools.",
            ),
        ]


class Toolkit(naming.Named):
    """A named bundle of tools with one switch, policy text and triggers."""

    named_by = ("key",)

    key = models.CharField(max_length=64, unique=True, help_text="What switches, agents and models call it.")
    title = models.CharField(blank=True, help_text="A name for people to read.")
    description = models.TextField(blank=True, help_text="What it is for; agents that may load it read this.")
    # By name, as a belt may bring the toolkit to an installation before the plugin is there.
    plugin = models.CharField(
        max_length=64,
        blank=True,
        help_text="The plugin whose code owns it: members and policy are read-only then. Empty: operators own it.",
    )
    policy = models.TextField(
        blank=True,
        help_text="Told to the model while one of its tools is active. {active_tools} names those that are.",
    )
    policy_when_off = models.TextField(
        blank=True, help_text="Told to the model while none of its tools is active."
    )
    tool_notes = fields.JSONText(
        shape="object",
        default=dict,
        blank=True,
        help_text="By tool key: a note that stands in the policy while it is active.",
    )
    triggers = fields.JSONText(
        default=list,
        blank=True,
        shape="array",
        help_text="When a message asks for a focus on tools: a list of {name, any, all, none, focus, tool_choice}.",
    )
    examples = models.TextField(
        blank=True, help_text="Examples for operators to read, never told to a model (a SKILL.md)."
    )
    blocked = models.BooleanField(
        default=False, help_text="The emergency stop: all of its tools are denied to everyone, at once."
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


class Member(naming.Named):
    """A tool in a toolkit."""

    named_by = ("toolkit__key", "tool__key")

    toolkit = models.ForeignKey(Toolkit, on_delete=models.CASCADE, related_name="members")
    tool = models.ForeignKey(Tool, on_delete=models.PROTECT, related_name="memberships")
    options = fields.JSONText(
        shape="object",
        null=True,
        blank=True,
        help_text="Settings that the toolkit hands to the tool. Empty: none.",
    )
    position = models.PositiveIntegerField(default=0, help_text="Where it stands in the toolkit: 0 is first.")

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
    """A named, inheritable profile. One with the name of a built-in loadout replaces it."""

    named_by = ("name",)

    name = models.CharField(max_length=64, unique=True, help_text="What agents and other loadouts call it.")
    description = models.TextField(blank=True, help_text="What it is for.")
    # By name, because a parent may be built in, and has no row then.
    parent = models.CharField(
        blank=True,
        help_text="The loadout that this one adds to: built in or stored. Empty: none.",
    )
    plugins = fields.JSONText(
        default=list, blank=True, shape="array", help_text="Plugins whose tools it brings into view."
    )
    categories = fields.JSONText(
        default=list, blank=True, shape="array", help_text="Categories whose tools it brings into view."
    )
    discoverable = fields.JSONText(
        default=list,
        blank=True,
        shape="array",
        help_text="Plugins and tools that can be had on request: names, beginnings such as docker*, or * for all.",
    )
    disabled = fields.JSONText(
        default=list,
        blank=True,
        shape="array",
        help_text="Plugins and tools that it denies, whatever else brings them; final for loadouts over this one.",
    )
    position = models.PositiveIntegerField(default=0, help_text="Where it stands in lists: 0 is first.")

    class Meta:
        ordering = ["position", "name"]
        constraints = [naming.not_blank("loadout", "name"), naming.unique_in_any_case("loadout", "name")]
