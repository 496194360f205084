"""The index of names that an entry may refer to, and of names that are taken."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from toolbelt.core import catalog, keys, loadouts

# tools_config holds both tools and toolkits, so they share one namespace.
_SPACES = {"toolkit": "tool", "built-in category": "category"}

Owner = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class NameIndex:
    """The existing names: everything that an entry may name, and every name that is taken.

    ``owners`` maps namespace and folded name to the kind and name of the owner; ``namespaces`` maps a folded namespace
    to its plugin.
    """

    stored: catalog.Catalog
    agents: Collection[str]
    owners: Mapping[tuple[str, str], Owner]
    namespaces: Mapping[str, str]

    @classmethod
    def of_catalog(cls, stored: catalog.Catalog, agent_keys: Iterable[str]) -> NameIndex:
        """Return the index of what is stored."""
        agent_keys = tuple(agent_keys)
        names = [
            *(("category", name) for name in stored.categories if name not in catalog.CATEGORIES),
            *(("plugin", name) for name in stored.plugins),
            *(("tool", key) for key in stored.tools),
            *(("toolkit", key) for key in stored.toolkits),
            *(("loadout", loadout.name) for loadout in stored.loadouts.values()),
            *(("agent", key) for key in agent_keys),
            *(("sub_app", key) for key in stored.sub_apps),
            *(("gate_rule", key) for key in stored.gate_rules),
        ]
        return cls.of_names(stored, agent_keys, names)

    @classmethod
    def of_names(
        cls, stored: catalog.Catalog, agent_keys: Collection[str], names: Iterable[Owner]
    ) -> NameIndex:
        """Return the index of a catalog whose ``names``, with their kinds, may clash: the first owner of each wins."""
        owners: dict[tuple[str, str], Owner] = {}
        for kind, name in (*(("built-in category", name) for name in catalog.CATEGORIES), *names):
            owners.setdefault(_slot(kind, name), (kind, name))
        namespaces: dict[str, str] = {}
        for plugin in stored.plugins.values():
            if plugin.namespace:
                namespaces.setdefault(keys.fold(plugin.namespace), plugin.name)
        return cls(stored=stored, agents=agent_keys, owners=owners, namespaces=namespaces)

    def owner(self, kind: str, name: str) -> Owner | None:
        """Return the owner of this name, or of one that differs only in case."""
        return self.owners.get(_slot(kind, name))

    def named(self, kind: str) -> Collection[str]:
        """Return the names of all entries of a kind, or of the tools and toolkits."""
        match kind:
            case "category":
                return tuple(dict.fromkeys((*catalog.CATEGORIES, *self.stored.categories)))
            case "loadout":
                return loadouts.all_names(self.stored)
            case "tool or toolkit":
                return [*self.stored.toolkits, *self.stored.tools]
            case "agent":
                return self.agents
        by_kind: Mapping[str, Collection[str]] = {
            "plugin": self.stored.plugins,
            "tool": self.stored.tools,
            "toolkit": self.stored.toolkits,
            "sub-app": self.stored.sub_apps,
        }
        return by_kind[kind]

    def has(self, kind: str, name: str) -> bool:
        """Return whether an entry of a kind exists; categories and loadouts ignore case."""
        match kind:
            case "category":
                return _slot("category", name) in self.owners
            case "loadout":
                return loadouts.exists(self.stored.loadouts, name)
            case "tool or toolkit":
                return name in self.stored.toolkits or name in self.stored.tools
        return name in self.named(kind)


def _slot(kind: str, name: str) -> tuple[str, str]:
    return _SPACES.get(kind, kind), keys.fold(name)
