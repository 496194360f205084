"""The Access page of one agent, and its parts that a change affects."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from django import forms
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from toolbelt.control.access import switches
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
    tool_sections,
    words,
)

# Above so many tools, a section brings its tools when it is opened.
MAX_AT_ONCE = 100
SECTIONS_AT_ONCE = 100
# The groups of sections, in their order; those that fold are folded at first.
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
    """Show the page; to htmx only the sections, or the tools of the one section that was opened."""
    given, target = filters.read(Access(request.GET)), request.htmx.target or ""
    access = queries.access(agent, given["message"])
    shown = _page(request, access, given)
    if target == "sections":
        return render(request, "access/_sections.html", {"page": shown, "in_place": True})
    if target.endswith(":tools"):
        wanted = target.removesuffix(":tools")
        for section in (section for group in shown.groups for section in group.sections):
            if section.id == wanted:
                return render(request, "access/_toolkit.html#tools", {"page": shown, "section": section})
        raise Http404(f"There is no section {wanted!r}.")
    return render(request, "access/access.html", {"page": shown})


@require_safe
def effect(request: http.Request, agent: str, key: str) -> HttpResponse:
    """Show what turning a toolkit or a tool on, off, or neither would do: in the menu beside it, or on a page."""
    had = switches.current_value(agent, key)
    would = switches.previews(agent, key, [on for on in (True, False, None) if on is not had])
    # The one not there is current.
    lines = tuple((word, would.get(on)) for on, word in ((True, "On"), (False, "Off"), (None, "Default")))
    template = "access/_effects.html" if request.htmx else "access/effect.html"
    return render(request, template, {"page": pieces.View(agent=agent, key=key, lines=lines)})


@require_safe
def why(request: http.Request, agent: str, key: str) -> HttpResponse:
    """Show why a toolkit's tools or a tool are on or off: in a popover beside the reason, or on a page."""

    def may(kind: str) -> bool:
        if kind == "agent":
            return rights.may_flip(request.user, agent)
        return request.user.has_perm(rights.permission("change", kind))

    page = decisions.page(queries.access(agent), key, may=may)
    template = "access/_why.html" if request.htmx else "access/why.html"
    return render(request, template, {"page": page})


@require_safe
def directive(request: http.Request, agent: str) -> HttpResponse:
    """Show the directive that a message leads to."""
    message = str(filters.read(Access(request.GET))["message"])
    answer = surfaces.ask(agent, message=message)
    return render(
        request, "access/_directive.html", {"directive": model_panel.directive(answer.directive, message)}
    )


def render_partial(
    request: http.Request,
    agent: str,
    notice: notices.Notice,
    change: effects.Effect | None,
    status: int = 200,
    question: notices.Confirmation | None = None,
) -> HttpResponse:
    """Return the parts of the Access page that the change affects, and a question if there is one."""
    message = request.POST.get("message", "")[:4000]
    try:
        access = queries.access(agent, message)
    except errors.NotFound:
        # Gone since the page was opened, or by this very change.
        responses.keep_notice(request, notice)
        return responses.see_other(request, reverse("web:agents"))
    # Of the tools and sections that the page says it shows.
    tools, sections = (request.POST.get(name, "").split() for name in ("tools", "sections"))
    page = pieces.View(
        agent=_header(request, access),
        sections=tuple(
            tool_sections.section(access, group)
            for group in tool_sections.groups(access)
            if group.id in sections
        ),
        rows=tuple(tool_sections.row(access, key) for key in sorted({*tools} & access.catalog.tools.keys())),
        overridden=len(access.agent.overrides),
        model=model_panel.view(access.surface, message, change),
        notice=notice,
        announcement=f"{notice.text} {notice.detail}".strip(),
        may_change=True,
        revision=access.revision,
    )
    response = render(request, "kit/_answer.html", {"page": page, "confirmation": question}, status=status)
    return as_of(response, agent, page.revision)


def _header(request: http.Request, access: queries.Access) -> pieces.View:
    may_undo = audit_words.may_undo_quickly(request.user, access.last)
    return agents.present(access.summary, may_undo=may_undo)


def as_of(response: HttpResponse, agent: str, revision: int) -> HttpResponse:
    """Mark how new these parts of the page are: responses may overtake each other (order.js)."""
    # If there is no such agent, the name is whatever the address contains.
    response.headers["X-Toolbelt-As-Of"] = f"{quote(agent)} {revision}"
    return response


