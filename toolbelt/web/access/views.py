"""The Access page of an agent, and the parts of it that a change affects."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from django import forms
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from toolbelt.control.access import access_index, switches
from toolbelt.control.people import rights
from toolbelt.control.reports import queries
from toolbelt.core import effects, errors, risks
from toolbelt.runtime import surfaces
from toolbelt.web import agents
from toolbelt.web.access import decisions
from toolbelt.web.kit import (
    audit_words,
    fields,
    filters,
    http,
    model_panel,
    notices,
    paging,
    periods,
    pieces,
    responses,
    titles,
    tool_search,
    tool_sections,
    words,
)

# With more tools than this, the tools of a section are fetched when it is opened.
MAX_AT_ONCE = 100
SECTIONS_AT_ONCE = 100
# The groups of sections in their order, and those that are initially folded.
_GROUPS = {"on": "On", "request": "On request", "off": "Off", "loose": "Not in a toolkit"}
_ORDER, _FOLDED = tuple(_GROUPS), ("off", "loose")
_SORTS = {"": "By state", "policy": "Policy order"}
_SHOW_CHOICES = {"": "All", "active": "On", "overridden": "Overridden", "destructive": "May be destructive"}
_BLOCK = [rights.permission("change", kind) for kind in ("tool", "toolkit")]


class Access(forms.Form):
    """The filters of the Access page. Invalid values are ignored."""

    q = fields.Query()
    show = forms.ChoiceField(required=False, choices=list(_SHOW_CHOICES.items()))
    sort = forms.ChoiceField(required=False, choices=list(_SORTS.items()))
    message = forms.CharField(required=False, max_length=4000)
    offset = fields.Offset()


@require_safe
def page(request: http.Request, agent: str) -> HttpResponse:
    """Show the page; htmx gets only the sections, or the tools of the section that was opened."""
    criteria, target = filters.read(Access(request.GET)), request.htmx.target or ""
    view = _Page(request, queries.access(agent, criteria["message"]), criteria)
    if target == "sections":
        return render(request, "access/_sections.html", {"page": view, "is_partial": True})
    if target.endswith(":tools"):
        section_id = target.removesuffix(":tools")
        for section in (section for group in view.groups for section in group.sections):
            if section.id == section_id:
                return render(request, "access/_toolkit.html#tools", {"page": view, "section": section})
        raise Http404(f"There is no section {section_id!r}.")
    return render(request, "access/access.html", {"page": view})


@require_safe
def effect(request: http.Request, agent: str, key: str) -> HttpResponse:
    """Show the effect of turning a toolkit or tool on or off, or resetting it: in its menu, or on a page."""
    template = "access/_actions.html" if request.htmx else "access/effect.html"
    return render(request, template, {"page": _Effect(request, agent, key)})


class _Effect(pieces.Page):
    """The effect of each state of a toolkit's switch or a tool's override, and more actions."""

    words, spans = pieces.SWITCH_ACTIONS[:2], tuple(periods.SPANS.items())

    def __init__(self, request: http.Request, agent: str, key: str) -> None:
        stored = switches.current_value(agent, key)
        previews = switches.previews(agent, key, [on for on in (True, False, None) if on is not stored])
        toolkit = access_index.catalog_view().catalog.toolkits.get(key)
        self.agent, self.key, self.was = agent, key, words.form_value(stored)
        # The state without a preview is the current one.
        self.lines = [
            (word, previews.get(on), words.form_value(on))
            for on, word in ((True, "On"), (False, "Off"), (None, "Default"))
        ]
        self.kind, flip = ("tool", "override") if toolkit is None else ("toolkit", "switch")
        self.what = titles.of(toolkit) if toolkit is not None else key
        self.flip_url = reverse(f"web:{flip}", args=[agent, key])
        self.flip_view, self.entry_view = f"web:{flip}", f"web:{self.kind}"
        self.block_view = f"web:block_{self.kind}"
        self.may_change = rights.may_flip(request.user, agent) and not switches.is_archived(agent)
        self.may_block = request.user.has_perms(_BLOCK)


@require_safe
def why(request: http.Request, agent: str, key: str) -> HttpResponse:
    """Show why a tool or a toolkit's tools are on or off: in a popover beside the reason, or on a page."""

    def may(kind: str) -> bool:
        if kind == "agent":
            return rights.may_flip(request.user, agent)
        return request.user.has_perm(rights.permission("change", kind))

    page = decisions.Why(queries.access(agent), key, may=may, arguments=request.GET.get("arguments", ""))
    template = "access/_why.html" if request.htmx else "access/why.html"
    return render(request, template, {"page": page})


