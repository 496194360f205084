"""Loadouts: which tools they include, make discoverable or deny (seed: Tool Loadouts; docs/semantics.md: Loadouts).

The chain leads from the loadout to its root; plugins, categories, patterns, disabled entries and denied risks are the
union over it.
It ends at the first repetition and at an unknown parent, and never raises.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from toolbelt.core import catalog, errors, keys, risks


class WellKnownLoadouts:
    """The names of the five built-in loadouts, as constants."""

    MINIMAL: Final = "minimal"
    DEVELOPER: Final = "developer"
    RESEARCH: Final = "research"
    DEVOPS: Final = "devops"
    FULL: Final = "full"


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


BLANK_PATTERN = "A pattern cannot be blank: write a name, the beginning of one with *, or * for all."
# A name of a plugin or a tool, or the beginning of one.
_PATTERN = re.compile(r"[A-Za-z0-9_.-]{1,64}\*?|\*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unresolved:
    """An entry of a loadout that names nothing: the loadout, the field and position, and similar names that exist."""

    loadout: str
    field: str
    position: int
    name: str
    nearest: tuple[str, ...]

    @property
    def message(self) -> str:
        """Return a message that explains this, and how to fix it."""
        kind = "plugin" if self.field == "plugins" else "plugin or tool"
        hint = f" Did you mean {' or '.join(self.nearest)}?" if self.nearest else ""
        effect = "It disables nothing" if self.field == "disabled" else "It brings nothing"
        return f"There is no {kind} named {self.name!r}.{hint} {effect} until one has this name."


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The union over a loadout's chain. The mappings name, for each folded entry, the loadout that has it."""

    name: str
    chain: tuple[str, ...]
    plugins: Mapping[str, str]
    categories: Mapping[str, str]
    patterns: Mapping[str, str]
    disabled: Mapping[str, str]
    denied_risks: Mapping[str, str]
    _matches: dict[str, str] = field(default_factory=dict, compare=False)

    def disables(self, tool: str, plugin: str) -> str | None:
        """Return the loadout that disables the tool or its plugin, or None."""
        if not self.disabled:
            return None
        return self.disabled.get(keys.fold(tool)) or (
            self.disabled.get(keys.fold(plugin)) if plugin else None
        )

    def includes(self, plugin: str, category: str) -> tuple[str, str] | None:
        """Return (``plugin`` or ``category``, the loadout) for what includes a tool, or None."""
        if plugin and (origin := self.plugins.get(keys.fold(plugin))):
            return "plugin", origin
        if category and (origin := self.categories.get(keys.fold(category))):
            return "category", origin
        return None

    def discovers(self, name: str) -> str | None:
        """Return the first pattern that matches a plugin's name or a tool's key, or None."""
        if not self.patterns or not name:
            return None
        pattern = self._matches.get(name)
        if pattern is None:
            pattern = next((p for p in self.patterns if matches(p, name)), "")
            self._matches[name] = pattern
        return pattern or None


def matches(pattern: str, name: str) -> bool:
    """Return whether ``name`` equals the pattern, or starts with the text before its trailing ``*``."""
    pattern, name = keys.fold(pattern), keys.fold(name)
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def pattern_problem(pattern: str) -> str | None:
    """Return the problem of a pattern, or None. (Resolving takes any: rows may have been written elsewhere.)"""
    if not pattern.strip():
        return BLANK_PATTERN
    if not _PATTERN.fullmatch(pattern):
        return f"{pattern!r} is not a pattern: write a name, the beginning of one with * at the end, or * for all."
    return None


def unresolved(stored: catalog.Catalog, loadout: catalog.Loadout) -> tuple[Unresolved, ...]:
    """Return the entries of the loadout that name no plugin or tool. A pattern with * may match nothing yet."""
    plugins, names = _known_names(stored)
    entries = [
        *(("plugins", position, name, plugins) for position, name in enumerate(loadout.plugins)),
        *(
            ("discoverable", position, name, names)
            for position, name in enumerate(loadout.discoverable)
            if not name.endswith("*")
        ),
        *(("disabled", position, name, names) for position, name in enumerate(loadout.disabled)),
    ]
    return tuple(
        Unresolved(
            loadout=loadout.name,
            field=field,
            position=position,
            name=name,
            nearest=errors.nearest(name, names.values()),
        )
        for field, position, name, names in entries
        if keys.fold(name) not in names
    )


