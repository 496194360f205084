"""Tools by the names that their servers give them, for hosts that show a server's screens (MCP Apps).

A screen knows nothing of Toolbelt: it calls the tools of its server by the server's own names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from toolbelt.core import catalog, rules
from toolbelt.core.rules import budgets


def key_of(resolved: budgets.Resolution, name: str) -> str:
    """Return the key of the tool that is called by this name: Toolbelt's own name of a tool that concerns the agent,
    else the server's own name of the only tool with it that concerns the agent; any other name is returned unchanged.

    Tools that are denied to the agent count, so that its denial decides, and not another server's tool that happens to
    have the same name.
    """
    context = resolved.context
    keys = _by_own_name(context.catalog).get(name, frozenset())
    if not keys:
        return name
    concerning = context.granted | context.denied | context.tools((rules.INCLUDING, rules.OFFERING))
    concerned = keys & concerning
    return next(iter(concerned)) if len(concerned) == 1 and name not in concerning else name


@catalog.derived
def _by_own_name(stored: catalog.Catalog) -> Mapping[str, frozenset[str]]:
    """Return the keys of the servers' tools by the servers' own names of them, where Toolbelt's is another."""
    keys: dict[str, set[str]] = defaultdict(set)
    for plugin in stored.plugins.values():
        if plugin.upstream:
            for key in stored.tools_of_plugin.get(plugin.name, ()):
                tool = stored.tools[key]
                if tool.kind == "tool":
                    keys[catalog.name_at_server(tool, plugin.namespace)].add(key)
    return {name: frozenset(keys[name]) for name in keys}
