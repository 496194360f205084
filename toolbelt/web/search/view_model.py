"""The results of a search by kind: actions, agents, toolkits, tools and pages that the reader may see."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.urls import reverse

from toolbelt.control.access import access_index
from toolbelt.control.people import rights
from toolbelt.control.reports import queries
from toolbelt.core import agents, catalog
from toolbelt.web.kit import pieces, texts, titles, tool_search, words
from toolbelt.web.search import sentences

MAX_HITS = 30
MAX_OF_KIND = 7
# The most entries of a kind, and the most agents, that a sentence is matched with.
MAX_EACH = 3
# A toolkit that the text does not name matches if it has one of this many best tools.
MAX_RANK = 3


@dataclass(frozen=True, slots=True)
class _Page:
    title: str
    name: str
    other_words: str = ""
    # The permission, or the kind that the reader must be allowed to view.
    permission: str = ""
    kind: str = ""
    is_for_staff: bool = False


_PAGES = (
    _Page("Overview", "home", "home start attention"),
    _Page("Review", "review", "inbox approve reject changed tools"),
    _Page("Approvals", "approvals", "review calls that wait approve reject ask person"),
    _Page("Drafts", "drafts", "review saved changes try observe schedule apply"),
    _Page("Agents", "agents", "list"),
    _Page("Matrix", "matrix", "switches table agents toolkits"),
    _Page("Compare", "compare", "difference agents"),
    _Page("Toolkits", "toolkits"),
    _Page("Tools", "tools", "catalog"),
    _Page("Loadouts", "loadouts", "profiles"),
    _Page("Rules", "gate_rules", "gate deny arguments conditions calls"),
    _Page("Servers & plugins", "plugins", "mcp sources upstream"),
    _Page("Sub-apps", "sub_apps"),
    _Page("Calls", "calls", "usage unused errors", kind="call_record"),
    _Page("Propose a smaller belt", "propose", "least privilege unused", permission="toolbelt.add_loadout"),
    _Page("Audit log", "audit_log", "history who changed undo"),
    _Page("Connections", "connections", "oauth sign in clients claude chatgpt revoke"),
    _Page("Tokens", "tokens", "api credentials", kind="api_token"),
    _Page("People & roles", "people", "users operators administrators", permission="auth.view_user"),
    _Page("Import & export", "import_export", "configuration file backup"),
    _Page("Alerts", "alerts", "webhook slack mail notify digest apprise", permission="toolbelt.view_alert"),
    _Page("System status", "status", "health version admin", is_for_staff=True),
    _Page("Your account", "account", "password theme permissions"),
    _Page("Help & shortcuts", "help", "keyboard rules glossary"),
    _Page("Documents", "documents", "documentation manual guide how-to reference"),
    _Page("New agent", "new_agent", "create add", permission="toolbelt.add_agent"),
    _Page("New toolkit", "new_toolkit", "create add", permission="toolbelt.add_toolkit"),
    _Page("New loadout", "new_loadout", "create add", permission="toolbelt.add_loadout"),
    _Page("New sub-app", "new_sub_app", "create add", permission="toolbelt.add_subapp"),
    _Page("New rule", "new_gate_rule", "create add deny", permission="toolbelt.add_gaterule"),
    _Page("Add server", "add_server", "create new mcp plugin", permission="toolbelt.add_plugin"),
    _Page(
        "Import servers", "import_servers", "mcp json file claude cursor", permission="toolbelt.add_plugin"
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A page, an entry or an action that a text names."""

    title: str
    url: str
    key: str = ""
    about: str = ""
    state: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The results of one kind; ``first`` is the number of the first of them in the whole list."""

    title: str
    first: int
    results: tuple[Result, ...]
    more: str


def _pages(text: str, user: rights.User) -> Iterator[Result]:
    """Yield the pages that a text names and the user may open; all of them without a text."""
    for page in _PAGES:
        if page.permission and not user.has_perm(page.permission):
            continue
        if page.kind and not rights.may_read(user, page.kind):
            continue
        if page.is_for_staff and not getattr(user, "is_staff", False):
            continue
        if words.contains(text, page.title, page.other_words):
            yield Result(title=page.title, url=reverse(f"web:{page.name}"))


class Page(pieces.Page):
    """The results for a text, or every page without one."""

    def __init__(self, text: str, user: rights.User) -> None:
        sentence = sentences.parse(text)
        view = access_index.catalog_view()
        stored = view.catalog
        target, agent_name = (sentence.target, sentence.agent) if sentence else (text, text)
        is_named = bool(target.strip())
        tools = _tools(stored, target) if is_named else []
        toolkits = _toolkits(stored, target, tools) if is_named else []
        plugins = _plugins(stored, target) if is_named else []
        consumers = _agents(queries.agents_briefly(), agent_name) if agent_name.strip() else []
        matches = _Matches(target=target, plugins=plugins, toolkits=toolkits, tools=tools, agents=consumers)
        actions = _actions(sentence, matches, user) if sentence else ()
        things = _things(matches, view)
        groups = (
            ("Actions", actions, 0),
            *things,
            ("Pages", () if sentence else _pages(text, user), 0),
        )
        self.query, self.count = text, 0
        self.groups: list[Group] = []
        for title, hits, total in groups:
            results = tuple(itertools.islice(hits, MAX_OF_KIND if text.strip() else None))
            if results:
                more = f"best {len(results)} of {total}" if len(results) < total else ""
                if title == "Tools" and total >= MAX_HITS:
                    # The search stops there.
                    more = f"best {len(results)} of at least {MAX_HITS}"
                self.groups.append(Group(title=title, first=self.count, results=results, more=more))
                self.count += len(results)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Matches:
    """The entries that a sentence may mean, the best match of each kind first."""

    target: str
    plugins: Sequence[catalog.Plugin]
    toolkits: Sequence[catalog.Toolkit]
    tools: Sequence[catalog.Tool]
    agents: Sequence[agents.Agent]


def _things(matches: _Matches, view: access_index.CatalogView) -> Sequence[tuple[str, Iterator[Result], int]]:
    """Return the entries of each kind, with the title of the kind and their number; servers first if one is named."""
    agents_ = (_thing("agent_access", agent.key, agent.title, agent.role) for agent in matches.agents)
    toolkits = (
        _thing("toolkit", kit.key, kit.title, words.tools(len(kit.members)), _block_word(kit.blocked))
        for kit in matches.toolkits
    )
    tools = (
        _thing(
            "tool",
            tool.key,
            texts.visible(tool.title),
            texts.visible(words.cut(tool.description, 90)),
            words.state_of(closed) if (closed := view.closed.get(tool.key)) else "",
        )
        for tool in matches.tools
    )
    plugins = (
        _thing("plugin", plugin.name, texts.visible(plugin.title), state=_block_word(plugin.blocked))
        for plugin in matches.plugins
    )
    things = [
        ("Agents", agents_, len(matches.agents)),
        ("Toolkits", toolkits, len(matches.toolkits)),
        ("Tools", tools, len(matches.tools)),
        ("Servers & plugins", plugins, len(matches.plugins)),
    ]
    if matches.plugins and _is_exact(matches.target, matches.plugins[0]):
        things.insert(0, things.pop())
    return things


def _actions(sentence: sentences.Sentence, matches: _Matches, user: rights.User) -> Iterator[Result]:
    """Yield the actions that the sentence may request; each links to a page, and changes nothing."""
    if sentence.verb == "why":
        yield from _explanations(matches)
    elif sentence.verb in ("block", "unblock"):
        yield from _blocks(sentence.verb, matches, user)
    elif sentence.verb not in ("on", "off"):
        for agent in matches.agents[:MAX_EACH]:
            title = f"{sentence.verb.capitalize()} {titles.of(agent)}"
            yield _result(title, reverse(f"web:{sentence.verb}", args=[agent.key]))
    elif sentence.agent:
        may_flip = rights.flip_check(user)
        for agent in matches.agents[:MAX_EACH]:
            if may_flip(agent.key):
                yield from _flips(sentence.verb, matches, agent)
    else:
        for toolkit in matches.toolkits[:MAX_EACH]:
            address = reverse("web:toolkit", args=[toolkit.key])
            yield _result(f"Turn {sentence.verb} {titles.of(toolkit)} …", address, about="Choose the agents")
        for plugin in matches.plugins[:1] if user.has_perm(rights.FLIP) else ():
            title = f"Turn {sentence.verb} all tools of {titles.of(plugin)} for all agents …"
            yield _result(title, _bulk(plugin, sentence.verb, "*"))


def _blocks(verb: str, matches: _Matches, user: rights.User) -> Iterator[Result]:
    """Yield links to the pages with the button that blocks an entry for everyone."""
    is_blocked = verb == "unblock"
    entries = {
        "plugin": [(item.name, titles.of(item)) for item in matches.plugins if item.blocked == is_blocked],
        "toolkit": [(item.key, titles.of(item)) for item in matches.toolkits if item.blocked == is_blocked],
        "tool": [(item.key, item.key) for item in matches.tools if item.blocked == is_blocked],
    }
    for kind, names in entries.items():
        if user.has_perm(rights.permission("change", kind)):
            for key, name in names[:MAX_EACH]:
                title = f"{verb.capitalize()} {kind} {name}{' for everyone' if verb == 'block' else ''} …"
                yield _result(title, reverse(f"web:{kind}", args=[key]), about="Opens its page")


def _explanations(matches: _Matches) -> Iterator[Result]:
    for tool, agent in itertools.product(matches.tools[:MAX_EACH], matches.agents[:MAX_EACH]):
        address = reverse("web:preview", args=[agent.key], query={"view": "why", "tool": tool.key})
        yield _result(f"Why is {tool.key} on or off for {titles.of(agent)}?", address)


def _flips(verb: str, matches: _Matches, agent: agents.Agent) -> Iterator[Result]:
    """Yield the flips of one agent that the sentence may request: a toolkit, all tools of a plugin, or a tool."""
    toolkits, tools = matches.toolkits[:MAX_EACH], matches.tools[:MAX_EACH]
    of_plugin = [
        _result(
            f"Turn {verb} all tools of {titles.of(plugin)} for {titles.of(agent)}",
            _bulk(plugin, verb, agent.key),
        )
        for plugin in matches.plugins[:1]
    ]
    if of_plugin and _is_exact(matches.target, matches.plugins[0]):
        yield of_plugin.pop()
    names = {toolkit.key: titles.of(toolkit) for toolkit in toolkits} | {tool.key: tool.key for tool in tools}
    for key, name in names.items():
        address = reverse("web:flip", query={"agent": agent.key, "key": key, "on": verb})
        yield _result(f"Turn {verb} {name} for {titles.of(agent)}", address)
    yield from of_plugin


def _bulk(plugin: catalog.Plugin, verb: str, agent: str) -> str:
    """Return the URL of the confirmation to turn all tools of a plugin on or off; ``*`` means all agents."""
    state = "tools-true" if verb == "on" else "tools-false"
    query = {"plugin": plugin.name, "every": "yes", "for": agent, "set": state}
    return reverse("web:bulk_tools", query=query)


def _tools(stored: catalog.Catalog, text: str) -> list[catalog.Tool]:
    """Return the tools that match the text, as the list of tools shows them; a retired one only by its exact key."""
    exact = stored.tools.get(text.strip())
    found = [stored.tools[key] for key in tool_search.find(stored, text)[:MAX_HITS]]
    return list(dict.fromkeys([exact, *found])) if exact else found


def _toolkits(stored: catalog.Catalog, text: str, tools: Sequence[catalog.Tool]) -> list[catalog.Toolkit]:
    """Return the toolkits that the text names, then those with most of the best matching tools.

    Toolkits that are not named must have one of the best tools, because others only share a word with the text.
    """
    ranks = {tool.key: rank for rank, tool in enumerate(tools)}
    ranked = []
    for toolkit in stored.toolkits.values():
        rank = _named(text, toolkit.key, toolkit.title)
        share = sum(1 / (1 + ranks[member.tool]) for member in toolkit.members if member.tool in ranks)
        is_likely = any(ranks.get(member.tool, MAX_RANK) < MAX_RANK for member in toolkit.members)
        if rank is not None or is_likely:
            ranked.append((3 if rank is None else rank, -share, toolkit.key))
    return [stored.toolkits[key] for *_, key in sorted(ranked)]


def _plugins(stored: catalog.Catalog, text: str) -> list[catalog.Plugin]:
    """Return the servers and plugins that the text names."""
    ranked = [(_named(text, plugin.name, plugin.title), plugin) for plugin in stored.plugins.values()]
    matches = [(rank, plugin.name, plugin) for rank, plugin in ranked if rank is not None]
    return [plugin for *_, plugin in sorted(matches, key=lambda entry: entry[:2])]


def _agents(all_agents: Iterable[agents.Agent], text: str) -> list[agents.Agent]:
    """Return the agents that the text names or describes, without archived ones."""
    ranked = []
    for index, agent in enumerate(agent for agent in all_agents if not agent.archived):
        rank = _named(text, agent.key, agent.title)
        if rank is not None or words.contains(text, agent.role, agent.description):
            ranked.append((3 if rank is None else rank, index, agent))
    return [agent for *_, agent in sorted(ranked, key=lambda entry: entry[:2])]


def _named(text: str, *names: str) -> int | None:
    """Return how well a text matches any name: 0 exactly, 1 as a prefix, 2 as a part, None not at all."""
    query = _plain(text)
    matches = [(query == name, name.startswith(query)) for name in map(_plain, names) if query in name]
    return min((0 if is_exact else 1 if is_prefix else 2 for is_exact, is_prefix in matches), default=None)


def _is_exact(text: str, plugin: catalog.Plugin) -> bool:
    """Return whether the text is the name or the title of the plugin."""
    return _named(text, plugin.name, plugin.title) == 0


def _plain(name: str) -> str:
    return name.strip().casefold().replace("_", " ").replace("-", " ")


def _block_word(is_blocked: bool) -> str:
    return words.BLOCKED if is_blocked else ""


def _thing(view: str, key: str, title: str, about: str = "", state: str = "") -> Result:
    return _result(title or key, reverse(f"web:{view}", args=[key]), key, about, state)


def _result(title: str, url: str, key: str = "", about: str = "", state: str = "") -> Result:
    """Return a result; ``state`` is a word if no agent can have it."""
    return Result(title=title, url=url, key="" if key == title else key, about=about, state=state)
