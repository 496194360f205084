"""The settings of one agent: what it is given, its subagents, and how to connect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from django.urls import reverse
from django.utils.http import urlencode

from toolbelt.control.agents import subagents
from toolbelt.control.reports import queries
from toolbelt.core import agents as values
from toolbelt.web.agents import view_model as agents
from toolbelt.web.kit import pieces, words
from toolbelt.web.settings import mcp_clients, snippets


def page(settings: queries.Settings, *, address: str) -> pieces.View:
    """Fill the page; ``address`` is the agent's in the API, as this browser would reach it."""
    agent = settings.summary.agent
    tools = (*settings.surface.tools, *settings.surface.meta_tools)
    origin = address.rpartition("/api/v1/")[0]
    kinds = tuple(subagents.compare(settings.surface.resolution))
    return pieces.View(
        agent=agents.header(settings.summary),
        given=tuple(_given(agent, kinds)),
        subagents=tuple(_subagent(agent, subagent) for subagent in kinds),
        address=address,
        issue=snippets.issue(agent.key),
        snippets=tuple(snippets.languages(address, tools[0].name if tools else "a_tool")),
        clients=tuple(mcp_clients.configurations(origin, agent.key, settings.surface)),
        frameworks=tuple(snippets.frameworks(origin, agent.key)),
        admin_url=f"{reverse('admin:toolbelt_agent_changelist')}?{urlencode({'q': agent.key})}",
    )


def _subagent(agent: values.Agent, subagent: subagents.Subagent) -> pieces.View:
    url = f"{reverse('web:preview', args=[agent.key])}?{urlencode({'subagent': subagent.kind})}"
    return pieces.View(
        kind=subagent.kind,
        loadout=f"→ {subagent.loadout}" if subagent.loadout else "",
        adds=_added(subagent),
        total=f"{words.tools(subagent.spent.tools)}, {words.about(subagent.spent.tokens)} tokens in total",
        url="" if agent.archived else url,
    )


def _added(subagent: subagents.Subagent) -> str:
    if not subagent.added:
        return ""
    return f"{words.tools(len(subagent.added))}, {words.about(subagent.added_tokens)} tokens"


def _given(agent: values.Agent, kinds: Iterable[subagents.Subagent]) -> Iterator[pieces.View]:
    """Return what the agent is given by name, in lists; each name has a mark ("with options", "in every session")."""
    tools = tuple((use.tool, "" if use.options is None else "with options") for use in agent.tools)
    yield pieces.View(title="Always on", names=tools, otherwise="No tools are always on.")
    toolkits = tuple(
        (key, "in every session" if key in agent.initial_toolkits else "") for key in agent.allowed_toolkits
    )
    yield pieces.View(title="Loadable toolkits", names=toolkits, otherwise="It may not load any toolkit.")
    loadouts = tuple((name, "") for name in agent.session_loadouts)
    otherwise = "Its token may not change a session's loadout."
    yield pieces.View(title="Session loadouts", names=loadouts, otherwise=otherwise)
    names = tuple(
        (subagent.kind, f"adds {_added(subagent) or 'no tools'}")
        for subagent in kinds
        if subagent.kind in agent.subagent_kinds
    )
    yield pieces.View(title="Subagents", names=names, otherwise="Its token may not request subagents.")
