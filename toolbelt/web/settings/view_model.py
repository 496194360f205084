"""The settings of one agent: what is stored or was typed, and how to connect."""

from __future__ import annotations

import functools
import json
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.http import urlencode

from toolbelt import conf
from toolbelt.control.agents import subagents
from toolbelt.control.people import roles
from toolbelt.control.reports import queries
from toolbelt.core import agents as values
from toolbelt.web.agents import view_model as agents
from toolbelt.web.kit import pieces, words
from toolbelt.web.settings import frameworks, mcp_clients


@dataclass(frozen=True, slots=True, kw_only=True)
class Had:
    """One list of what the agent is given by name, each with a mark ("with options", "in every session")."""

    title: str
    names: tuple[tuple[str, str], ...]
    otherwise: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """The form that duplicates the agent: the key that was typed, and what was wrong with it."""

    key: str = ""
    problem: str = ""


_PYTHON = """import os

import httpx

toolbelt = httpx.Client(
    base_url={address!r},
    headers={{"Authorization": f"Bearer {{os.environ['TOOLBELT_TOKEN']}}"}},
)
asked = {{"session": "s1", "request_id": "r1", "message": "hello", "format": "openai_chat"}}
surface = toolbelt.post("surface", json=asked).raise_for_status().json()
print(surface["active_tools"], surface["provider"])

call = {{"session": "s1", "request_id": "r1", "tool": {tool!r}, "arguments": {{}}}}
print(toolbelt.post("calls", json=call).raise_for_status().json())
"""


def page(
    settings: queries.Settings,
    *,
    address: str,
    changing: roles.AllowedUsers,
    may_change: bool,
    may_name: bool,
    may_administer: bool,
    **frame: Any,
) -> pieces.View:
    """Fill the page; ``address`` is the agent's in the API, as this browser would reach it.

    ``changing`` says who may flip its switches; ``may_flip``: the reader may, ``may_name``: they may say who else.
    """
    agent = settings.summary.agent
    reach = tuple(subagents.compare(settings.surface.resolution))
    return pieces.View(
        agent=agents.header(settings.summary),
        had=tuple(_had(agent, reach)),
        subagents=tuple(map(functools.partial(_subagent, agent), reach)),
        address=address,
        issue=mcp_clients.Snippet(
            id="snippet-issue",
            label="Shell",
            text=f"{conf.COMMAND} token issue --agent {shlex.quote(agent.key)} --days 90",
        ),
        snippets=tuple(_snippets(settings, address)),
        clients=tuple(mcp_clients.snippets(address.rpartition("/api/v1/")[0], agent.key, settings.surface)),
        frameworks=tuple(frameworks.snippets(address.rpartition("/api/v1/")[0], agent.key)),
        admin_url=_admin(agent.key) if may_administer and may_change else "",
        changing=_changing(changing, may_name=may_name),
        may_change=may_change and not agent.archived,
        may_archive=may_change,
        **frame,
    )


def _changing(allowed: roles.AllowedUsers, *, may_name: bool) -> pieces.View:
    count = len(allowed.everywhere)
    return pieces.View(
        everywhere=f"{words.number(count)} user{'' if count == 1 else 's'}",
        own=tuple(allowed.own),
        users=tuple(
            pieces.Choice(value=name, label=name, chosen=name in allowed.own)
            for name in sorted((*allowed.own, *allowed.others))
        )
        if may_name
        else (),
        may_name=may_name,
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


def _had(agent: values.Agent, reach: Iterable[subagents.Subagent]) -> Iterator[Had]:
    yield Had(
        title="Always on",
        names=tuple((use.tool, "" if use.options is None else "with options") for use in agent.tools),
        otherwise="No tools are always on.",
    )
    initial = frozenset(agent.initial_toolkits)
    yield Had(
        title="Loadable toolkits",
        names=tuple((key, "in every session" if key in initial else "") for key in agent.allowed_toolkits),
        otherwise="It may not load any toolkit.",
    )
    yield Had(
        title="Session loadouts",
        names=tuple((name, "") for name in agent.session_loadouts),
        otherwise="Its token may not change a session's loadout.",
    )
    yield Had(
        title="Subagents",
        names=tuple(
            (subagent.kind, f"adds {_added(subagent)}" if subagent.added else "adds no tools")
            for subagent in reach
            if subagent.kind in agent.subagent_kinds
        ),
        otherwise="Its token may not request subagents.",
    )


def _snippets(settings: queries.Settings, address: str) -> Iterator[mcp_clients.Snippet]:
    tools = (*settings.surface.tools, *settings.surface.meta_tools)
    tool = tools[0].name if tools else "a_tool"
    asked = urlencode({"session": "s1", "format": "openai_chat"})
    bearer = '"Authorization: Bearer $TOOLBELT_TOKEN"'
    call = shlex.quote(json.dumps({"session": "s1", "tool": tool, "arguments": {}}))
    yield mcp_clients.Snippet(
        id="snippet-curl",
        label="curl",
        text=(
            f"# What the model gets\ncurl -H {bearer} \\\n  {shlex.quote(f'{address}surface?{asked}')}\n\n"
            f"# Call one of its tools\ncurl -H {bearer} \\\n"
            f'  -H "Content-Type: application/json" \\\n  -d {call} \\\n  {shlex.quote(f"{address}calls")}\n'
        ),
    )
    yield mcp_clients.Snippet(
        id="snippet-python", label="Python", text=_PYTHON.format(address=address, tool=tool)
    )


def _admin(key: str) -> str:
    return f"{reverse('admin:toolbelt_agent_changelist')}?{urlencode({'q': key})}"
