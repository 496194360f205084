"""The loadouts: their list, the page of a loadout with its inheritance, tools and agents, and the editor."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from toolbelt import conf
from toolbelt.control.access import access_index
from toolbelt.core import belts, catalog, errors, keys, loadouts
from toolbelt.web.kit import (
    entry_editor,
    filters,
    http,
    paging,
    pieces,
    responses,
    texts,
    tool_sections,
    words,
)
from toolbelt.web.loadouts import forms, inheritance
from toolbelt.web.tools import listing as tools_page

# The most agents that a row of the list names.
MAX_USERS = 20
MAX_TOOLS, MAX_PER_ONE = 500, 20


@require_safe
def listing(request: http.Request) -> HttpResponse:
    """Show the list."""
    return responses.show(request, _Page(request), "loadouts/list.html")


class _Page(pieces.Page):
    """The list of loadouts."""

    def __init__(self, request: http.Request) -> None:
        index = access_index.load()
        names = loadouts.all_names(index.catalog)
        stored_names = [loadout.name for loadout in index.catalog.loadouts.values()]
        users = _users(index)
        self.loadouts = tuple(
            _Line(index, name, stored_names, users.get(keys.fold(name), ())) for name in names
        )
        self.picture = inheritance.Diagram(index.catalog, names)
        self.built_in = len(names) - len(stored_names)


@require_safe
def page(request: http.Request, loadout: str) -> HttpResponse:
    """Show one loadout."""
    return responses.show(request, _LoadoutPage(request, loadout), "loadouts/loadout.html")


class _LoadoutPage(pieces.Page):
    """One loadout."""

    def __init__(self, request: http.Request, loadout: str) -> None:
        index, name, path = access_index.load(), loadout, request.path
        criteria = filters.read(filters.FindAgents(request.GET))
        stored = index.catalog
        value = get(stored, name)
        if value is None:
            raise errors.NotFound("loadout", name, loadouts.all_names(stored))
        included_tools = loadouts.tools_included(stored, name)
        included = frozenset(included_tools)
        resolved, denied = loadouts.view_in(stored, name), loadouts.tools_denied(stored, name)
        on_request = [
            key
            for key in loadouts.tools_discoverable(stored, name)
            if key not in included and key not in denied
        ]
        is_stored = keys.fold(name) in stored.loadouts
        self.name = name
        self.marks = tuple(marks(stored, name))
        self.description = value.description
        self.unresolved = loadouts.unresolved(stored, value) if is_stored else ()
        self.tools = words.tools(len(included_tools))
        self.tokens = words.approx(tokens(stored, included_tools))
        self.picture = inheritance.Diagram(stored, inheritance.family(stored, name), name)
        self.levels = tuple(_levels(stored, name))
        self.included = tuple(_groups(stored, included_tools, resolved, patterns=False))
        self.on_request = tuple(_groups(stored, on_request, resolved, patterns=True))
        self.on_request_count = words.tools(len(on_request))
        self.others = tuple(_others(index, name))
        # The kinds whose loadout is this one, or extends it.
        self.kinds = tuple(
            kind
            for kind, loadout in conf.KIND_LOADOUTS.items()
            if keys.fold(name) in {keys.fold(link.name) for link in loadouts.chain(stored.loadouts, loadout)}
        )
        self.seen = json.dumps(belts.entry("loadout", value), ensure_ascii=False) if is_stored else ""
        self.is_stored = is_stored
        agents = [(access.agent.key, use) for access in index.agents if (use := _use(index, access, name))]
        matching = {access.agent.key for access in paging.matching_agents(index.agents, criteria["agents"])}
        users = paging.part([pair for pair in agents if pair[0] in matching], criteria["offset"])
        self.agents = users.items
        self.agents_pages = users.pages(criteria, path, anchor="#users")
        self.find = paging.agent_filter(agents, criteria, path, ("offset",))


class Editor(entry_editor.Editor):
    """The editor of loadouts. A new loadout may start as a copy, also of a built-in one."""

    kind, form, template = "loadout", forms.Loadout, "loadouts/_form.html"

    def source(self, request: http.Request, stored: catalog.Catalog) -> catalog.Loadout | None:
        """Return the loadout that ``from`` names, stored or built in."""
        return get(stored, request.GET.get("from", ""))


def get(stored: catalog.Catalog, name: str) -> catalog.Loadout | None:
    """Return the loadout with exactly this name, stored or built in."""
    loadout = stored.loadouts.get(keys.fold(name)) or loadouts.BUILT_IN.get(keys.fold(name))
    return loadout if loadout is not None and loadout.name == name else None


def marks(stored: catalog.Catalog, name: str) -> Iterator[tool_sections.Mark]:
    """Yield the labels beside a loadout's name on every page."""
    folded = keys.fold(name)
    if folded not in stored.loadouts:
        yield tool_sections.Mark(word="built in")
    elif folded in loadouts.BUILT_IN:
        yield tool_sections.Mark(word="replaces a built-in loadout", tone="warning")


