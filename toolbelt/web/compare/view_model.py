"""The view model of a comparison of two agents."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from django.urls import reverse
from django.utils.http import urlencode

from toolbelt.control.agents import agent_versions, comparing, copying
from toolbelt.core import agents as values
from toolbelt.core import belts, errors, grants
from toolbelt.web import agents
from toolbelt.web.kit import audit_words, http, model_panel, paging, pieces, titles, words

_LOADOUT = "loadout:"
OUTCOMES_AT_ONCE = 20
# The rank of a tool that is on for neither side; tools that are on for one side come first.
_NEITHER = 2
_SETTINGS = {
    "session_loadouts": "Session loadouts",
    "subagent_kinds": "Subagents",
    "denied_risks": "Risks that are off",
    "mcp_loading": "Loading over MCP",
}
_LOADABLE = {"allowed": "may be loaded", "initial": "in every session", None: "may not be loaded"}
_ORDERS = {"always-on": "order of the always-on tools", "loadable": "order of the loadable toolkits"}


class Page(pieces.Page):
    """The page for the two sides in ``criteria``.

    ``may_copy`` returns the parts of an agent that the reader may change: all (empty), some, or none (None).
    """

    def __init__(
        self,
        request: http.Request,
        criteria: Mapping[str, Any],
        may_copy: Callable[[str], tuple[str, ...] | None],
    ) -> None:
        names = {side: _side_name(criteria[side], criteria[f"{side}_at"]) for side in ("a", "b")}
        path = request.path
        self.problem, self.comparison = "", None
        if all(names.values()):
            try:
                comparison = comparing.compare(names["a"], names["b"])
                parts = may_copy(comparison.b.key) if comparison.b.is_now else None
                self.comparison = _Differences(comparison, names, criteria, path, parts)
            except (errors.NotFound, errors.Invalid) as error:
                self.problem = str(error)
        options, loadouts = titles.agent_options(), comparing.loadout_names()
        self.a = _Chooser("a", "From", names["a"], options, loadouts)
        self.b = _Chooser("b", "To", names["b"], options, loadouts)
        self.others: tuple[tuple[str, str], ...] = ()
        if not all(names.values()):
            # Links that choose the missing side, the first one before the second.
            empty, chosen = ("b", names["a"]) if names["a"] else ("a", names["b"])
            part = paging.part([key for key in options if key != chosen], criteria["offset"])
            named = {name: value for name, value in names.items() if value}
            label = options.get(chosen, chosen.removeprefix(_LOADOUT))
            self.others_title = f"Compare {label} with" if chosen else "Choose the first agent"
            self.others = tuple(
                (options[key], f"{path}?{urlencode(dict(sorted({**named, empty: key}.items())))}")
                for key in part.items
            )
            self.others_pages = part.pages(named, path)


def url(a: str, b: str) -> str:
    """Return the URL of a comparison."""
    return reverse("web:compare", query={"a": a, "b": b})


def changes(plan: copying.Plan) -> Iterator[pieces.Difference]:
    """Yield the changes of a copy: its rows, and the added and removed tools."""
    for row in plan.rows:
        view = _Row(row, plan.comparison, frozenset())
        yield pieces.Difference(label=view.label, is_tool=view.is_tool, before=view.b, after=view.a)
    yield from model_panel.tool_changes(plan.effect.added, plan.effect.removed)


def version(agent_version: agent_versions.Version) -> str:
    """Return the label of a version of an agent: ``after olive turned off devops``."""
    if agent_version.last is None:
        return "before its first recorded change"
    return f"after {audit_words.sentence(agent_version.last)}"


def past_warnings(agent_version: agent_versions.Version) -> Iterator[str]:
    """Yield the reasons why a past version may be inaccurate."""
    if agent_version.gaps:
        yield f"Uncertain, because changes were made outside the audit log: {words.listing(agent_version.gaps, 5)}."
    if agent_version.is_uncertain:
        yield "Uncertain, because something was changed outside the audit log since: the audit log says when."
    if agent_version.missing:
        yield f"Removed since, so it cannot be copied: {words.listing(agent_version.missing, 5)}."


def _side_name(name: str, at: Any) -> str:
    """Return the name of a side with the typed time, unless the name has a version already."""
    return f"{name}@{at.isoformat()}" if at and name and "@" not in name and ":" not in name else name


class _Differences(pieces.View):
    """The differences of two sides, and the tools whose states differ."""

    def __init__(
        self,
        comparison: comparing.Comparison,
        names: Mapping[str, str],
        criteria: Mapping[str, Any],
        path: str,
        parts: tuple[str, ...] | None,
    ) -> None:
        outcomes = sorted(
            (_Outcome(outcome, comparison) for outcome in comparison.outcomes),
            key=lambda outcome: outcome.rank,
        )
        active = [outcome for outcome in outcomes if outcome.rank < _NEITHER]
        listed = outcomes if criteria["show"] == "all" else active
        part = paging.part(listed, criteria["offset"], OUTCOMES_AT_ONCE)
        closed = {row.id for row in comparison.rows if parts and row.part not in parts}
        self.a = _Side(comparison.a, comparison)
        self.b = _Side(comparison.b, comparison)
        self.a_spelled = names["a"]
        self.b_spelled = names["b"]
        self.groups = tuple(_groups(comparison, closed))
        self.count = len(comparison.rows)
        self.copyable = len(comparison.rows) - len(comparison.not_copyable | closed)
        self.outcomes = part.items
        self.outcomes_pages = part.pages({**names, "show": criteria["show"]}, path, anchor="#outcomes-title")
        self.show_choices = pieces.choices(
            {"": "On for either side", "all": "All"},
            "all" if criteria["show"] == "all" else "",
            counts={"": len(active), "all": len(outcomes)},
        )
        self.total = len(outcomes)
        self.to = _name(comparison.b, comparison) if parts is not None else ""
        self.is_now = comparison.b.is_now


class _Outcome(pieces.View):
    """A tool whose state differs; ``only`` says for which side it is on, and ``rank`` sorts by that."""

    def __init__(self, outcome: comparing.Outcome, comparison: comparing.Comparison) -> None:
        if outcome.a.state == "active":
            rank, only = 0, _on_only_for(comparison.a, comparison)
        elif outcome.b.state == "active":
            rank, only = 1, _on_only_for(comparison.b, comparison)
        else:
            rank, only = _NEITHER, "Not on for either"
        self.tool = outcome.tool
        self.a = outcome.a
        self.b = outcome.b
        self.rank = rank
        self.only = only


def _on_only_for(side: comparing.Side, comparison: comparing.Comparison) -> str:
    """Return the heading above a side's tools, which names the version if both sides are the same agent."""
    heading = f"On only for {_name(side, comparison)}"
    return f"{heading}, {_about(side)}" if comparison.a.key == comparison.b.key else heading


