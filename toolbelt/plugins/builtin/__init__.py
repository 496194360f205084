"""The built-in plugins by name, with their module and class.

They are named rather than imported, so that unused plugins are not loaded.
"""

from __future__ import annotations

from collections.abc import Mapping

CLASSES: Mapping[str, tuple[str, str]] = {
    "files": ("toolbelt.plugins.builtin.files.plugin", "Files"),
    "memory": ("toolbelt.plugins.builtin.memory.plugin", "Memory"),
    "scheduler": ("toolbelt.plugins.builtin.scheduler.plugin", "Scheduler"),
    "self_evolution": ("toolbelt.plugins.builtin.self_evolution.plugin", "SelfEvolution"),
    "think": ("toolbelt.plugins.builtin.think.plugin", "Think"),
    "toolDiscovery": ("toolbelt.plugins.builtin.tool_discovery.plugin", "ToolDiscovery"),
    "web": ("toolbelt.plugins.builtin.web.plugin", "Web"),
}
