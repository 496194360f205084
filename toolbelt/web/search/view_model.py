"""The results of a search, by kind: actions, agents, toolkits, tools and pages that its reader may see."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.urls import reverse

from toolbelt.control.access import access_index
from toolbelt.control.people import rights
from toolbelt.control.reports import queries
from toolbelt.core import agents, catalog, search
from toolbelt.web.kit import pieces, texts, words
from toolbelt.web.search import sentences

MAX_HITS = 30
MAX_OF_KIND = 7
# How many things of a kind, and how many agents, a sentence may mean.
MAX_MEANT = 3
# A toolkit that a text does not name is found if it has one of so many tools that fit best.
BEST = 3


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
    _Page("Agents", "agents", "list"),
    _Page("Matrix", "matrix", "switches table agents toolkits"),
    _Page("Compare", "compare", "difference agents"),
    _Page("Toolkits", "toolkits"),
    _Page("Tools", "tools", "catalog"),
    _Page("Loadouts", "loadouts", "profiles"),
    _Page("Servers & plugins", "plugins", "mcp sources upstream"),
    _Page("Sub-apps", "sub_apps"),
    _Page("Calls", "calls", "usage unused errors", kind="call_record"),
    _Page("Audit log", "audit_log", "history who changed undo"),
    _Page("Tokens", "tokens", "api credentials", kind="api_token"),
    _Page("People & roles", "people", "users operators administrators", permission="auth.view_user"),
    _Page("Import & export", "import_export", "configuration file backup"),
    _Page("System status", "status", "health version admin", is_for_staff=True),
    _Page("Your account", "account", "password theme permissions"),
    _Page("Help & shortcuts", "help", "keyboard rules glossary"),
    _Page("New agent", "new_agent", "create add", permission="toolbelt.add_agent"),
    _Page("New toolkit", "new_toolkit", "create add", permission="toolbelt.add_toolkit"),
    _Page("New loadout", "new_loadout", "create add", permission="toolbelt.add_loadout"),
    _Page("New sub-app", "new_sub_app", "create add", permission="toolbelt.add_subapp"),
    _Page("Add server", "add_server", "create new mcp plugin", permission="toolbelt.add_plugin"),
    _Page(
        "Import servers", "import_servers", "mcp json file claude cursor", permission="toolbelt.add_plugin"
    ),
)


def _pages(text: str, user: rights.User) -> Iterator[pieces.View]:
    """Yield the pages that a text names, and that the user may open; without a text, all."""
    for page in _PAGES:
        if page.permission and not user.has_perm(page.permission):
            continue
        if page.kind and not rights.may_read(user, page.kind):
            continue
        if page.is_for_staff and not getattr(user, "is_staff", False):
            continue
        if words.contains(text, page.title, page.other_words):
            yield pieces.View(title=page.title, url=reverse(f"web:{page.name}"), key="", about="")


def page(text: str, user: rights.User) -> pieces.View:
    """Return the results for a text; without one, every page. ``number`` counts the results from 0."""
    asked = sentences.parse(text)
    stored = access_index.catalog_view().catalog
    what, who = (asked.what, asked.who) if asked else (text, text)
    is_named = bool(what.strip())
    tools = _tools(stored, what) if is_named else []
    toolkits = _toolkits(stored, what, tools) if is_named else []
    plugins = _plugins(stored, what) if is_named else []
    consumers = _agents(queries.agents_briefly(), who) if who.strip() else []
    meant = _Meant(what=what, plugins=plugins, toolkits=toolkits, tools=tools, agents=consumers)
    actions = _actions(asked, meant, user) if asked else ()
    found_agents = (_thing("agent_access", agent.key, agent.title, agent.role) for agent in consumers)
    found_kits = (_thing("toolkit", kit.key, kit.title, words.tools(len(kit.members))) for kit in toolkits)
    found_tools = (
        _thing("tool", tool.key, texts.visible(tool.title), texts.visible(words.cut(tool.description, 90)))
        for tool in tools
    )
    found_plugins = (_thing("plugin", plugin.name, texts.visible(plugin.title)) for plugin in plugins)
    things = [
        ("Agents", found_agents, len(consumers)),
        ("Toolkits", found_kits, len(toolkits)),
        ("Tools", found_tools, len(tools)),
        ("Servers & plugins", found_plugins, len(plugins)),
    ]
    if plugins and _is_exact(what, plugins[0]):
        things.insert(0, things.pop())
    groups = (
        ("Actions", actions, 0),
        *things,
        ("Pages", () if asked else _pages(text, user), 0),
    )
    number = itertools.count()
    shown = []
    for title, found, total in groups:
        results = tuple(itertools.islice(found, MAX_OF_KIND if text.strip() else None))
        for result in results:
            result.number = next(number)
        if results:
            more = f"best {len(results)} of {total}" if len(results) < total else ""
            if title == "Tools" and total >= MAX_HITS:
                # The search ends there.
                more = f"best {len(results)} of at least {MAX_HITS}"
            shown.append(pieces.View(title=title, results=results, more=more))
    return pieces.View(query=text, groups=tuple(shown), count=next(number))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Meant:
    """The entries that a sentence may mean, the likeliest first of each kind."""

    what: str
    plugins: Sequence[catalog.Plugin]
    toolkits: Sequence[catalog.Toolkit]
    tools: Sequence[catalog.Tool]
    agents: Sequence[agents.Agent]


def _actions(asked: sentences.Sentence, meant: _Meant, user: rights.User) -> Iterator[pieces.View]:
    """Yield the actions that the sentence may ask for; each leads to a page, and changes nothing."""
    if asked.verb == "why":
        yield from _explanations(meant)
    elif asked.verb in ("block", "unblock"):
        yield from _blocks(asked.verb, meant, user)
    elif asked.verb not in ("on", "off"):
        for agent in meant.agents[:MAX_MEANT]:
            title = f"{asked.verb.capitalize()} {agent.key}"
            yield _result(title, reverse(f"web:{asked.verb}", args=[agent.key]))
    elif asked.who:
        may_flip = rights.flip_check(user)
        for agent in meant.agents[:MAX_MEANT]:
            if may_flip(agent.key):
                yield from _flips(asked.verb, meant, agent.key)
    else:
        for toolkit in meant.toolkits[:MAX_MEANT]:
            address = reverse("web:toolkit", args=[toolkit.key])
            yield _result(f"Turn {asked.verb} {toolkit.key} …", address, about="Choose the agents")
        for plugin in meant.plugins[:1] if user.has_perm(rights.FLIP) else ():
            title = f"Turn {asked.verb} all tools of {plugin.name} for all agents …"
            yield _result(title, _bulk(plugin, asked.verb, "*"))


def _blocks(verb: str, meant: _Meant, user: rights.User) -> Iterator[pieces.View]:
    """Yield the pages with the button that blocks something for everyone."""
    is_blocked = verb == "unblock"
    entries = {
        "plugin": [plugin.name for plugin in meant.plugins if plugin.blocked == is_blocked],
        "toolkit": [toolkit.key for toolkit in meant.toolkits if toolkit.blocked == is_blocked],
        "tool": [tool.key for tool in meant.tools if tool.blocked == is_blocked],
    }
    for kind, names in entries.items():
        if user.has_perm(rights.permission("change", kind)):
            for name in names[:MAX_MEANT]:
                title = f"{verb.capitalize()} {kind} {name}{' for everyone' if verb == 'block' else ''} …"
                yield _result(title, reverse(f"web:{kind}", args=[name]), about="Opens its page")


def _explanations(meant: _Meant) -> Iterator[pieces.View]:
    for tool, agent in itertools.product(meant.tools[:MAX_MEANT], meant.agents[:MAX_MEANT]):
        address = reverse("web:preview", args=[agent.key], query={"view": "why", "tool": tool.key})
        yield _result(f"Why is {tool.key} on or off for {agent.key}?", address)


def _flips(verb: str, meant: _Meant, agent: str) -> Iterator[pieces.View]:
    """Yield the switches of one agent that it may mean: a toolkit, all tools of a plugin, or one tool."""
    toolkits, tools = meant.toolkits[:MAX_MEANT], meant.tools[:MAX_MEANT]
    of_plugin = [
        _result(f"Turn {verb} all tools of {plugin.name} for {agent}", _bulk(plugin, verb, agent))
        for plugin in meant.plugins[:1]
    ]
    if of_plugin and _is_exact(meant.what, meant.plugins[0]):
        yield of_plugin.pop()
    for key in (*(toolkit.key for toolkit in toolkits), *(tool.key for tool in tools)):
        address = reverse("web:flip", query={"agent": agent, "key": key, "on": verb})
        yield _result(f"Turn {verb} {key} for {agent}", address)
    yield from of_plugin


def _bulk(plugin: catalog.Plugin, verb: str, agent: str) -> str:
    """Return the address that asks whether to turn all tools of a plugin on or off; ``*`` is all agents."""
    state = "tools-true" if verb == "on" else "tools-false"
    query = {"plugin": plugin.name, "every": "yes", "for": agent, "set": state}
    return reverse("web:bulk_tools", query=query)


def _tools(stored: catalog.Catalog, text: str) -> list[catalog.Tool]:
    """Return the tools that the text finds, in the order of an agent's search; one with this very key comes first."""
    keys = [tool.key for tool in stored.tools.values() if not tool.retired]
    found = [stored.tools[hit.tool] for hit in search.search(stored, keys, text, MAX_HITS)]
    exact = stored.tools.get(text.strip())
    return list(dict.fromkeys([exact, *found])) if exact else found