class _Side(pieces.View):
    """One side: an agent, a version of one, or a loadout."""

    def __init__(self, side: comparing.Side, comparison: comparing.Comparison) -> None:
        version = side.version
        self.name = _name(side, comparison)
        self.about = _about(side)
        self.at = version.last.at if version and version.last else None
        self.profile = agents.profile(side.resolved.context.agent, side.loadout) if side.key else "loadout"
        self.spent = side.resolved.spent
        self.shares = model_panel.shares(side.resolved.spent)
        self.notes = tuple(past_warnings(version)) if version else ()
        self.url = _url_of(side)


def _name(side: comparing.Side, comparison: comparing.Comparison) -> str:
    """Return the agent's title, with its key if the other agent has the same title; or the name of the loadout."""
    if not side.key:
        return side.loadout
    other = comparison.b if side is comparison.a else comparison.a
    agent, other_agent = side.resolved.context.agent, other.resolved.context.agent
    is_ambiguous = agent.title == other_agent.title and side.key != other.key
    return titles.option(side.key, agent.title) if is_ambiguous else titles.of(agent)


def _about(side: comparing.Side) -> str:
    """Return the version of a side, or a note that it is a loadout without an agent."""
    if not side.key:
        return "on its own, as for an agent without other settings"
    return "current version" if side.version is None else version(side.version)


