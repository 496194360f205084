"""How is the page of one agent's settings filled: what is stored, what somebody typed, and how to connect?"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.urls import reverse
from django.utils.http import urlencode

from toolbelt import conf
from toolbelt.control import queries, roles
from toolbelt.core import agents as values
from toolbelt.core import errors
from toolbelt.web import words
from toolbelt.web.forms import edits
from toolbelt.web.pages import agents, clients, frameworks
from toolbelt.web.presenters import answers, pieces, settings

_ON_EXCEED = {
    "warn": "Warn: the surface says so, nothing is held back",
    "refuse": "Refuse: nothing more can be switched on or loaded",
    "defer": "Defer: whole toolkits wait until the agent asks for them",
}
_MCP_LOADING = {
    "dispatch": "By search_tools and call_tool, in a list that stays as it is",
    "list": "By load_tools, in a list that grows (clients that keep a session)",
}
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
    found: queries.Settings,
    *,
    address: str,
    here: str,
    notice: answers.Notice | None,
    changing: roles.Changing,
    may_change: bool,
    may_flip: bool,
    may_name: bool,
    may_add: bool,
    may_issue: bool,
    may_administer: bool,
    typed: Mapping[str, Any] | None = None,
    problems: Mapping[str, str] | None = None,
    copy: settings.Copy | None = None,
) -> settings.SettingsPage:
    """Fill the page; ``address`` is the agent's in the API, as this browser would reach it.

    ``changing`` says who may flip its switches; ``may_flip``: the reader may, ``may_name``: they may say who else.
    ``typed`` is a form that was not taken, for the ``problems`` that are named by its fields.
    """
    agent = found.summary.agent
    return settings.SettingsPage(
        agent=agents.header(found.summary),
        fields=_fields(found, typed, problems or {}),
        had=tuple(_had(agent)),
        address=address,
        issue=settings.Snippet(
            id="snippet-issue",
            label="Shell",
            text=f"{conf.COMMAND} token issue --agent {shlex.quote(agent.key)} --days 90",
        ),
        snippets=tuple(_snippets(found, address)),
        clients=tuple(clients.snippets(address.rpartition("/api/v1/")[0], agent.key, found.surface)),
        frameworks=tuple(frameworks.snippets(address.rpartition("/api/v1/")[0], agent.key)),
        copy=copy or settings.Copy(),
        admin_url=_admin(agent.key) if may_administer and may_change else "",
        notice=notice,
        changing=_changing(changing, may_name=may_name),
        may_change=may_change and not agent.archived,
        may_archive=may_change,
        may_flip=may_flip,
        may_add=may_add,
        may_issue=may_issue,
        here=here,
    )


def problems(agent: str, refused: Sequence[errors.Problem]) -> dict[str, str]:
    """Sort what is wrong with an agent's entry by the fields of the form; what fits none is under the empty name."""
    said: dict[str, list[str]] = {}
    for problem in refused:
        rest = problem.path.removeprefix(f"agents.{agent}.").removeprefix("budget.")
        name = rest if rest in edits.Settings.base_fields else ""
        said.setdefault(name, []).append(problem.message if name else str(problem))
    return {name: " ".join(messages) for name, messages in said.items()}


def _changing(found: roles.Changing, *, may_name: bool) -> settings.Changing:
    count = len(found.everywhere)
    return settings.Changing(
        everywhere=f"{words.number(count)} user{'' if count == 1 else 's'}",
        own=tuple(found.own),
        users=tuple(
            pieces.Choice(value=name, label=name, chosen=name in found.own)
            for name in sorted((*found.own, *found.others))
        )
        if may_name
        else (),
        may_name=may_name,
    )


