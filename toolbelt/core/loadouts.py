"""Which tools does this loadout bring into view? (seed: Tool Loadouts; semantics: questions 5, 9 and 10)

The chain is walked from the loadout to its root; plugins, categories, patterns and disabled entries are the
union over it. It is cut at the first revisit and at an unknown parent, and never raises.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from toolbelt.core import catalog, keys

BUILT_IN: Mapping[str, catalog.Loadout] = {
    loadout.name: loadout
    for loadout in (
        catalog.Loadout(
            name="minimal",
            description="Files, a shell and thinking; everything else can be discovered.",
            plugins=("think", "toolDiscovery"),
            categories=("filesystem", "shell"),
            discoverable=("*",),
        ),
        catalog.Loadout(
            name="developer",
            description="Minimal, with git, GitHub, search, analysis and memory.",
            parent="minimal",
            categories=("git", "github", "search", "analysis", "memory"),
            discoverable=("docker*", "mcp*"),
        ),
        catalog.Loadout(
            name="research",
            description="Minimal, with search, the web, memory and multimodal input.",
            parent="minimal",
            categories=("search", "web", "memory", "multimodal"),
        ),
        catalog.Loadout(
            name="devops",
            description="Minimal, with git, networks and scheduling; containers can be discovered.",
            parent="minimal",
            categories=("git", "network", "scheduling"),
            discoverable=("docker*", "kube*", "terraform*"),
        ),
        catalog.Loadout(
            name="full",
            description="Every category.",
            plugins=("toolDiscovery",),
            categories=catalog.CATEGORIES,
        ),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a loadout's chain amounts to. The mappings name, for each folded entry, the loadout that has it."""

    name: str
    chain: tuple[str, ...]
    plugins: Mapping[str, str]
    categories: Mapping[str, str]
    patterns: Mapping[str, str]
    disabled: Mapping[str, str]
    _matches: dict[str, str] = field(default_factory=dict, compare=False)

    def disables(self, tool: str, plugin: str) -> str | None:
        """Name the loadout that disables the tool or its plugin, or None."""
        if not self.disabled:
            return None
        return self.disabled.get(keys.fold(tool)) or (
            self.disabled.get(keys.fold(plugin)) if plugin else None
        )

    def includes(self, plugin: str, category: str) -> tuple[str, str] | None:
        """Give (``plugin`` or ``category``, the loadout) for what brings a tool into view, or None."""
        if plugin and (origin := self.plugins.get(keys.fold(plugin))):
            return "plugin", origin
        if category and (origin := self.categories.get(keys.fold(category))):
            return "category", origin
        return None

    def discovers(self, name: str) -> str | None:
        """Give the first pattern that matches a plugin's name or a tool's key, or None."""
        if not self.patterns or not name:
            return None
        known = self._matches.get(name)
        if known is None:
            known = next((p for p in self.patterns if matches(p, name)), "")
            self._matches[name] = known
        return known or None


def matches(pattern: str, name: str) -> bool:
    """Say whether ``name`` is the pattern, or starts with what stands before its one trailing ``*``."""
    pattern, name = keys.fold(pattern), keys.fold(name)
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def chain(known: Mapping[str, catalog.Loadout], name: str) -> tuple[catalog.Loadout, ...]:
    """Walk from the loadout to its root, cut at a revisit or an unknown parent. ``known`` is by folded name."""
    found: list[catalog.Loadout] = []
    visited: set[str] = set()
    folded = keys.fold(name)
    while folded and folded not in visited:
        visited.add(folded)
        loadout = known.get(folded) or BUILT_IN.get(folded)
        if loadout is None:
            break
        found.append(loadout)
        folded = keys.fold(loadout.parent)
    return tuple(found)


def view(known: Mapping[str, catalog.Loadout], name: str) -> View:
    """Unite the chain of ``name``. An unknown name gives a view that brings nothing in."""
    links = chain(known, name)
    plugins: dict[str, str] = {}
    categories: dict[str, str] = {}
    patterns: dict[str, str] = {}
    disabled: dict[str, str] = {}
    for link in links:
        for into, entries in (
            (plugins, link.plugins),
            (categories, link.categories),
            (patterns, link.discoverable),
            (disabled, link.disabled),
        ):
            for entry in entries:
                into.setdefault(keys.fold(entry), link.name)
    return View(
        name=links[0].name if links else name,
        chain=tuple(link.name for link in links),
        plugins=plugins,
        categories=categories,
        patterns=patterns,
        disabled=disabled,
    )


def view_in(stored: catalog.Catalog, name: str) -> View:
    """Give the view of a loadout of this catalog; worked out once, then kept with it."""
    slot = ("loadout", keys.fold(name))
    known = stored.derived.get(slot)
    if known is None:
        known = stored.derived[slot] = view(stored.loadouts, name)
    return known