@catalog.derived
def _known_names(stored: catalog.Catalog) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return the plugins, and the plugins and tools, by folded name."""
    plugins = {keys.fold(name): name for name in stored.plugins}
    tools = {keys.fold(key): key for key in stored.tools}
    return plugins, {**tools, **plugins}


def chain(stored: Mapping[str, catalog.Loadout], name: str) -> tuple[catalog.Loadout, ...]:
    """Return the loadouts from this one to its root, up to a repetition or an unknown parent. ``known`` is by folded
    name.
    """
    links: list[catalog.Loadout] = []
    visited: set[str] = set()
    folded = keys.fold(name)
    while folded and folded not in visited:
        visited.add(folded)
        loadout = stored.get(folded) or BUILT_IN.get(folded)
        if loadout is None:
            break
        links.append(loadout)
        folded = keys.fold(loadout.parent)
    return tuple(links)


def view(stored: Mapping[str, catalog.Loadout], name: str) -> View:
    """Return the union over the chain of ``name``. An unknown name returns an empty view."""
    links = chain(stored, name)
    plugins: dict[str, str] = {}
    categories: dict[str, str] = {}
    patterns: dict[str, str] = {}
    disabled: dict[str, str] = {}
    denied_risks: dict[str, str] = {}
    for link in links:
        for risk in link.denied_risks:
            denied_risks.setdefault(risk, link.name)
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
        denied_risks=denied_risks,
    )


def view_in(stored: catalog.Catalog, name: str) -> View:
    """Return the view of a loadout of this catalog."""
    return _view_in(stored, keys.fold(name))


@catalog.derived
def _view_in(stored: catalog.Catalog, name: str) -> View:
    return view(stored.loadouts, name)


def tools_included(stored: catalog.Catalog, name: str) -> tuple[str, ...]:
    """Return the tools that the loadout includes, and neither disables nor denies for their risk."""
    return _tools_included(stored, keys.fold(name))


@catalog.derived
def _tools_included(stored: catalog.Catalog, name: str) -> tuple[str, ...]:
    denied = tools_denied(stored, name)
    included = dict.fromkeys(tool for *_, tools in included_sets(stored, name) for tool in tools)
    return tuple(key for key in included if key not in denied)


def included_sets(
    stored: catalog.Catalog, name: str
) -> Iterator[tuple[Literal["plugin", "category"], str, str, Sequence[str]]]:
    """Yield what the loadout includes: a plugin or a category, the loadout of the chain that has it, and its tools."""
    view_ = view_in(stored, name)
    for plugin, tools in stored.tools_of_plugin.items():
        if origin := view_.plugins.get(keys.fold(plugin)):
            yield "plugin", plugin, origin, tools
    for category, tools in stored.tools_of_category.items():
        if origin := view_.categories.get(keys.fold(category)):
            yield "category", category, origin, tools


def tools_discoverable(stored: catalog.Catalog, name: str) -> tuple[str, ...]:
    """Return the tools that a pattern of the loadout matches, by key or plugin."""
    return _tools_discoverable(stored, keys.fold(name))


@catalog.derived
def _tools_discoverable(stored: catalog.Catalog, name: str) -> tuple[str, ...]:
    matched = {tool for _, tools in matched_sets(stored, name) for tool in tools}
    return tuple(key for key in stored.tools if key in matched)


def matched_sets(stored: catalog.Catalog, name: str) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the patterns of the loadout with the tools whose keys they match, then with those whose plugins."""
    tools, plugins = _by_folded_name(stored)
    patterns = view_in(stored, name).patterns
    for pattern in patterns:
        yield pattern, [key for folded in tools.matching(pattern) for key in tools.named[folded]]
    for pattern in patterns:
        yield (
            pattern,
            _tools_of(stored, [p for folded in plugins.matching(pattern) for p in plugins.named[folded]]),
        )