def _fields(
    found: queries.Settings, typed: Mapping[str, Any] | None, wrong: Mapping[str, str]
) -> settings.Fields:
    agent = found.summary.agent
    budget = agent.budget or values.Budget()
    stored: Mapping[str, Any] = {
        "title": agent.title,
        "role": agent.role,
        "description": agent.description,
        "model": agent.model,
        "kind": agent.kind,
        "loadout": agent.loadout,
        "max_tools": _number(budget.max_tools),
        "max_tokens": _number(budget.max_tokens),
        "on_exceed": budget.on_exceed,
        "mcp_loading": agent.mcp_loading,
        "protected": agent.protected,
        "was": json.dumps({key: found.entry.get(key) for key in edits.Settings.KEYS}, ensure_ascii=False),
    }
    shown = stored if typed is None else {name: typed.get(name, "") for name in stored}
    return settings.Fields(
        title=shown["title"],
        role=shown["role"],
        description=shown["description"],
        model=shown["model"],
        kinds=_choices([("", "None"), *((kind, _kind(kind)) for kind in values.KINDS)], shown["kind"]),
        loadouts=_choices(_loadouts(found.loadouts, shown["loadout"]), shown["loadout"]),
        max_tools=shown["max_tools"],
        max_tokens=shown["max_tokens"],
        on_exceed=_choices(_ON_EXCEED.items(), shown["on_exceed"] or "warn"),
        mcp_loading=_choices(_MCP_LOADING.items(), shown["mcp_loading"] or "dispatch"),
        protected=bool(shown["protected"]),
        seen=shown["was"],
        problems=wrong,
    )


def _number(limit: int | None) -> str:
    return "" if limit is None else str(limit)


def _kind(kind: str) -> str:
    loadout = conf.KIND_LOADOUTS.get(kind)
    return f"{kind} → {loadout}" if loadout else kind


def _loadouts(known: Sequence[str], chosen: str) -> Iterator[tuple[str, str]]:
    yield "", "Its kind's, or none"
    for name in known:
        yield name, name
    if chosen and chosen not in known:
        # It may be gone, or somebody wrote it in another case.
        yield chosen, chosen


def _choices(labels: Iterable[tuple[str, str]], chosen: str) -> tuple[pieces.Choice, ...]:
    return tuple(pieces.Choice(value=value, label=label, chosen=value == chosen) for value, label in labels)


def _had(agent: values.Agent) -> Iterator[settings.Had]:
    yield settings.Had(
        title="Always on",
        names=tuple((use.tool, "" if use.options is None else "with options") for use in agent.tools),
        otherwise="No tool is always on.",
    )
    initial = frozenset(agent.initial_toolkits)
    yield settings.Had(
        title="Loadable toolkits",
        names=tuple((key, "in every session" if key in initial else "") for key in agent.allowed_toolkits),
        otherwise="It may load no toolkit on demand.",
    )
    yield settings.Had(
        title="Loadouts for its sessions",
        names=tuple((name, "") for name in agent.session_loadouts),
        otherwise="Its own token may equip no session.",
    )
    yield settings.Had(
        title="Subagents",
        names=tuple((kind, "") for kind in agent.subagent_kinds),
        otherwise="Its own token may ask for no subagent.",
    )


def _snippets(one: queries.Settings, address: str) -> Iterator[settings.Snippet]:
    tools = (*one.surface.tools, *one.surface.meta_tools)
    tool = tools[0].name if tools else "a_tool"
    asked = urlencode({"session": "s1", "format": "openai_chat"})
    bearer = '"Authorization: Bearer $TOOLBELT_TOKEN"'
    call = shlex.quote(json.dumps({"session": "s1", "tool": tool, "arguments": {}}))
    yield settings.Snippet(
        id="snippet-curl",
        label="curl",
        text=(
            f"# What the model gets\ncurl -H {bearer} \\\n  {shlex.quote(f'{address}surface?{asked}')}\n\n"
            f"# A call of one of its tools\ncurl -H {bearer} \\\n"
            f'  -H "Content-Type: application/json" \\\n  -d {call} \\\n  {shlex.quote(f"{address}calls")}\n'
        ),
    )
    yield settings.Snippet(
        id="snippet-python", label="Python", text=_PYTHON.format(address=address, tool=tool)
    )


def _admin(key: str) -> str:
    return f"{reverse('admin:toolbelt_agent_changelist')}?{urlencode({'q': key})}"