def _page(request: http.Request, access: queries.Access, given: Mapping[str, Any]) -> pieces.View:
    opened = request.GET.getlist("open")
    notice, change = (None, None) if request.htmx.target else responses.pop_notice(request)
    narrowed = bool(given["q"] or given["show"])
    pairs = _matching(access, given)
    tools = {key for _, keys in pairs for key in keys}
    few = sum(len(keys) for _, keys in pairs) <= MAX_AT_ONCE
    states = {group.id: tool_sections.state(access, group) for group, _ in pairs}
    if not given["sort"]:
        pairs.sort(key=lambda pair: _ORDER.index(states[pair[0].id]))
    shown = paging.part(pairs, _place(pairs, given, opened), SECTIONS_AT_ONCE)
    sections = []
    for group, keys in shown.items:
        section = tool_sections.section(access, group)
        section.open, section.matching = group.id in opened or (narrowed and few), len(keys)
        # The rows of a section that is closed are fetched when it is opened.
        section.tools = [tool_sections.row(access, key) for key in keys] if section.open or few else None
        sections.append(section)
    parameters = {**_address(given), "offset": ""}
    return pieces.View(
        agent=_header(request, access),
        # What the menu beside each control offers.
        acts=pieces.View(
            words=pieces.SWITCH_ACTIONS[:2],
            spans=tuple(periods.SPANS.items()),
            bulk=tuple((what, what.capitalize(), pieces.SWITCH_ACTIONS) for what in ("tools", "toolkits")),
            may_block=request.user.has_perms(_BLOCK),
        ),
        filter=pieces.View(
            query=given["q"],
            show=given["show"],
            sort=given["sort"],
            show_choices=pieces.choices(
                _SHOW_CHOICES, given["show"], counts={"overridden": len(access.agent.overrides)}
            ),
            narrowed=narrowed,
            chosen=1 if given["show"] else 0,
            matches=f"{words.tools(len(tools))} in {words.counted(len(pairs), 'section')}.",
            orders=tuple(
                pieces.View(
                    label=label,
                    chosen=given["sort"] == sort,
                    url=filters.address(request.path, {**parameters, "sort": sort}),
                )
                for sort, label in _SORTS.items()
            ),
        ),
        query=urlencode(_address(given)),
        groups=tuple(_groups(sections, Counter(states.values()), given, narrowed, opened)),
        pages=shown.pages(_address(given), request.path),
        model=model_panel.view(access.surface, given["message"], change),
        may_change=rights.may_flip(request.user, access.agent.key) and not access.agent.archived,
        notice=notice,
    )


def _groups(
    sections: Sequence[pieces.View],
    counts: Mapping[str, int],
    given: Mapping[str, Any],
    narrowed: bool,
    opened: Sequence[str],
) -> Iterator[pieces.View]:
    """Return the sections under their headings; in the order of the policy there are none."""
    if given["sort"]:
        yield pieces.View(sections=tuple(sections))
        return
    for state, each in itertools.groupby(sections, key=lambda section: section.state):
        inside = tuple(each)
        yield pieces.View(
            state=state,
            label=_GROUPS[state],
            count=counts[state],
            folds=state in _FOLDED,
            open=state not in _FOLDED
            or narrowed
            or not set(counts).difference(_FOLDED)
            or any(section.id in opened for section in inside),
            sections=inside,
        )


def matching(
    access: queries.Access, given: Mapping[str, Any], picked: Collection[str]
) -> dict[str, list[str]]:
    """Return the ``tools`` that the filter shows, once each, and the ``toolkits`` that have some of them; only those of
    the sections that are ``picked``, if any are.
    """
    pairs = [pair for pair in _matching(access, given) if not picked or pair[0].id in picked]
    return {
        "tools": list(dict.fromkeys(key for _, keys in pairs for key in keys)),
        "toolkits": [group.key for group, keys in pairs if keys and group.toolkit is not None],
    }


def _matching(
    access: queries.Access, given: Mapping[str, Any]
) -> list[tuple[tool_sections.Group, list[str]]]:
    """Return the sections that the filter shows, in the order of the policy, with those of their tools that fit."""
    every = (
        (group, [key for key in group.tools if _fits(access, group, key, given)])
        for group in tool_sections.groups(access)
    )
    return [(group, keys) for group, keys in every if keys or not (given["q"] or given["show"])]


def _fits(access: queries.Access, group: tool_sections.Group, key: str, given: Mapping[str, Any]) -> bool:
    if given["q"]:
        tool, toolkit = access.catalog.tools[key], group.toolkit
        names = (toolkit.key, toolkit.title) if toolkit else (group.key,)
        if not words.contains(given["q"], key, tool.title, tool.description, *names):
            return False
    match given["show"]:
        case "active":
            return key in access.surface.because
        case "overridden":
            return key in access.agent.overrides
        case "destructive":
            return risks.of(access.catalog.tools[key]) == "destructive"
    return True


def _address(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: given[name] for name in ("q", "show", "sort", "offset") if given[name]}


def _place(
    matching: Sequence[tuple[tool_sections.Group, Sequence[str]]],
    given: Mapping[str, Any],
    opened: Sequence[str],
) -> int:
    """Return where to begin: where the address says, or where the first section is that it opens."""
    if given["offset"] or not opened:
        return int(given["offset"] or 0)
    places = (place for place, (group, _) in enumerate(matching) if group.id in opened)
    return next(places, 0) // SECTIONS_AT_ONCE * SECTIONS_AT_ONCE