def _users(index: access_index.AccessIndex) -> dict[str, list[str]]:
    """Return the agents of each loadout, directly or through inheritance, by its folded name."""
    by_loadout: dict[str, list[str]] = {}
    users: dict[str, list[str]] = {}
    for access in index.agents:
        by_loadout.setdefault(access.agent.loadout_name(conf.KIND_LOADOUTS), []).append(access.agent.key)
    for name, agents in by_loadout.items():
        for link in loadouts.chain(index.catalog.loadouts, name) if name else ():
            users.setdefault(keys.fold(link.name), []).extend(agents)
    return users


def chain(index: access_index.AccessIndex, access: access_index.AgentAccess) -> Sequence[catalog.Loadout]:
    """Return the inheritance chain of an agent's loadout."""
    name = access.agent.loadout_name(conf.KIND_LOADOUTS)
    return loadouts.chain(index.catalog.loadouts, name) if name else ()


def tokens(stored: catalog.Catalog, tools: Iterable[str]) -> int:
    """Return the sum of the tokens of these tools."""
    return sum(stored.tools[key].tokens for key in tools)


class _Line(pieces.View):
    """A loadout in the list."""

    def __init__(
        self, index: access_index.AccessIndex, name: str, stored_names: Sequence[str], users: Sequence[str]
    ) -> None:
        loadout = get(index.catalog, name) or catalog.Loadout(name=name)
        tools = loadouts.tools_included(index.catalog, name)
        position = stored_names.index(name) if name in stored_names else -1
        parents = loadouts.chain(index.catalog.loadouts, loadout.parent) if loadout.parent else ()
        self.loadout = loadout
        self.marks = tuple(marks(index.catalog, name))
        self.parent = parents[0].name if parents else ""
        self.tools = len(tools)
        self.tokens = tokens(index.catalog, tools)
        self.used = tuple(users[:MAX_USERS])
        self.more_users = max(0, len(users) - MAX_USERS)
        self.percent = round(100 * len(users) / len(index.agents)) if index.agents else 0
        self.up = stored_names[position - 1] if position > 0 else ""
        self.down = stored_names[position + 1] if 0 <= position < len(stored_names) - 1 else ""


class _Level(pieces.View):
    """What one level of the inheritance changes: a ``loadout``, after the loadout with the name ``parent``."""

    def __init__(self, stored: catalog.Catalog, loadout: catalog.Loadout, parent: str) -> None:
        before = loadouts.tools_included(stored, parent) if parent else ()
        after = loadouts.tools_included(stored, loadout.name)
        had, has = set(before), set(after)
        self.loadout = loadout
        self.marks = tuple(marks(stored, loadout.name))
        self.added = tuple(key for key in after if key not in had)
        self.removed = tuple(key for key in before if key not in has)
        counts = filter(None, (len(self.added), -len(self.removed)))
        self.changes = ", ".join(f"{words.signed(count)} tools" for count in counts) or "no change in tools"


