"""The settings of one agent: what it is given, its subagents, and how to connect."""

from __future__ import annotations

from django.urls import reverse
from django.utils.http import urlencode

from toolbelt.control.agents import subagents
from toolbelt.control.reports import queries
from toolbelt.core import agents as values
from toolbelt.web.agents import view_model as agents
from toolbelt.web.kit import pieces, words
from toolbelt.web.settings import mcp_clients, snippets


def page(settings: queries.Settings, *, address: str) -> pieces.View:
    """Return the page; ``address`` is the agent's in the API, as this browser would reach it."""
    agent = settings.summary.agent
    tools = (*settings.surface.tools, *settings.surface.meta_tools)
    origin = address.rpartition("/api/v1/")[0]
    kinds = tuple(subagents.compare(settings.surface.resolution))
    return pieces.View(
        agent=agents.present(settings.summary),
        given=agent,
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
        is_given=subagent.kind in agent.subagent_kinds,
        loadout=f"→ {subagent.loadout}" if subagent.loadout else "",
        adds=_added(subagent),
        total=f"{words.tools(subagent.spent.tools)}, {words.about(subagent.spent.tokens)} tokens in total",
        url="" if agent.archived else url,
    )


def _added(subagent: subagents.Subagent) -> str:
    if not subagent.added:
        return ""
    return f"{words.tools(len(subagent.added))}, {words.about(subagent.added_tokens)} tokens"