def _url_of(side: comparing.Side) -> str:
    if not side.key:
        return ""
    if side.version is None:
        return reverse("web:agent_access", args=[side.key])
    _, at = comparing.parse_version(side.name, "")
    return reverse("web:preview", args=[side.key], query={"at": comparing.format_version("", at)[1:]})


def _groups(
    comparison: comparing.Comparison, closed: Collection[str]
) -> Iterator[tuple[str, Sequence[_Row]]]:
    toolkits = comparison.a.resolved.context.catalog.toolkits
    rows_by_title: dict[str, list[_Row]] = {}
    for row in comparison.rows:
        rows_by_title.setdefault(_title(row, toolkits), []).append(_Row(row, comparison, closed))
    for title in ("Settings", "Switches", "Overrides", "Always-on tools", "Loadable toolkits"):
        if title in rows_by_title:
            yield title, rows_by_title[title]


def _title(row: belts.Row, toolkits: Collection[str]) -> str:
    match row.part, row.name:
        case "switch", key:
            return "Switches" if key in toolkits else "Overrides"
        case ("always-on", _) | ("order", "always-on"):
            return "Always-on tools"
        case ("loadable", _) | ("order", _):
            return "Loadable toolkits"
    return "Settings"


class _Row(pieces.View):
    """One difference."""

    def __init__(self, row: belts.Row, comparison: comparing.Comparison, closed: Collection[str]) -> None:
        name = row.name
        if row.part == "setting":
            name = _SETTINGS.get(name, name.capitalize())
        elif row.part == "order":
            name = _ORDERS[name]
        self.id = row.id
        self.label = name
        self.is_tool = row.part in ("switch", "always-on")
        self.a = _value(row, row.a, comparison.a)
        self.b = _value(row, row.b, comparison.b)
        self.lost = (
            "cannot be copied: removed or expired"
            if row.id in comparison.not_copyable
            else "you do not have permission to copy this"
            if row.id in closed
            else ""
        )


def _value(row: belts.Row, value: Any, side: comparing.Side) -> str:
    match row.part:
        case "switch":
            end = grants.parse_time(value.get("ends")) if isinstance(value, Mapping) else None
            state = words.state(value["on"] if isinstance(value, Mapping) else value)
            return f"{state} until {words.in_full(end)}" if end else state
        case "always-on":
            if value is None:
                return "not always on"
            return "always on" if value is True else f"always on, with {words.value(value)}"
        case "loadable":
            return _LOADABLE[value]
        case "order":
            return ", ".join(value)
    if row.name == "loadout" and value is None and side.loadout:
        return f"{side.loadout}, from its kind"
    if row.name == "budget":
        return _budget(value)
    if isinstance(value, list):
        return ", ".join(value)
    if row.name == "protected":
        return "yes" if value else "no"
    return words.value(value)


def _budget(budget: Mapping[str, Any] | None) -> str:
    if not budget:
        return "none"
    limits = [
        f"{words.limit(budget[name])} {unit}"
        for name, unit in (("max_tools", "tools"), ("max_tokens", "tokens"))
        if name in budget
    ]
    on_exceed = budget.get("on_exceed", values.ON_EXCEED[0])
    return f"{' and '.join(limits) or 'no limit'}; when exceeded: {on_exceed}"


class _Chooser(pieces.View):
    """The choice of a side."""

    def __init__(
        self, name: str, label: str, chosen: str, options: Mapping[str, str], loadouts: Sequence[str]
    ) -> None:
        agents = {"": "Choose an agent"}
        key, is_version, at = chosen.partition("@")
        if is_version and not at.startswith("2"):
            # A version by the number of a change is a separate option until another one is chosen.
            agents[chosen] = f"{options.get(key, key)}, after change {at}"
            key, at = chosen, ""
        self.name = name
        self.label = label
        self.agents = pieces.choices({**agents, **options}, key if is_version else chosen)
        self.loadouts = pieces.choices({f"{_LOADOUT}{loadout}": loadout for loadout in loadouts}, chosen)
        self.at = at[:16]
