"""Labels of entries: the title first, and the key as code beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from toolbelt.control.access import access_index
from toolbelt.control.reports import queries
from toolbelt.core import agents as core_agents
from toolbelt.core import catalog
from toolbelt.web.kit import http, texts


def title_of(stored: catalog.Catalog, kind: str, key: str) -> str:
    """Return the title of a toolkit, plugin or sub-app; empty if it has none, or if it equals the key."""
    kinds: dict[str, Mapping[str, Any]]
    kinds = {"toolkit": stored.toolkits, "plugin": stored.plugins, "sub_app": stored.sub_apps}
    entry = kinds.get(kind, {}).get(key)
    title = entry.title if entry is not None else ""
    return "" if title == key else texts.visible(title)


def of_agents(request: http.Request) -> Mapping[str, str]:
    """Return the titles of all agents by key, read once for a request; empty for an agent without a title."""
    titles: Mapping[str, str] | None = getattr(request, "agent_titles", None)
    if titles is None:
        titles = request.agent_titles = queries.agent_titles()
    return titles


def of(entry: catalog.Toolkit | catalog.Plugin | core_agents.Agent) -> str:
    """Return the title of an entry, or its key if it has none."""
    return texts.visible(entry.title or (entry.name if isinstance(entry, catalog.Plugin) else entry.key))


def agent_options() -> dict[str, str]:
    """Return the agents that are not archived, by key, as a select prints them."""
    return options(agent for agent in queries.agents_briefly() if not agent.archived)


def options(agents: Iterable[core_agents.Agent]) -> dict[str, str]:
    """Return agents by key, as a select prints them."""
    return {agent.key: option(agent.key, agent.title) for agent in agents}


def option(key: str, title: str) -> str:
    """Return an entry as a select prints it: ``Assistant (assistant)``, or its key if it has no other title."""
    return f"{texts.visible(title)} ({key})" if title and title != key else key


def label(kind: str, key: str) -> str:
    """Return the label of an entry in a sentence, for the filter ``code_spans``: ``Team chat `team_chat```."""
    if kind == "agent":
        title = texts.visible(queries.agent_title(key))
    else:
        title = title_of(access_index.catalog_view().catalog, kind, key)
    return f"{title} `{key}`" if title and title != key else key
