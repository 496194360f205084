"""How is a loadout written in Python, and which plugins does it bring in? (seed: Tool Loadouts)

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
    """A loadout in the making. Every call gives a new builder, so a common beginning can be shared."""

    loadout: catalog.Loadout

    @classmethod
    def create(cls, name: str) -> Builder:
        """Begin a loadout of this name."""
        return cls(catalog.Loadout(name=name))

    def extends(self, parent: str) -> Builder:
        """Inherit from the loadout of this name."""
        return Builder(dataclasses.replace(self.loadout, parent=parent))

    def include_category(self, category: str) -> Builder:
        """Bring in every plugin of the category, one of the thirteen or one of your own."""
        return Builder(dataclasses.replace(self.loadout, categories=_with(self.loadout.categories, category)))

    def add_plugin(self, name: str) -> Builder:
        """Bring in this plugin."""
        return Builder(dataclasses.replace(self.loadout, plugins=_with(self.loadout.plugins, name)))

    def add_discoverable(self, pattern: str) -> Builder:
        """Let be discovered what has this name, or with one trailing ``*``, what begins so."""
        return Builder(
            dataclasses.replace(self.loadout, discoverable=_with(self.loadout.discoverable, pattern))
        )

    def disable(self, name: str) -> Builder:
        """Keep this plugin or tool out, whatever brings it in and at whatever level."""
        return Builder(dataclasses.replace(self.loadout, disabled=_with(self.loadout.disabled, name)))

    def build(self) -> catalog.Loadout:
        """Give the loadout; raise :class:`errors.Invalid` where it is not sound in itself."""
        written = belts.entry("loadout", self.loadout)
        problems = belts.check_entry("loadout", written, _world_of(self.loadout))
        if problems:
            raise errors.Invalid(problems)
        return self.loadout


class Plugin(Protocol):
    """What a registry needs of a plugin. A ``category`` may be stated; without one the name's own is taken."""

    @property
    def name(self) -> str: ...


class Registry:
    """Loadouts by name, ignoring case: the five built-in ones at first. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Replaced as a whole on registration, so that readers need no lock and see one state throughout.
        self._loadouts: Mapping[str, catalog.Loadout] = dict(loadouts.BUILT_IN)

    def register(self, loadout: catalog.Loadout) -> None:
        """Take the loadout in, in the place of one that has its name."""
        with self._lock:
            self._loadouts = {**self._loadouts, keys.fold(loadout.name): loadout}

    def get(self, name: str) -> catalog.Loadout | None:
        """Give the loadout of this name, or None."""
        return self._loadouts.get(keys.fold(name))

    def all(self) -> tuple[catalog.Loadout, ...]:
        """List the loadouts, the built-in ones first, then in the order of registration."""
        return tuple(self._loadouts.values())

    def resolve_active(self, name: str, plugins: Iterable[str | Plugin]) -> frozenset[str]:
        """Name those of the plugins that the loadout brings in; none for a loadout that is not known."""
        return loadouts.plugins_active(loadouts.view(self._loadouts, name), _requirements(plugins))

    def resolve_discoverable(self, name: str, plugins: Iterable[str | Plugin]) -> frozenset[str]:
        """Name those of the plugins that are not brought in but can be had on request."""
        return loadouts.plugins_discoverable(loadouts.view(self._loadouts, name), _requirements(plugins))


def _with(entries: tuple[str, ...], entry: str) -> tuple[str, ...]:
    """Add an entry, unless it is there already, whatever its case."""
    return entries if keys.fold(entry) in map(keys.fold, entries) else (*entries, entry)


def _world_of(loadout: catalog.Loadout) -> belts.Known:
    """Give a world that has all that the loadout names: alone, it cannot be wrong about what others have."""
    parent = catalog.Loadout(name=loadout.parent)
    is_own = keys.fold(loadout.parent) == keys.fold(loadout.name)
    stored = catalog.compile_(categories=loadout.categories, loadouts=[] if is_own else [parent])
    return belts.Known.of_catalog(stored, ())


def _requirements(plugins: Iterable[str | Plugin]) -> list[loadouts.Requirement]:
    return [
        loadouts.Requirement(name=one)
        if isinstance(one, str)
        else loadouts.Requirement(name=one.name, category=getattr(one, "category", None) or "")
        for one in plugins
    ]