@require_safe
def directive(request: http.Request, agent: str) -> HttpResponse:
    """Show the directive for a message."""
    message = str(filters.read(Access(request.GET))["message"])
    result = surfaces.ask(agent, message=message)
    return render(
        request, "access/_directive.html", {"directive": model_panel.Directive(result.directive, message)}
    )


def render_partial(
    request: http.Request,
    agent: str,
    notice: notices.Notice,
    change: effects.Effect | None,
    status: int = 200,
    confirmation: notices.Confirmation | None = None,
) -> HttpResponse:
    """Return the parts of the Access page that the change affects, and a confirmation if there is one."""
    message = request.POST.get("message", "")[:4000]
    try:
        access = queries.access(agent, message)
    except errors.NotFound:
        # The agent was removed since the page was opened, or by this change.
        responses.keep_notice(request, notice)
        return responses.see_other(request, reverse("web:agents"))
    page = _Changed(request, access, notice, model_panel.Panel(access.surface, message, change))
    response = render(
        request, "kit/_answer.html", {"page": page, "confirmation": confirmation}, status=status
    )
    return as_of(response, agent, access.revision)


class _Changed(pieces.Page):
    """The parts of the Access page that a change affects: only tools and sections that the page shows."""

    may_change = True

    def __init__(
        self,
        request: http.Request,
        access: queries.Access,
        notice: notices.Notice,
        model: model_panel.Panel,
    ) -> None:
        tools, sections = (request.POST.get(name, "").split() for name in ("tools", "sections"))
        may_undo = _may_undo(request, access)
        self.agent = agents.Header(access.summary, may_undo=may_undo)
        self.model, self.notice = model, notice
        groups = tool_sections.groups(access)
        self.sections = [tool_sections.Section(access, group) for group in groups if group.id in sections]
        self.rows = tool_sections.rows(access, sorted({*tools} & access.catalog.tools.keys()))
        self.overridden = len(access.agent.overrides)
        self.announcement = f"{notice.text} {notice.detail}".strip()
        self.revision = access.revision


def _may_undo(request: http.Request, access: queries.Access) -> bool:
    return audit_words.may_undo_quickly(request.user, access.last)


def as_of(response: HttpResponse, agent: str, revision: int) -> HttpResponse:
    """Set the revision of these parts of the page, because responses may overtake each other (order.js)."""
    # If there is no such agent, the name is an arbitrary part of the URL.
    response.headers["X-Toolbelt-As-Of"] = f"{quote(agent)} {revision}"
    return response


class _Page(pieces.Page):
    """The Access page, or the part of it that a filter or an opened section changes."""

    bulk = tuple((kind, kind.capitalize(), pieces.SWITCH_ACTIONS) for kind in ("tools", "toolkits"))

    def __init__(self, request: http.Request, access: queries.Access, criteria: Mapping[str, Any]) -> None:
        self.notice, change = (None, None) if request.htmx.target else responses.pop_notice(request)
        self.agent = agents.PageHeader(access.summary, may_undo=_may_undo(request, access))
        self.filter = _Filter(request, access, criteria)
        self.query = urlencode(_address(criteria))
        self.model = model_panel.Panel(access.surface, criteria["message"], change)
        self.may_change = rights.may_flip(request.user, access.agent.key) and not access.agent.archived
        opened, pairs = request.GET.getlist("open"), self.filter.pairs
        is_short = sum(len(keys) for _, keys in pairs) <= MAX_AT_ONCE
        states = {group.id: tool_sections.state(access, group) for group, _ in pairs}
        if not criteria["sort"]:
            pairs.sort(key=lambda pair: _ORDER.index(states[pair[0].id]))
        part = paging.part(pairs, _start(pairs, criteria, opened), SECTIONS_AT_ONCE)
        self.pages = part.pages(_address(criteria), request.path)
        is_open = {
            group.id: group.id in opened or (self.filter.is_filtered and is_short) for group, _ in part.items
        }
        # The rows of a section that is closed are fetched when it is opened.
        shown = {key for group, keys in part.items if is_open[group.id] or is_short for key in keys}
        rows = dict(zip(shown, tool_sections.rows(access, shown), strict=True))
        sections = [
            tool_sections.Section(
                access,
                group,
                is_open=is_open[group.id],
                matching=len(keys),
                tools=[rows[key] for key in keys] if is_open[group.id] or is_short else None,
            )
            for group, keys in part.items
        ]
        counts = Counter(states.values())
        self.groups: list[_Group] = []
        if criteria["sort"]:
            self.groups = [_Group(sections=sections)]
            return
        for state, in_state in itertools.groupby(sections, key=lambda section: section.state):
            group = _Group(sections=list(in_state), state=state, label=_GROUPS[state], count=counts[state])
            group.folds = state in _FOLDED
            is_alone = not set(counts).difference(_FOLDED)
            is_opened = any(section.id in opened for section in group.sections)
            group.open = not group.folds or self.filter.is_filtered or is_alone or is_opened
            self.groups.append(group)