def _toolkits(stored: catalog.Catalog, text: str, tools: Sequence[catalog.Tool]) -> list[catalog.Toolkit]:
    """Return the toolkits that the text names, then those with most of the tools that it finds first.

    A toolkit that is not named has one of the very best tools: all others only share a word with the text.
    """
    ranks = {tool.key: rank for rank, tool in enumerate(tools)}
    ranked = []
    for toolkit in stored.toolkits.values():
        named = _named(text, toolkit.key, toolkit.title)
        share = sum(1 / (1 + ranks[member.tool]) for member in toolkit.members if member.tool in ranks)
        is_likely = any(ranks.get(member.tool, BEST) < BEST for member in toolkit.members)
        if named is not None or is_likely:
            ranked.append((3 if named is None else named, -share, toolkit.key))
    return [stored.toolkits[key] for *_, key in sorted(ranked)]


def _plugins(stored: catalog.Catalog, text: str) -> list[catalog.Plugin]:
    """Return the servers and plugins that the text names."""
    named = [(_named(text, plugin.name, plugin.title), plugin) for plugin in stored.plugins.values()]
    found = [(rank, plugin.name, plugin) for rank, plugin in named if rank is not None]
    return [plugin for *_, plugin in sorted(found, key=lambda entry: entry[:2])]


