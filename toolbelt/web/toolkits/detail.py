"""The page of a toolkit: its tools, what a model receives of it, and its agents."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control.access import access_index
from toolbelt.control.catalog import purging as purges
from toolbelt.control.people import rights
from toolbelt.core import belts, catalog, directives, errors, policy
from toolbelt.core.rules import resolution
from toolbelt.web.access import blocking, purging
from toolbelt.web.kit import explained, filters, http, model_panel, paging, pieces, responses, titles, words
from toolbelt.web.toolkits import forms, listing

_CHANGE = rights.permission("change", "toolkit")


@require_safe
def page(request: http.Request, toolkit: str) -> HttpResponse:
    """Show one toolkit; htmx gets only what the model receives of it."""
    return responses.show(request, _Page(request, toolkit), "toolkits/toolkit.html", "toolkits/_preview.html")


@require_POST
@permission_required(_CHANGE, raise_exception=True)
def block(request: http.Request, toolkit: str) -> HttpResponse:
    """Block a toolkit for everyone, or unblock it."""
    home = reverse("web:toolkit", args=[toolkit])
    part = "toolkits/_blocked.html"
    return blocking.respond(request, "toolkit", toolkit, home, part, lambda: _Page(request, toolkit))


@require_POST
@permission_required(_CHANGE, raise_exception=True)
def purge(request: http.Request, toolkit: str) -> HttpResponse:
    """Purge the texts of a toolkit from every conversation, after a confirmation."""
    return purging.respond(request, "toolkit", toolkit, reverse("web:toolkit", args=[toolkit]))


class _Member(pieces.View):
    """A member of a toolkit: ``tool`` is None if it does not exist, and ``closed`` if an agent can have it."""

    def __init__(
        self,
        toolkit: catalog.Toolkit,
        member: catalog.Member,
        tool: catalog.Tool | None,
        closed: resolution.Decision | None,
        reason: str,
    ) -> None:
        self.key, self.tool, self.closed, self.reason = member.tool, tool, closed, reason
        self.note = toolkit.tool_notes.get(member.tool, "").strip()
        self.options = forms.options_text(member) if member.options else ""


class _Page(listing.Line, pieces.Page):
    """One toolkit."""

    block_spans = blocking.SPANS

    def __init__(self, request: http.Request, key: str) -> None:
        index, criteria = access_index.load(), filters.read(forms.Trial(request.GET))
        path = reverse("web:toolkit", args=[key])
        may_flip, may_edit = rights.flip_check(request.user), request.user.has_perm(_CHANGE)
        toolkit = index.catalog.toolkits.get(key)
        if toolkit is None:
            raise errors.NotFound("toolkit", key, index.catalog.toolkits)
        use = listing.use_of(index, toolkit)
        closed = access_index.closed(index.catalog)
        explanations = explained.Explanations(closed.get(member.tool) for member in toolkit.members)
        super().__init__(use)
        self.live = ""
        if may_edit and not toolkit.blocked:
            self.live = blocking.describe_live(index, "toolkit", key)
        self.purged = purges.last("toolkit", key)
        self.owner, self.examples = toolkit.plugin, toolkit.examples.strip()
        self.brings = toolkit.brings
        self.crowded = forms.too_many(len(toolkit.members), len(toolkit.triggers)) if may_edit else ""
        self.tools = words.tools(len(use.members))
        self.members = tuple(
            _Member(
                toolkit,
                member,
                index.catalog.tools.get(member.tool),
                closed.get(member.tool),
                explanations.of(closed.get(member.tool)),
            )
            for member in toolkit.members
        )
        self.find = paging.agent_filter(index.agents, criteria, path, ("offset",))
        self.message, self.preview = criteria["message"], Preview(index, toolkit, criteria)
        self.whose = agent_choices(titles.options(access.agent for access in index.agents), criteria["whose"])
        self.seen = json.dumps(belts.entry("toolkit", toolkit), ensure_ascii=False)
        self.may_change = any(may_flip(access.agent.key) for access in index.agents)
        part = _agents_part(index, use, criteria)
        self.cells = tuple(
            listing.Cell(access, toolkit, may_change=may_flip(access.agent.key)) for access in part.items
        )
        self.pages = part.pages(criteria, path, anchor="#agents")
        order = list(index.catalog.toolkits)
        position = order.index(key)
        self.position = f"{words.number(position + 1)} of {words.number(len(order))}"
        self.up = order[position - 1] if may_edit and position else ""
        self.down = order[position + 1] if may_edit and position + 1 < len(order) else ""


def _agents_part(
    index: access_index.AccessIndex, use: listing.ToolkitUse, criteria: Mapping[str, Any]
) -> paging.Part[access_index.AgentAccess]:
    """Return a page of the agents; if there are several pages, agents with the toolkit come first."""
    accesses = paging.matching_agents(index.agents, criteria["agents"])
    if len(accesses) > paging.PAGE_SIZE:
        with_toolkit = {*use.users, *use.switches}
        accesses.sort(key=lambda access: access.agent.key not in with_toolkit)
    return paging.part(accesses, criteria["offset"])


class Preview(pieces.View):
    """What the model receives: for the agent in ``criteria``, or for one with all tools of the toolkit."""

    def __init__(
        self, index: access_index.AccessIndex, toolkit: catalog.Toolkit, criteria: Mapping[str, Any]
    ) -> None:
        stored = index.catalog
        access = next((access for access in index.agents if access.agent.key == criteria["whose"]), None)
        members = tuple(key for key in access_index.members(stored, toolkit) if key not in stored.non_tools)
        if access is not None:
            active = tuple(key for key in members if key in access.active)
            reach = set(access.active)
        else:
            active = members
            reach = {
                *members,
                *(key for trigger in toolkit.triggers for key in trigger.focus or ()),
            } & stored.tools.keys()
        trial = directives.try_message(stored, toolkit, reach, criteria["message"])
        in_python = stored.hooks(toolkit) is not None
        section = policy.section_of(stored, toolkit, active)
        if not active and access is not None and toolkit.key not in access.context.concerned:
            section = dataclasses.replace(section, text="")
        self.policy = section.text
        self.tokens = model_panel.section_tokens(stored, section)
        self.off = not active
        self.active = f"{len(active)} of {words.tools(len(members))} on"
        self.written = toolkit.policy if policy.PLACEHOLDER in toolkit.policy and not in_python else ""
        self.off_text = policy.off_text(toolkit) if active else ""
        self.triggers = [
            forms.Tried(trigger=trigger, fires=trial.fired[position], decides=trial.decides == position)
            for position, trigger in enumerate(() if in_python else toolkit.triggers)
        ]
        self.in_python = in_python
        self.focus = trial.focus


def agent_choices(agents: Mapping[str, str], chosen: str) -> tuple[pieces.Choice, ...]:
    """Return the choices of the preview's tools: all, or those of an agent."""
    return pieces.choices(agents, chosen, "With all its tools")
