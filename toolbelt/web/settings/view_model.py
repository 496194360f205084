"""The settings of one agent: what it is given, and its subagents."""

from __future__ import annotations

from django.urls import reverse
from django.utils.http import urlencode

from toolbelt.control.agents import subagents
from toolbelt.control.reports import queries
from toolbelt.core import agents as values
from toolbelt.web.agents import view_model as agents
from toolbelt.web.kit import pieces, words


def page(settings: queries.Settings) -> pieces.View:
    """Return the page."""
    agent = settings.summary.agent
    kinds = tuple(subagents.compare(settings.surface.resolution))
    return pieces.View(
        agent=agents.present(settings.summary),
        given=agent,
        subagents=tuple(_subagent(agent, subagent) for subagent in kinds),
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