def tools_included(stored: catalog.Catalog, name: str) -> tuple[str, ...]:
    """List the tools that the loadout brings into view and does not disable; kept with the catalog."""
    slot = ("loadout tools", keys.fold(name))
    known = stored.derived.get(slot)
    if known is None:
        known = stored.derived[slot] = _tools_included(stored, view_in(stored, name))
    return known


def _tools_included(stored: catalog.Catalog, seen: View) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for plugin, tools in stored.tools_of_plugin.items():
        if keys.fold(plugin) in seen.plugins:
            found.update(dict.fromkeys(tools))
    for category, tools in stored.tools_of_category.items():
        if keys.fold(category) in seen.categories:
            found.update(dict.fromkeys(tools))
    return tuple(key for key in found if not seen.disables(key, stored.tools[key].plugin))


def tools_discoverable(stored: catalog.Catalog, name: str) -> tuple[str, ...]:
    """List the tools that a pattern of the loadout matches, by key or plugin; kept with the catalog."""
    slot = ("loadout patterns", keys.fold(name))
    known = stored.derived.get(slot)
    if known is None:
        found: set[str] = set()
        tools, plugins = _by_folded_name(stored)
        for pattern in view_in(stored, name).patterns:
            for folded in tools.matching(pattern):
                found.update(tools.named[folded])
            for folded in plugins.matching(pattern):
                for plugin in plugins.named[folded]:
                    found.update(stored.tools_of_plugin[plugin])
        known = stored.derived[slot] = tuple(key for key in stored.tools if key in found)
    return known


def tools_disabled(stored: catalog.Catalog, name: str) -> frozenset[str]:
    """Return the tools that the loadout denies, by themselves or with their plugins; kept with the catalog."""
    slot = ("loadout disabled", keys.fold(name))
    known: frozenset[str] | None = stored.derived.get(slot)
    if known is None:
        tools, plugins = _by_folded_name(stored)
        found: set[str] = set()
        for entry in view_in(stored, name).disabled:
            found.update(tools.named.get(entry, ()))
            for plugin in plugins.named.get(entry, ()):
                found.update(stored.tools_of_plugin[plugin])
        known = stored.derived[slot] = frozenset(found)
    return known


class _Folded:
    """Names by their folded forms, and those forms in order: whoever looks for a beginning need not try each."""

    def __init__(self, names: Iterable[str]) -> None:
        self.named: dict[str, list[str]] = {}
        for name in names:
            self.named.setdefault(keys.fold(name), []).append(name)
        self._in_order = sorted(self.named)

    def matching(self, pattern: str) -> Iterator[str]:
        """List the folded names that match this pattern, which is folded too, as :func:`matches` has it."""
        if not pattern.endswith("*"):
            if pattern in self.named:
                yield pattern
            return
        beginning = pattern[:-1]
        for place in range(bisect.bisect_left(self._in_order, beginning), len(self._in_order)):
            if not self._in_order[place].startswith(beginning):
                return
            yield self._in_order[place]


def _by_folded_name(stored: catalog.Catalog) -> tuple[_Folded, _Folded]:
    """Return the tools, and the plugins that have some, by name; kept with the catalog."""
    known: tuple[_Folded, _Folded] | None = stored.derived.get("folded names")
    if known is None:
        known = stored.derived["folded names"] = (_Folded(stored.tools), _Folded(stored.tools_of_plugin))
    return known


def all_names(stored: catalog.Catalog) -> tuple[str, ...]:
    """Name every loadout there is: the stored ones and the built-in ones that none replaces."""
    names = [loadout.name for loadout in stored.loadouts.values()]
    return tuple(names + [name for name in BUILT_IN if keys.fold(name) not in stored.loadouts])


def exists(stored: Mapping[str, catalog.Loadout], name: str) -> bool:
    """Say whether a loadout of this name is stored or built in, whatever the case."""
    return keys.fold(name) in stored or keys.fold(name) in BUILT_IN


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """What a plugin must show to be sorted by a registry: a name and, where it states one, a category."""

    name: str
    category: str = ""


def plugins_active(seen: View, plugins: Iterable[Requirement]) -> frozenset[str]:
    """Name the plugins that the loadout brings in: named or by category, and not disabled."""
    return frozenset(p.name for p in plugins if _included(seen, p) and not seen.disables(p.name, p.name))


def plugins_discoverable(seen: View, plugins: Iterable[Requirement]) -> frozenset[str]:
    """Name the plugins that can be had on request: a pattern matches, not brought in, not disabled."""
    return frozenset(
        p.name
        for p in plugins
        if seen.discovers(p.name) and not _included(seen, p) and not seen.disables(p.name, p.name)
    )


def _included(seen: View, plugin: Requirement) -> bool:
    category = plugin.category or catalog.PLUGIN_CATEGORIES.get(keys.fold(plugin.name), "")
    return seen.includes(plugin.name, category) is not None