def _agents(every: Iterable[agents.Agent], text: str) -> list[agents.Agent]:
    """Return the agents that the text names, or describes; archived ones are left out."""
    ranked = []
    for place, agent in enumerate(agent for agent in every if not agent.archived):
        named = _named(text, agent.key, agent.title)
        if named is not None or words.contains(text, agent.role, agent.description):
            ranked.append((3 if named is None else named, place, agent))
    return [agent for *_, agent in sorted(ranked, key=lambda entry: entry[:2])]


def _named(text: str, *names: str) -> int | None:
    """Return how well a text names a thing: 0 exactly, 1 from its beginning, 2 within it, None not at all."""
    wanted = _plain(text)
    found = [(wanted == name, name.startswith(wanted)) for name in map(_plain, names) if wanted in name]
    return min((0 if same else 1 if begins else 2 for same, begins in found), default=None)


def _is_exact(text: str, plugin: catalog.Plugin) -> bool:
    """Return whether the text is the name or the title of the plugin."""
    return _named(text, plugin.name, plugin.title) == 0


def _plain(name: str) -> str:
    return name.strip().casefold().replace("_", " ").replace("-", " ")


def _thing(view: str, key: str, title: str, about: str = "") -> pieces.View:
    return _result(title or key, reverse(f"web:{view}", args=[key]), key, about)


def _result(title: str, url: str, key: str = "", about: str = "") -> pieces.View:
    return pieces.View(title=title, url=url, key="" if key == title else key, about=about)
