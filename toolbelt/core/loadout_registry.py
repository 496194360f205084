"""A registry and a builder of loadouts in Python (seed: Tool Loadouts).

Works without Django: a loadout can be built, registered and tested without a database or a model::

    reviewer = (
        loadout_registry.Builder.create("security-reviewer")
        .extends("developer")
        .include_category("security")
        .add_plugin("think")
        .add_discoverable("docker*")
        .disable("websearch")
        .build()
    )
    registry = loadout_registry.Registry()
    registry.register(reviewer)
    registry.resolve_active("security-reviewer", ["git", "shell", "websearch"])
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from toolbelt.core import belts, catalog, errors, keys, loadouts


@dataclass(frozen=True, slots=True)
class Builder:
    """A loadout that is being built. Every call returns a new builder, so builders can share a common start."""

    loadout: catalog.Loadout

    @classmethod
    def create(cls, name: str) -> Builder:
        """Return a builder of a loadout with this name."""
        return cls(catalog.Loadout(name=name))

    def extends(self, parent: str) -> Builder:
        """Inherit from the loadout with this name."""
        return Builder(dataclasses.replace(self.loadout, parent=parent))

    def include_category(self, category: str) -> Builder:
        """Include every plugin of the category, which is one of the thirteen or your own."""
        return Builder(dataclasses.replace(self.loadout, categories=_with(self.loadout.categories, category)))

    def add_plugin(self, name: str) -> Builder:
        """Include this plugin."""
        return Builder(dataclasses.replace(self.loadout, plugins=_with(self.loadout.plugins, name)))

    def add_discoverable(self, pattern: str) -> Builder:
        """Make the plugin or tool with this name discoverable, or with a trailing ``*``, all with this prefix."""
        return Builder(
            dataclasses.replace(self.loadout, discoverable=_with(self.loadout.discoverable, pattern))
        )

    def disable(self, name: str) -> Builder:
        """Disable this plugin or tool, at every level and whatever else includes it."""
        return Builder(dataclasses.replace(self.loadout, disabled=_with(self.loadout.disabled, name)))

    def build(self) -> catalog.Loadout:
        """Return the loadout; raise :class:`errors.Invalid` if it is not valid."""
        written = belts.entry("loadout", self.loadout)
        problems = belts.check_entry("loadout", written, _index_for(self.loadout))
        if problems:
            raise errors.Invalid(problems)
        return self.loadout


class Plugin(Protocol):
    """A plugin, as far as a registry reads it. An optional ``category`` replaces the default for its name."""

    @property
    def name(self) -> str: ...


class Registry:
    """Loadouts by name, ignoring case; contains the five built-in ones. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Replaced as a whole on registration, so that readers need no lock and see one consistent state.
        self._loadouts: Mapping[str, catalog.Loadout] = dict(loadouts.BUILT_IN)

    def register(self, loadout: catalog.Loadout) -> None:
        """Add the loadout, replacing one with the same name."""
        with self._lock:
            self._loadouts = {**self._loadouts, keys.fold(loadout.name): loadout}

    def get(self, name: str) -> catalog.Loadout | None:
        """Return the loadout with this name, or None."""
        return self._loadouts.get(keys.fold(name))

    def all(self) -> tuple[catalog.Loadout, ...]:
        """Return the loadouts: built-in ones first, then in the order of registration."""
        return tuple(self._loadouts.values())

    def resolve_active(self, name: str, plugins: Iterable[str | Plugin]) -> frozenset[str]:
        """Return those of the plugins that the loadout includes; none if the loadout is unknown."""
        return loadouts.plugins_active(loadouts.view(self._loadouts, name), _requirements(plugins))

    def resolve_discoverable(self, name: str, plugins: Iterable[str | Plugin]) -> frozenset[str]:
        """Return those of the plugins that are not included but discoverable."""
        return loadouts.plugins_discoverable(loadouts.view(self._loadouts, name), _requirements(plugins))


def _with(entries: tuple[str, ...], entry: str) -> tuple[str, ...]:
    """Return the entries with this one added, unless they contain it, ignoring case."""
    return entries if keys.fold(entry) in map(keys.fold, entries) else (*entries, entry)


def _index_for(loadout: catalog.Loadout) -> belts.NameIndex:
    """Return an index with everything that the loadout names, so that only its own problems are reported."""
    parent = catalog.Loadout(name=loadout.parent)
    is_own = keys.fold(loadout.parent) == keys.fold(loadout.name)
    stored = catalog.compile_(categories=loadout.categories, loadouts=[] if is_own else [parent])
    return belts.NameIndex.of_catalog(stored, ())


def _requirements(plugins: Iterable[str | Plugin]) -> list[loadouts.Requirement]:
    return [
        loadouts.Requirement(name=plugin)
        if isinstance(plugin, str)
        else loadouts.Requirement(name=plugin.name, category=getattr(plugin, "category", None) or "")
        for plugin in plugins
    ]
