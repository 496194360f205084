"""Gate rules: conditions on the calls of agents."""

from __future__ import annotations

from django.db import models

from toolbelt.core import catalog
from toolbelt.models import fields, naming


def _names(help_text: str) -> fields.JSONText:
    return fields.JSONText(default=list, blank=True, shape="array", help_text=help_text)


class GateRule(naming.Named):
    """A rule on calls: for whom, for which tools, when, and its effect. Rules have no order."""

    named_by = ("key",)

    key = models.CharField(max_length=64, unique=True, help_text="The rule's key.")
    effect = models.CharField(
        max_length=5,
        choices=[(word, word) for word in catalog.EFFECTS],
        default="deny",
        help_text="deny: a call that it applies to is refused. ask: it waits until a person approves it. allow: no rule"
        " asks about it.",
    )
    # By name, as in the entry. What they name cannot be removed (toolbelt.store.references).
    agents = _names("The agents whose calls it concerns. Without agents, kinds and sub-apps: everyone's.")
    kinds = _names("The kinds of agents whose calls it concerns.")
    sub_apps = _names("The sub-apps whose agents' calls it concerns.")
    tools = _names(
        "The tools that it concerns: keys, or the beginnings of keys with *. Without tools, toolkits, plugins and"
        " risks: every tool."
    )
    toolkits = _names("The toolkits whose tools it concerns.")
    plugins = _names("The plugins whose tools it concerns.")
    risks = _names("The risks whose tools it concerns: writes, destructive, unstated.")
    when = fields.JSONText(
        null=True,
        blank=True,
        shape="object",
        help_text="The condition on the arguments under which it applies: a JSON Schema, or a mapping of arguments to"
        " schemas.",
    )
    unless = fields.JSONText(
        null=True,
        blank=True,
        shape="object",
        help_text="The condition on the arguments under which it does not apply.",
    )
    # Processes of the previous version insert rows without these columns during a rolling upgrade.
    labels = fields.JSONText(
        default=list,
        db_default=models.Value("[]"),
        blank=True,
        shape="array",
        help_text="It applies only in sessions that have all of these labels.",
    )
    without = fields.JSONText(
        default=list,
        db_default=models.Value("[]"),
        blank=True,
        shape="array",
        help_text="It applies only in sessions that lack one of these labels.",
    )
    more_than = fields.JSONText(
        null=True,
        blank=True,
        shape="object",
        help_text='It applies only to further calls than these: {"calls": 20, "per": "hour", "of": "agent"}.',
    )
    reason = models.TextField(blank=True, help_text="What the model reads if its call is refused.")
    announce = models.BooleanField(default=False, help_text="Whether a refusal also names the rule.")
    observed = models.BooleanField(
        default=False, help_text="Whether what it would do is only recorded, and not done."
    )
    ends = models.DateTimeField(
        null=True, blank=True, help_text="From when on it has no effect. Empty: it does not end."
    )
    approvals = models.PositiveSmallIntegerField(
        default=1, help_text="Of a rule that asks: how many people have to approve a call."
    )
    approvers = _names(
        "Of a rule that asks: the groups whose members approve calls, if they may decide. Without groups, all who may"
        " decide."
    )
    expires = models.PositiveIntegerField(
        default=0,
        help_text="Of a rule that asks: within how many seconds they have to. 0: as TOOLBELT_APPROVAL_EXPIRES says.",
    )

    class Meta:
        ordering = ["key"]
        constraints = [
            naming.not_blank("gate_rule", "key"),
            naming.unique_in_any_case("gate_rule", "key"),
            naming.one_of("gate_rule", "effect", catalog.EFFECTS),
        ]


class CallCount(models.Model):
    """How many calls a rule has counted of one agent, session or tool since its time began. It names the rule by text,
    because the limit on identical calls has none.
    """

    rule = models.CharField(max_length=64, help_text="The key of the rule.")
    subject = models.CharField(max_length=400, blank=True, help_text="Whose calls are counted. Empty: all.")
    resets = models.DateTimeField(help_text="When calls are counted again.")
    calls = models.PositiveIntegerField(default=0, help_text="How many calls were counted.")

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["rule", "subject", "resets"], name="call_count_once"),
        ]
        indexes = [models.Index(fields=["resets"], name="call_count_oldest")]

    def __str__(self) -> str:
        return f"{self.rule} {self.subject}".rstrip()