class _Filter(pieces.View):
    """The filter of the page, and the sections that match, with their tools."""

    def __init__(self, request: http.Request, access: queries.Access, criteria: Mapping[str, Any]) -> None:
        self.query, self.show, self.sort = criteria["q"], criteria["show"], criteria["sort"]
        self.show_choices = pieces.choices(
            _SHOW_CHOICES, self.show, counts={"overridden": len(access.agent.overrides)}
        )
        self.is_filtered = bool(self.query or self.show)
        self.chosen = 1 if self.show else 0
        self.pairs = _matching(access, criteria)
        tools = {key for _, keys in self.pairs for key in keys}
        self.matches = f"{words.tools(len(tools))} in {words.counted(len(self.pairs), 'section')}."
        parameters = {**_address(criteria), "offset": ""}
        self.orders = [
            # The label, whether it is the current one, and the URL.
            (label, sort == self.sort, filters.address(request.path, {**parameters, "sort": sort}))
            for sort, label in _SORTS.items()
        ]


@dataclass(slots=True, kw_only=True)
class _Group:
    """The sections in one state, with their heading; in policy order, all sections, without one."""

    sections: Sequence[tool_sections.Section]
    state: str = ""
    label: str = ""
    count: int = 0
    folds: bool = False
    open: bool = True


def matching(
    access: queries.Access, criteria: Mapping[str, Any], selected: Collection[str]
) -> dict[str, list[str]]:
    """Return the matching ``tools`` without duplicates, and the ``toolkits`` that contain any of them; only those of
    the ``selected`` sections, if any are selected.
    """
    pairs = [pair for pair in _matching(access, criteria) if not selected or pair[0].id in selected]
    return {
        "tools": list(dict.fromkeys(key for _, keys in pairs for key in keys)),
        "toolkits": [group.key for group, keys in pairs if keys and group.toolkit is not None],
    }


def _matching(
    access: queries.Access, criteria: Mapping[str, Any]
) -> list[tuple[tool_sections.Group, list[str]]]:
    """Return the matching sections in policy order, with their matching tools."""
    groups, query = list(tool_sections.groups(access)), criteria["q"]
    named = {group.id for group in groups if query and words.contains(query, *_names(group))}
    # A text that names a section filters; any other text also finds tools by their meaning.
    find = tool_search.containing if named else tool_search.find
    found = frozenset(find(access.catalog, query, access.catalog.tools))
    matching_groups = (
        (
            group,
            [
                key
                for key in group.tools
                if (key in found or group.id in named) and _matches(access, key, criteria["show"])
            ],
        )
        for group in groups
    )
    return [(group, keys) for group, keys in matching_groups if keys or not (query or criteria["show"])]


def _names(group: tool_sections.Group) -> tuple[str, ...]:
    return (group.toolkit.key, group.toolkit.title) if group.toolkit else (group.key,)


def _matches(access: queries.Access, key: str, show: str) -> bool:
    match show:
        case "active":
            return key in access.surface.because
        case "overridden":
            return key in access.agent.overrides
        case "destructive":
            return risks.of(access.catalog.tools[key]) == "destructive"
    return True


def _address(criteria: Mapping[str, Any]) -> dict[str, Any]:
    return {name: criteria[name] for name in ("q", "show", "sort", "offset") if criteria[name]}


def _start(
    matching: Sequence[tuple[tool_sections.Group, Sequence[str]]],
    criteria: Mapping[str, Any],
    opened: Sequence[str],
) -> int:
    """Return the offset of the address, or of the page with the first section that the address opens."""
    if criteria["offset"] or not opened:
        return int(criteria["offset"] or 0)
    indexes = (index for index, (group, _) in enumerate(matching) if group.id in opened)
    return next(indexes, 0) // SECTIONS_AT_ONCE * SECTIONS_AT_ONCE