def _levels(stored: catalog.Catalog, name: str) -> Iterator[_Level]:
    """Yield the changes of each level, from the root to the loadout."""
    parent = ""
    for link in reversed(loadouts.chain(stored.loadouts, name)):
        yield _Level(stored, link, parent)
        parent = link.name


class _Group(pieces.View):
    """The tools of a plugin that a loadout includes or offers, at most ``maximum`` of them by name."""

    def __init__(
        self,
        stored: catalog.Catalog,
        plugin: str,
        members: Sequence[str],
        because: Iterable[str],
        maximum: int,
    ) -> None:
        title = stored.plugins[plugin].title if plugin in stored.plugins else ""
        self.title = texts.visible(title or plugin) or "No plugin"
        self.key = plugin if title and title != plugin else ""
        self.count = len(members)
        self.tokens = tokens(stored, members)
        self.because = words.listing(tuple(dict.fromkeys(because)))
        self.tools = tuple(sorted(members)[:maximum])
        self.more = max(0, len(members) - maximum)
        self.more_url = reverse("web:tools", query={"plugin": plugin or tools_page.NO_PLUGIN})


def _groups(
    stored: catalog.Catalog, tools: Iterable[str], resolved: loadouts.View, *, patterns: bool
) -> Iterator[_Group]:
    by_plugin: dict[str, list[str]] = {}
    for key in tools:
        by_plugin.setdefault(stored.tools[key].plugin, []).append(key)
    # If there are very many tools, only the first ones of each plugin are listed.
    maximum = MAX_PER_ONE if sum(map(len, by_plugin.values())) > MAX_TOOLS else MAX_TOOLS
    for plugin, members in sorted(by_plugin.items(), key=lambda item: (not item[0], item[0].casefold())):
        because = (_because(stored.tools[key], stored, resolved, patterns) for key in members)
        yield _Group(stored, plugin, members, because, maximum)


def _because(tool: catalog.Tool, stored: catalog.Catalog, resolved: loadouts.View, patterns: bool) -> str:
    if patterns:
        pattern = resolved.discovers(tool.key) or resolved.discovers(tool.plugin) or ""
        return f"pattern {pattern} of {resolved.patterns.get(pattern, '')}"
    inclusion = resolved.includes(tool.plugin, stored.category(tool))
    if inclusion is None:
        return ""
    kind, origin = inclusion
    return f"plugin of {origin}" if kind == "plugin" else f"category {stored.category(tool)} of {origin}"


def _use(index: access_index.AccessIndex, access: access_index.AgentAccess, name: str) -> str:
    """Return how the agent uses the loadout; empty if it does not."""
    agent, folded = access.agent, keys.fold(name)
    links = [link.name for link in chain(index, access)]
    uses = []
    if folded in map(keys.fold, links):
        by = "its own loadout" if agent.loadout else f"from its kind {agent.kind}"
        uses.append(by if keys.fold(links[0]) == folded else f"through {links[0]}, {by}")
    if folded in map(keys.fold, agent.session_loadouts):
        uses.append("may use it for a session")
    return "; ".join(uses)


def _others(index: access_index.AccessIndex, name: str) -> Iterator[tuple[str, str, str]]:
    """Yield the loadouts that extend it, and the sub-apps whose agents have it: their URLs, names and relations."""
    stored, folded = index.catalog, keys.fold(name)
    for other in loadouts.all_names(stored):
        child = get(stored, other)
        if child is not None and keys.fold(child.parent) == folded:
            yield reverse("web:loadout", args=[other]), other, "a loadout that extends it"
    users = {
        access.agent.key
        for access in index.agents
        if folded in {keys.fold(link.name) for link in chain(index, access)}
    }
    for sub_app in stored.sub_apps.values():
        embedded = [agent for agent in sub_app.agents if agent in users]
        if embedded:
            relation = f"sub-app, through {words.listing(embedded)}"
            yield reverse("web:sub_app", args=[sub_app.key]), sub_app.key, relation