def tools_denied(stored: catalog.Catalog, name: str) -> frozenset[str]:
    """Return the tools that the loadout disables, by key or by plugin, or whose risk it denies."""
    return _tools_denied(stored, keys.fold(name))


@catalog.derived
def _tools_denied(stored: catalog.Catalog, name: str) -> frozenset[str]:
    disabled = frozenset(tool for _, tools in disabled_sets(stored, name) for tool in tools)
    return disabled.union(*[tools for _, _, tools in risky_sets(stored, name)])


def disabled_sets(stored: catalog.Catalog, name: str) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the loadouts of the chain with the tools that they disable by key, then with those by plugin."""
    tools, plugins = _by_folded_name(stored)
    disabled = view_in(stored, name).disabled
    for entry, origin in disabled.items():
        yield origin, tools.named.get(entry, ())
    for entry, origin in disabled.items():
        yield origin, _tools_of(stored, plugins.named.get(entry, ()))


def risky_sets(
    stored: catalog.Catalog, name: str
) -> Iterator[tuple[catalog.DeniedRisk, str, frozenset[str]]]:
    """Yield the risks that the loadout denies, with the loadout of the chain that does, and the tools that have it."""
    view_ = view_in(stored, name)
    for risk in catalog.DENIED_RISKS:
        if origin := view_.denied_risks.get(risk):
            yield risk, origin, risks.tools_with(stored, risk)


def _tools_of(stored: catalog.Catalog, plugins: Iterable[str]) -> list[str]:
    return [key for plugin in plugins for key in stored.tools_of_plugin[plugin]]


class _Folded:
    """Names by their folded forms, which are sorted so that a prefix search need not try each of them."""

    def __init__(self, names: Iterable[str]) -> None:
        self.named: dict[str, list[str]] = {}
        for name in names:
            self.named.setdefault(keys.fold(name), []).append(name)
        self._in_order = sorted(self.named)

    def matching(self, pattern: str) -> Iterator[str]:
        """Yield the folded names that match this folded pattern, by the rule of :func:`matches`."""
        if not pattern.endswith("*"):
            if pattern in self.named:
                yield pattern
            return
        prefix = pattern[:-1]
        for position in range(bisect.bisect_left(self._in_order, prefix), len(self._in_order)):
            if not self._in_order[position].startswith(prefix):
                return
            yield self._in_order[position]


@catalog.derived
def _by_folded_name(stored: catalog.Catalog) -> tuple[_Folded, _Folded]:
    """Return the tools, and the plugins that have tools, by folded name."""
    return _Folded(stored.tools), _Folded(stored.tools_of_plugin)


def all_names(stored: catalog.Catalog) -> tuple[str, ...]:
    """Return the names of all loadouts: the stored ones, and the built-in ones that none replaces."""
    names = [loadout.name for loadout in stored.loadouts.values()]
    return tuple(names + [name for name in BUILT_IN if keys.fold(name) not in stored.loadouts])


def exists(stored: Mapping[str, catalog.Loadout], name: str) -> bool:
    """Return whether a loadout with this name is stored or built in, ignoring case."""
    return keys.fold(name) in stored or keys.fold(name) in BUILT_IN


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """A plugin for a registry: its name and, if it states one, its category."""

    name: str
    category: str = ""


def plugins_active(view_: View, plugins: Iterable[Requirement]) -> frozenset[str]:
    """Return the plugins that the loadout includes, by name or category, and does not disable."""
    return frozenset(p.name for p in plugins if _included(view_, p) and not view_.disables(p.name, p.name))


def plugins_discoverable(view_: View, plugins: Iterable[Requirement]) -> frozenset[str]:
    """Return the plugins that a pattern matches and that are neither included nor disabled."""
    return frozenset(
        p.name
        for p in plugins
        if view_.discovers(p.name) and not _included(view_, p) and not view_.disables(p.name, p.name)
    )


def _included(view_: View, plugin: Requirement) -> bool:
    category = plugin.category or catalog.PLUGIN_CATEGORIES.get(keys.fold(plugin.name), "")
    return view_.includes(plugin.name, category) is not None
