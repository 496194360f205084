"""The gate rules: their list, the page of a rule, and the editor."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from typing import Any

from django import forms
from django.http import HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from toolbelt import conf
from toolbelt.control.access import access_index
from toolbelt.control.agents import call_approvals as asked_calls
from toolbelt.control.catalog import rule_effects
from toolbelt.core import (
    agents,
    belts,
    call_approvals,
    call_limits,
    catalog,
    errors,
    gate_rules,
    grants,
    strict_json,
)
from toolbelt.core.rules import reasons
from toolbelt.web.kit import entry_editor, entry_forms, fields, http, pieces, responses, words

# The most names that the page of a rule lists of its agents or its tools.
MAX_NAMES = 30
# The days of a rule's figures, and the number of approvals from which on a rejection is missed.
DAYS, MANY = 30, 20
_CONDITIONS = ("when", "unless")
# Whose calls are counted together.
_OF = {
    "agent": "by each agent",
    "session": "in each session",
    "tool": "of each tool",
    "identical": "with the same arguments, in each session",
    "rule": "all together",
}


class GateRule(entry_forms.EntryForm):
    """The form of a gate rule. Its conditions are typed as JSON."""

    entry_kind = "gate_rule"
    plain_fields = ("effect", "announce", "observed", "ends", "approvals", "expires")
    list_fields = (
        "approvers",
        "agents",
        "kinds",
        "sub_apps",
        "toolkits",
        "plugins",
        "risks",
        "labels",
        "without",
    )
    # Pages send a field named "tools" with each request of htmx, and "reason" is that of the change.
    fields_by_key = {"tools": "tool_names", "reason": "model_reads", "more_than": "calls"}

    key = forms.CharField(required=False, help_text="Its name in Toolbelt: letters, digits, _, . and -.")
    effect = forms.CharField(required=False, widget=forms.Select)
    model_reads = fields.Text(
        rows=2, label="Reason for the model", help_text="What the model reads when its call is refused."
    )
    announce = forms.BooleanField(required=False, label="Name the rule in the refusal")
    observed = forms.BooleanField(
        required=False, label="Observe only: record what it would do, and do nothing"
    )
    ends = forms.CharField(
        required=False, help_text="From when on it has no effect, in UTC: 2026-11-22T14:05:00Z. Empty: never."
    )
    approvals = forms.IntegerField(
        required=False,
        label="Approvals",
        help_text="If it asks: how many people have to approve a call.",
        widget=forms.NumberInput(attrs={"min": 1, "max": call_approvals.MAX_APPROVALS}),
    )
    expires = forms.IntegerField(
        required=False,
        label="Seconds to decide",
        help_text="If it asks: then it is refused. Empty: the installation's setting.",
        widget=forms.NumberInput(attrs={"min": 1, "max": call_approvals.MAX_SECONDS}),
    )
    approvers = fields.NameList(
        rows=2,
        label="Groups that approve",
        help_text="If it asks: one group per line, whose members approve, if they may decide. Empty: all who may.",
    )
    agents = fields.NameList(rows=2, help_text="One agent per line.")
    kinds = fields.Checkboxes(label="Kinds of agents")
    sub_apps = fields.NameList(rows=2, label="Sub-apps", help_text="One sub-app per line.")
    tool_names = fields.NameList(
        rows=3, label="Tools", help_text="One tool per line, or the beginning of keys with *, such as send_*."
    )
    toolkits = fields.NameList(rows=2, help_text="One toolkit per line.")
    plugins = fields.NameList(rows=2, help_text="One plugin per line.")
    risks = fields.Checkboxes()
    when = fields.Text(rows=5, help_text='JSON, such as {"amount": {"exclusiveMinimum": 500}}.')
    unless = fields.Text(rows=5, help_text='JSON, such as {"to": {"pattern": "@example\\\\.com$"}}.')

    labels = fields.NameList(
        rows=2, label="With labels", help_text="One per line. It applies once the session has all of them."
    )
    without = fields.NameList(
        rows=2,
        label="Without labels",
        help_text="One per line. It applies until the session has all of them.",
    )
    calls = forms.IntegerField(
        required=False,
        label="More calls than",
        help_text="It applies to the calls after these. Empty: to every call.",
        widget=forms.NumberInput(attrs={"min": 0, "max": call_limits.MAX_CALLS}),
    )
    per = forms.CharField(required=False, help_text="minute, hour, day, week, or a time such as 10m or 7d.")
    of = forms.CharField(required=False, label="Counted", widget=forms.Select)

    @classmethod
    def initial_of(cls, value: catalog.GateRule) -> dict[str, Any]:
        """Return the fields of the form for a rule."""
        limit = value.more_than
        return {
            **super().initial_of(value),
            "tool_names": list(value.tools),
            "model_reads": value.reason,
            **{name: _typed(getattr(value, name)) for name in _CONDITIONS},
            "ends": "" if value.ends is None else grants.format_time(value.ends),
            "expires": value.expires or None,
            "calls": None if limit is None else limit.calls,
            "per": "hour" if limit is None else limit.per,
            "of": "agent" if limit is None else limit.of,
        }

    def set_choices(self, stored: catalog.Catalog) -> None:
        """Set the effects, kinds and risks to choose from."""
        self.choose("effect", [("deny", "Deny"), ("ask", "Ask"), ("allow", "Allow")])
        self.choose("of", list(_OF.items()))
        self.choose("kinds", [(kind, kind) for kind in agents.KINDS])
        self.choose("risks", [(risk, reasons.RISKS[risk].capitalize()) for risk in catalog.DENIED_RISKS])

    def entry(self) -> dict[str, Any]:
        """Return every key of the form with its value; None means the default."""
        conditions = {name: _read(self.values.get(name, "")) for name in _CONDITIONS}
        tools = entry_forms.merge(self.values["tool_names"], self.initial.get("tool_names", ()))
        return {
            **super().entry(),
            "tools": tools or None,
            "approvals": None if self.values["approvals"] == 1 else self.values["approvals"],
            "reason": self.values["model_reads"] or None,
            "more_than": self._limit(),
            **{name: read for name, (read, _) in conditions.items()},
        }

    def _limit(self) -> dict[str, Any] | None:
        if self.values["calls"] is None:
            return None
        limit = {"calls": self.values["calls"], "per": self.values["per"] or None}
        # As an entry is written: without what is the default.
        return limit if self.values["of"] in ("", "agent") else {**limit, "of": self.values["of"]}

    def check_rows(self) -> Mapping[str, str]:
        """Return why a condition cannot be read, by its field."""
        found = {name: _read(self.values.get(name, ""))[1] for name in _CONDITIONS}
        return {name: problem for name, problem in found.items() if problem}


def _typed(condition: str) -> str:
    return json.dumps(json.loads(condition), indent=2, ensure_ascii=False) if condition else ""


def _read(text: str) -> tuple[Any, str]:
    """Return the condition in a text (None if there is none), and why it cannot be read."""
    if not text.strip():
        return None, ""
    try:
        json.loads(text)
        # It also refuses what parsers read differently: of an argument that is named twice, only one would count.
        return strict_json.read_text(text, conf.API_BODY_DEPTH), ""
    except json.JSONDecodeError as error:
        return None, f"This is not JSON: line {error.lineno}, column {error.colno}: {error.msg}."
    except (ValueError, RecursionError) as error:
        return None, f"This cannot be read: {error}"


class Editor(entry_editor.Editor):
    """The editor of gate rules."""

    kind, form, template = "gate_rule", GateRule, "rules/_form.html"
    about = (
        "A rule decides about calls of tools that an agent has, by their arguments, and by what came before."
    )


@require_safe
def listing(request: http.Request) -> HttpResponse:
    """Show the list."""
    return responses.show(request, _Page(request), "rules/list.html")


class _Page(pieces.Page):
    """The list of gate rules."""

    def __init__(self, request: http.Request) -> None:
        index = access_index.load()
        all_agents = [access.agent for access in index.agents]
        self.rules = tuple(
            _Rule(index.catalog, rule, all_agents) for rule in index.catalog.gate_rules.values()
        )


class _Rule(pieces.View):
    """A gate rule, in words, with whom and what it concerns."""

    def __init__(
        self, stored: catalog.Catalog, rule: catalog.GateRule, all_agents: list[agents.Agent]
    ) -> None:
        effect = rule_effects.of(stored, rule, all_agents)
        self.rule = rule
        self.words = gate_rules.in_words(rule)
        self.ends = "" if rule.ends is None else words.in_full(rule.ends)
        self.has_ended = gate_rules.has_ended(rule, timezone.now())
        self.is_for_all_agents = not (rule.agents or rule.kinds or rule.sub_apps)
        self.is_for_all_tools = not (rule.tools or rule.toolkits or rule.plugins or rule.risks)
        self.agents, self.tools, self.notes = effect.agents, effect.tools, effect.notes
        self.some_agents, self.some_tools = effect.agents[:MAX_NAMES], effect.tools[:MAX_NAMES]
        self.more_agents = max(0, len(effect.agents) - MAX_NAMES)
        self.more_tools = max(0, len(effect.tools) - MAX_NAMES)


@require_safe
def page(request: http.Request, gate_rule: str) -> HttpResponse:
    """Show one rule."""
    return responses.show(request, _RulePage(request, gate_rule), "rules/rule.html")


class _RulePage(pieces.Page):
    """One gate rule."""

    def __init__(self, request: http.Request, gate_rule: str) -> None:
        index = access_index.load()
        stored = index.catalog.gate_rules.get(gate_rule)
        if stored is None:
            raise errors.NotFound("rule", gate_rule, index.catalog.gate_rules)
        self.line = _Rule(index.catalog, stored, [access.agent for access in index.agents])
        self.conditions = tuple(
            (word, _typed(text)) for word, text in (("When", stored.when), ("Unless", stored.unless)) if text
        )
        self.patterns_of_agents = (
            *(f"kind {kind}" for kind in stored.kinds),
            *(f"sub-app {key}" for key in stored.sub_apps),
        )
        self.patterns_of_tools = (
            *(key for key in stored.tools if key.endswith("*")),
            *(f"toolkit {key}" for key in stored.toolkits),
            *(f"plugin {name}" for name in stored.plugins),
            *(reasons.RISKS[risk] for risk in stored.risks),
        )
        self.asks = _Asks(stored) if stored.effect == "ask" else None
        self.labels = tuple(
            (word, names)
            for word, names in (("With labels", stored.labels), ("Without labels", stored.without))
            if names
        )
        self.limit = "" if stored.more_than is None else stored.more_than.words
        running = rule_effects.running(stored) if stored.more_than is not None else ()
        self.counts = tuple((each.subject, each.calls, words.in_full(each.resets)) for each in running)
        self.seen = json.dumps(belts.entry("gate_rule", stored), ensure_ascii=False)


class _Asks(pieces.View):
    """What a rule that asks needs, and how people have decided lately."""

    def __init__(self, rule: catalog.GateRule) -> None:
        figures = asked_calls.figures(rule.key, DAYS)
        seconds = rule.expires or conf.APPROVAL_EXPIRES
        self.days, self.figures = DAYS, figures
        self.people = (
            words.counted(rule.approvals, "person") if rule.approvals == 1 else f"{rule.approvals} people"
        ) + (f" of {words.listing(rule.approvers)}" if rule.approvers else "")
        self.expires = words.span(dt.timedelta(seconds=seconds)) + (
            "" if rule.expires else ", the installation’s setting"
        )
        self.median_wait = "" if figures.median_wait is None else words.span(figures.median_wait)
        decided = figures.approved + figures.rejected
        self.advice = ""
        if figures.approved >= MANY and figures.approved == decided:
            self.advice = (
                f"All {decided} calls that were decided about were approved. Who is asked too often approves without"
                " reading: narrow the condition, or write a rule that allows what is always right."
            )
