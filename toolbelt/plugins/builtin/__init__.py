"""Which plugins does Toolbelt bring along? Each by its name, with the module and class that a plugins' file names.

Places and no classes: one that is not used costs nothing, and one that cannot be imported stops no other.
"""

from __future__ import annotations

from collections.abc import Mapping

PLACES: Mapping[str, tuple[str, str]] = {
    "files": ("toolbelt.plugins.builtin.files.plugin", "Files"),
    "memory": ("toolbelt.plugins.builtin.memory.plugin", "Memory"),
    "scheduler": ("toolbelt.plugins.builtin.scheduler.plugin", "Scheduler"),
    "self_evolution": ("toolbelt.plugins.builtin.self_evolution.plugin", "SelfEvolution"),
    "think": ("toolbelt.plugins.builtin.think.plugin", "Think"),
    "toolDiscovery": ("toolbelt.plugins.builtin.tool_discovery.plugin", "ToolDiscovery"),
    "web": ("toolbelt.plugins.builtin.web.plugin", "Web"),
}
