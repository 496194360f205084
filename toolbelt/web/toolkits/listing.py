"""The list of toolkits, and an agent's switch of a toolkit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import HttpResponse
from django.views.decorators.http import require_safe

from toolbelt.control.access import access_index
from toolbelt.core import catalog
from toolbelt.core.rules import reasons, resolution
from toolbelt.web.kit import (
    fields,
    filters,
    http,
    paging,
    pieces,
    responses,
    saved_views,
    titles,
    tool_sections,
    words,
)

_SORTS: Mapping[str, Callable[[ToolkitUse], Any]] = {
    "toolkit": lambda use: (use.toolkit.title or use.toolkit.key).casefold(),
    "tools": lambda use: len(use.members),
    "tokens": lambda use: use.tokens,
    "users": lambda use: len(use.users),
}
_COLUMNS = {"toolkit": "Toolkit", "tools": "Tools", "tokens": "Tokens", "users": "Agents"}
_SHOW_CHOICES = {
    "": "All",
    "used": "In use",
    "unused": "Not in use",
    "blocked": "Blocked",
    "code": "From code",
}
# The state of a toolkit for an agent is the first of these that any of its members has.
_STATES = ("active", "discoverable", "unavailable", "denied", "dormant")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolkitUse:
    """A toolkit and its use: ``users`` have one of its tools, ``switches`` are the stored switches by agent."""

    toolkit: catalog.Toolkit
    members: tuple[str, ...]
    tokens: int
    users: tuple[str, ...]
    switches: Mapping[str, bool]
    agents: int


class Toolkits(forms.Form):
    """The filters, order and offset of the list of toolkits."""

    q = fields.Query()
    show = forms.CharField(required=False, max_length=20)
    sort = forms.CharField(required=False, max_length=20)
    offset = fields.Offset()


VIEWS = saved_views.FilteredList(page="toolkits", form=Toolkits, names=("q", "show", "sort"))


@require_safe
def page(request: http.Request) -> HttpResponse:
    """Show the list, filtered and sorted; htmx gets only its table."""
    return responses.show(request, _Page(request), "toolkits/list.html", "toolkits/_table.html")


class _Page(pieces.Page):
    """The list of toolkits, filtered and sorted."""

    def __init__(self, request: http.Request) -> None:
        criteria, index = filters.read(Toolkits(request.GET)), access_index.load()
        uses = [use_of(index, toolkit) for toolkit in index.catalog.toolkits.values()]
        matches = [toolkit for toolkit in uses if _matches(toolkit, criteria)]
        sort = paging.sort(matches, _SORTS, criteria["sort"])
        part = paging.part(matches, criteria["offset"])
        self.toolkits = tuple(map(Line, part.items))
        self.pages = part.pages(criteria, request.path)
        self.columns = paging.columns(_COLUMNS, criteria, sort, request.path, ("tools", "tokens", "users"))
        self.query = criteria["q"]
        self.show_choices = paging.show_choices(_SHOW_CHOICES, criteria["show"], uses, _matches)
        self.sort = sort
        self.is_filtered = bool(criteria["q"] or criteria["show"])
        self.total = len(uses)
        self.matches = words.counted(len(matches), "toolkit") + (
            "" if sort else " in the order of the policy"
        )
        self.views = VIEWS.present(request, criteria)


def use_of(index: access_index.AccessIndex, toolkit: catalog.Toolkit) -> ToolkitUse:
    """Return the use of a toolkit."""
    stored = index.catalog
    members = tuple(key for key in access_index.members(stored, toolkit) if key not in stored.non_tools)
    return ToolkitUse(
        toolkit=toolkit,
        members=members,
        tokens=sum(index.catalog.tools[key].tokens for key in members),
        users=tuple(index.users.get(toolkit.key, ())),
        switches=index.switches.get(toolkit.key, {}),
        agents=len(index.agents),
    )


class Line(pieces.View):
    """A toolkit as a row of the list."""

    def __init__(self, toolkit_use: ToolkitUse) -> None:
        users, counts = len(toolkit_use.users), Counter(toolkit_use.switches.values())
        self.key = toolkit_use.toolkit.key
        self.title = toolkit_use.toolkit.title or toolkit_use.toolkit.key
        self.description = toolkit_use.toolkit.description
        self.marks = tuple(marks(toolkit_use.toolkit))
        self.tools = words.number(len(toolkit_use.members))
        self.tokens = words.approx(toolkit_use.tokens)
        self.in_use = bool(users)
        self.blocked = toolkit_use.toolkit.blocked
        self.users = f"{words.number(users)} of {words.number(toolkit_use.agents)}"
        self.percent = round(100 * users / toolkit_use.agents) if toolkit_use.agents else 0
        # The number of agents with a stored switch.
        self.switched = ", ".join(
            f"{words.state(on)} for {words.number(counts[on])}" for on in (True, False) if counts[on]
        )


def marks(toolkit: catalog.Toolkit) -> Iterable[tool_sections.Mark]:
    """Yield the labels beside a toolkit's title on every page."""
    if toolkit.blocked:
        yield tool_sections.Mark(word=words.blocked(toolkit.block_ends), tone="danger")
    if toolkit.plugin:
        yield tool_sections.Mark(word=f"from plugin {toolkit.plugin}")


class Cell(pieces.View):
    """An agent's switch of a toolkit, as a control if ``may_change`` is set."""

    def __init__(
        self, access: access_index.AgentAccess, toolkit: catalog.Toolkit, *, may_change: bool
    ) -> None:
        decisions = list(access.decisions(toolkit).values())
        on = access.agent.switches.get(toolkit.key)
        state = next(
            (word for word in _STATES if any(decision.state == word for decision in decisions)), "dormant"
        )
        active = sum(decision.state == "active" for decision in decisions)
        word = f"{active} of {len(decisions)} on" if active else words.STATES[state]
        if state == "denied" and any(decision.code == "blocked" for decision in decisions):
            word = words.BLOCKED
        self.agent = access.agent.key
        self.toolkit = toolkit.key
        self.id = f"at:{access.agent.key}:{toolkit.key}"
        self.label = f"{titles.of(toolkit)} for {titles.of(access.agent)}"
        self.switch = tool_sections.Switch(on, decisions)
        self.state = state
        self.word = word
        self.short = f"{active}/{len(decisions)}" if active else word
        self.reason = _reason(decisions, state)
        self.protected = access.agent.protected
        self.may_change = may_change


def _reason(decisions: Iterable[resolution.Decision], state: str) -> str:
    """Return the most common reason for this state."""
    counts = Counter(reasons.explain(decision) for decision in decisions if decision.state == state)
    if not counts:
        return "no tools"
    (reason, _), *others = counts.most_common()
    return f"{reason}, and {words.counted(len(others), 'other reason')}" if others else reason


def _matches(toolkit_use: ToolkitUse, criteria: Mapping[str, Any]) -> bool:
    toolkit = toolkit_use.toolkit
    texts = (toolkit.key, toolkit.title, toolkit.description, *toolkit_use.members)
    if not words.contains(criteria["q"], *texts):
        return False
    match criteria["show"]:
        case "used":
            return bool(toolkit_use.users)
        case "unused":
            return not toolkit_use.users
        case "blocked":
            return toolkit.blocked
        case "code":
            return bool(toolkit.plugin)
    return True
