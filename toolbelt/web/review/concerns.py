"""What needs attention, in words, with links to the pages that resolve it."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils import timezone

from toolbelt.control import trials
from toolbelt.control.catalog import unresolved
from toolbelt.control.config import drift
from toolbelt.control.people import rights
from toolbelt.control.reports import attention, error_spikes, queries
from toolbelt.core import catalog
from toolbelt.web import agents
from toolbelt.web.kit import model_panel, periods, texts, titles, words

MAX_ERROR_LENGTH = 160
# The most findings, and different errors, that a line quotes.
MAX_DETAILS = 2
_DEFERRED = "deferred by budget"


@dataclass(frozen=True, slots=True)
class Concern:
    """One line: ``state`` is the shape beside it, ``action`` the label of the link to ``url``."""

    state: str
    title: str
    about: str
    url: str
    action: str = "View"


# Returns the line; pages show some of the lines, and count all.
Line = Callable[[], Concern]


def lines(
    report: attention.Attention, spikes: Sequence[error_spikes.Spike], waiting: Mapping[str, int]
) -> list[Line]:
    """Return what needs attention: calls that are ``waiting`` for the user, by agent, what may be dangerous, blocks and
    failures, tools to review, unusual settings.
    """
    found = [(report.stored.plugins[name], flags) for name, flags in report.findings.items()]
    blocked = _each(_block, report.blocked) if len(report.blocked) < 2 else _each(_blocks, [report.blocked])
    return [
        *([functools.partial(_waiting, report, waiting)] if waiting else []),
        *_each(_findings, found),
        *_spikes(report, spikes),
        *blocked,
        *_failures(report),
        *_reviews(report),
        *_each(_instructions, report.instructions),
        *_unusual(report),
    ]


def others(report: attention.Attention, spikes: Sequence[error_spikes.Spike]) -> list[Line]:
    """Return what needs attention besides the tools to review, with each block on a separate line."""
    return [
        *_spikes(report, spikes),
        *_each(_block, report.blocked),
        *_failures(report),
        *_unusual(report),
    ]


def _waiting(report: attention.Attention, waiting: Mapping[str, int]) -> Concern:
    """Return the line for the calls that wait for approval."""
    known = {summary.agent.key: titles.of(summary.agent) for summary in report.agents}
    names = [f"{known.get(agent, agent)} {words.number(count)}" for agent, count in waiting.items()]
    total = sum(waiting.values())
    return Concern(
        "discoverable",
        f"{words.counted(total, 'call')} {'waits' if total == 1 else 'wait'} for approval",
        f"{words.listing(names)}. Without an answer, they are refused.",
        reverse("web:approvals"),
        "Decide",
    )


def _findings(of_plugin: tuple[catalog.Plugin, Mapping[str, Sequence[str]]]) -> Concern:
    """Return the line for a plugin whose tools to review have findings, with the words of the first ones."""
    plugin, flags = of_plugin
    found = [
        f"{key.removeprefix(f'{plugin.namespace}__')}: {texts.visible(words.cut(flag, MAX_ERROR_LENGTH))}"
        for key, of_tool in flags.items()
        for flag in of_tool
    ]
    return Concern(
        "danger",
        f"{words.tools(len(flags))} of {titles.of(plugin)} to review {'has' if len(flags) == 1 else 'have'} findings",
        _first(found),
        reverse("web:review", query={"plugin": plugin.name}),
        "Review",
    )


def _first(details: Sequence[str]) -> str:
    """Return the first details, and the number of the others."""
    more = len(details) - MAX_DETAILS
    return "; ".join(details[:MAX_DETAILS]) + (f"; and {words.number(more)} more" if more > 0 else "")


def _spikes(report: attention.Attention, spikes: Sequence[error_spikes.Spike]) -> list[Line]:
    return [functools.partial(_spike, spike, report) for spike in spikes]


def _spike(spike: error_spikes.Spike, report: attention.Attention) -> Concern:
    """Return the line for a spike of errors: when, whose calls, and the words of the most frequent errors."""
    plugin = report.stored.plugins.get(spike.plugin)
    name = titles.of(plugin) if plugin else texts.visible(spike.plugin) or "Tools without a plugin"
    known = {summary.agent.key: titles.of(summary.agent) for summary in report.agents}
    by_agent = tuple(dict.fromkeys(kind.agent for kind in spike.kinds))
    tools = {kind.tool for kind in spike.kinds}
    callers = words.listing([known.get(key, texts.visible(key)) for key in by_agent])
    errors = [
        f"{words.number(kind.count)} × {texts.visible(words.cut(kind.error or kind.tool, MAX_ERROR_LENGTH))}"
        for kind in spike.kinds
    ]
    query = {"view": "log", "outcome": "error", "period": periods.CUSTOM}
    query |= {"since": f"{timezone.localdate(spike.first)}", "until": f"{timezone.localdate(spike.last)}"}
    query |= {"agent": by_agent[0]} if len(by_agent) == 1 else {}
    query |= {"tool": tools.pop()} if len(tools) == 1 else {}
    usual = f"{words.number(spike.usual)} usual" if spike.usual else "none usual"
    return Concern(
        "danger",
        f"{name}: {words.counted(spike.errors, 'error')} {words.time_span(spike.first, spike.last)}, {usual}",
        f"{callers}: {_first(errors)}",
        reverse("web:calls", query=query),
    )


def _failures(report: attention.Attention) -> list[Line]:
    """Return the failures, then the agents with a conflict or over budget, then those whose budget defers tools."""
    with_problem = [summary for summary in report.agents if agents.problem_label(summary.inventory)]
    with_problem.sort(key=lambda summary: agents.problem_label(summary.inventory) == _DEFERRED)
    return [
        *_each(_failed, report.failed_plugins),
        *_each(_sign_in_needed, report.sign_in_needed),
        *_each(_not_running, report.not_running),
        *_each(_of_agent, with_problem),
    ]


def _unusual(report: attention.Attention) -> list[Line]:
    by_loadout = itertools.groupby(report.unresolved, operator.attrgetter("loadout"))
    return [
        *_drift(report),
        *_each(_trial, report.trials),
        *_each(_stale, report.ineffective_overrides),
        *_each(_unresolved, [(loadout, tuple(missing)) for loadout, missing in by_loadout]),
    ]


def _drift(report: attention.Attention) -> list[Line]:
    found = report.drift
    return [functools.partial(_differing, found)] if found is not None and found.differences else []


def _differing(found: drift.Drift) -> Concern:
    count = len(found.differences)
    subject = "1 entry differs" if count == 1 else f"{words.number(count)} entries differ"
    return Concern(
        "discoverable",
        f"{subject} from the belt applied last",
        texts.visible(_first([*map(drift.line, found.differences)])),
        reverse("web:import_export"),
    )


def _trial(trial: trials.Trial) -> Concern:
    """Return the line for a draft that was tried, and is to be decided about: for everyone who logs in."""
    url, title = reverse("web:draft", args=[trial.draft]), texts.visible(trial.title)
    note = words.cut(texts.visible(trials.why(trial, rights.is_open)), MAX_ERROR_LENGTH)
    if trial.mode == "schedule":
        return Concern("danger", f"“{title}” was not applied at its time", note, url, "Decide")
    if trial.mode == "rollout":
        return Concern("danger", f"“{title}” is not rolled out any more", note, url, "Decide")
    if note:
        return Concern("discoverable", f"“{title}” could not be observed any longer", note, url, "Decide")
    return Concern("discoverable", f"“{title}” was observed", "Apply it, or discard it.", url, "Decide")


def _each(present: Callable[[Any], Concern], things: Iterable[Any]) -> list[Line]:
    return [functools.partial(present, thing) for thing in things]


def _failed(failed: attention.FailedPlugin) -> Concern:
    plugin = failed.plugin
    return Concern(
        "unavailable",
        f"{titles.of(plugin)} has failed",
        texts.visible(words.cut(failed.error, MAX_ERROR_LENGTH)) or "Its tools are unavailable.",
        reverse("web:plugin", args=[plugin.name]),
    )


def _sign_in_needed(failed: attention.FailedPlugin) -> Concern:
    return Concern(
        "unavailable",
        f"{titles.of(failed.plugin)} needs a sign-in",
        texts.visible(words.cut(failed.error, MAX_ERROR_LENGTH)),
        f"{reverse('web:plugin', args=[failed.plugin.name])}#sign-in",
        "Sign in",
    )


def _not_running(plugin: catalog.Plugin) -> Concern:
    return Concern(
        "unavailable",
        f"{words.tools(len(plugin.not_running))} of {titles.of(plugin)} not running",
        "No running process can run them. Restart Toolbelt's servers with the plugin listed, or turn it off.",
        reverse("web:plugin", args=[plugin.name]),
    )


def _reviews(report: attention.Attention) -> list[Line]:
    """Return the plugins with tools to review, without those that were listed for their findings."""
    return [
        functools.partial(_review, report.stored.plugins[name], count - flagged, flagged > 0)
        for name, count in report.to_review.items()
        if count > (flagged := len(report.findings.get(name, ())))
    ]


def _review(plugin: catalog.Plugin, count: int, is_rest: bool) -> Concern:
    verb = "awaits" if count == 1 else "await"
    number = words.counted(count, "more tool" if is_rest else "tool")
    return Concern(
        "discoverable",
        f"{number} of {titles.of(plugin)} {verb} review",
        "New or changed tools are unavailable until you approve them.",
        reverse("web:review", query={"plugin": plugin.name}),
        "Review",
    )


def _instructions(plugin: catalog.Plugin) -> Concern:
    what = "changed its instructions" if plugin.instructions_seen else "states instructions for models"
    return Concern(
        "discoverable",
        f"{titles.of(plugin)} {what}",
        "They reach no model, unless you use them as policy.",
        f"{reverse('web:review')}#instructions",
        "Review",
    )


def _block(blocked: tuple[str, str]) -> Concern:
    kind, name = blocked
    title = f"{kind.capitalize()} {texts.visible(name)} is blocked for everyone"
    return Concern(
        "denied", title, "No agent gets it, whatever its settings.", reverse(f"web:{kind}", args=[name])
    )


def _blocks(blocked: Sequence[tuple[str, str]]) -> Concern:
    title = f"{len(blocked)} entries blocked for everyone"
    names = words.listing([name for _, name in blocked])
    return Concern("denied", title, names, f"{reverse('web:review')}#attention")


def _of_agent(summary: queries.Summary) -> Concern:
    problem = agents.problem_label(summary.inventory)
    return Concern(
        "discoverable" if problem == _DEFERRED else "unavailable",
        f"{titles.of(summary.agent)}: {problem}",
        _budget(summary) if "budget" in problem else _warnings(summary),
        reverse("web:agent_access", args=[summary.agent.key]),
    )


def _warnings(summary: queries.Summary) -> str:
    contents = summary.inventory
    return " ".join(model_panel.warnings(contents.spent, len(contents.deferred), contents.conflicts))


def _budget(summary: queries.Summary) -> str:
    """Return how much of the budget is used, and its limits."""
    spent, budget = summary.inventory.spent, summary.agent.budget
    if budget is None:
        return ""
    limits = [
        f"{words.number(now)} of {words.limit(maximum)} {unit}"
        for now, maximum, unit in (
            (spent.tools, budget.max_tools, "tools"),
            (spent.tokens, budget.max_tokens, "tokens"),
        )
        if maximum is not None
    ]
    return f"{', '.join(limits)}. {_warnings(summary)}"


def _unresolved(of_loadout: tuple[str, Sequence[unresolved.Unresolved]]) -> Concern:
    loadout, missing_names = of_loadout
    denies = any(missing.field == "disabled" for missing in missing_names)
    names = words.listing(tuple(dict.fromkeys(missing.name for missing in missing_names)))
    return Concern(
        "denied" if denies else "discoverable",
        f"{loadout}: names that do not exist",
        f"{names}. {'Disabling them has no effect.' if denies else 'They add no tools.'}",
        reverse("web:loadout", args=[loadout]),
    )


def _stale(of_agent: tuple[queries.Summary, Sequence[attention.IneffectiveOverride]]) -> Concern:
    summary, overrides = of_agent
    agent, count = summary.agent, len(overrides)
    reasons = [
        f"{stale.tool} ({'on' if stale.on else 'off'}: {attention.explain_ineffective(summary, stale)})"
        for stale in overrides
    ]
    return Concern(
        "dormant",
        f"{count} override{' has' if count == 1 else 's have'} no effect for {titles.of(agent)}",
        words.listing(reasons, 2),
        reverse("web:agent_access", args=[agent.key], query={"show": "overridden"}),
    )
