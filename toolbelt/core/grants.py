"""May this agent ever use this tool? (semantics: tools_config; seed: Config Semantics)

Switches and overrides are each on, off or unset (the key is not there). Any switch that is off decides, whatever
the other switches say; a switch that is on selects as well as permits.
"""

from __future__ import annotations

from collections.abc import Mapping

from toolbelt.core import agents, catalog


def split(stored: catalog.Catalog, flat: Mapping[str, object]) -> tuple[dict[str, bool], dict[str, bool]]:
    """Part the flat form into (switches, overrides). What is neither true nor false, or names nothing, is unset."""
    switches: dict[str, bool] = {}
    overrides: dict[str, bool] = {}
    for key, value in flat.items():
        if not isinstance(value, bool):
            continue
        if key in stored.toolkits:
            switches[key] = value
        elif key in stored.tools:
            overrides[key] = value
    return switches, overrides


def switch_off_over(stored: catalog.Catalog, agent: agents.Agent, tool: str) -> str | None:
    """Name the first toolkit over the tool whose switch is off, or None."""
    for toolkit in stored.toolkits_of.get(tool, ()):
        if agent.switches.get(toolkit.key) is False:
            return toolkit.key
    return None
