"""Loading of the plugins that the plugins file lists.

An entry names an installed plugin by ``id``, or any plugin by module and class. Installed plugins that are not listed
are shown but not imported. If an entry is not valid, or its code raises when it is imported, the other plugins are
still loaded; the plugin is recorded in the registry as failed, and its problem in ``problems``.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import structlog

from toolbelt.core import errors
from toolbelt.plugins import agent_adapter, builtin, contract, lifecycle, plugins_file, registry

GROUP = "toolbelt.tool_plugins"
# The distribution that contains the built-in plugins.
OURS = "toolbelt"

Problem = plugins_file.Problem

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A plugin in an installed distribution: its entry point's name, and the location of its code."""

    name: str
    module: str
    attribute: str
    distribution: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The registry with all listed plugins, the problems, and the plugins that are installed but not listed."""

    registry: registry.ToolPluginRegistry
    problems: tuple[Problem, ...]
    available: tuple[Installed, ...]


def installed() -> tuple[Installed, ...]:
    """Return the plugins that are installed in this environment, including built-in plugins, sorted by name."""
    plugins = [
        Installed(
            name=point.name,
            module=point.module,
            attribute=point.attr,
            distribution=point.dist.name if point.dist else "",
        )
        for group in (GROUP, agent_adapter.GROUP)
        for point in metadata.entry_points(group=group)
    ]
    # One plugin may be in both groups.
    plugins = list({(plugin.name, plugin.module, plugin.attribute): plugin for plugin in plugins}.values())
    plugins += [
        Installed(name=name, module=module, attribute=attribute, distribution=OURS)
        for name, (module, attribute) in builtin.CLASSES.items()
    ]
    return tuple(sorted(plugins, key=lambda plugin: (plugin.name, plugin.distribution)))


def load(
    path: Path | None,
    *,
    into: registry.ToolPluginRegistry | None = None,
    environ: Mapping[str, str] | None = None,
    offered: Iterable[Installed] | None = None,
) -> Loaded:
    """Load the plugins that the file lists, if there is one, ``into`` a registry that may already contain others.

    ``environ`` are the variables, and ``offered`` the installed plugins; both default to this process's own.
    """
    plugins = registry.ToolPluginRegistry() if into is None else into
    available_plugins = installed() if offered is None else tuple(offered)
    listed = plugins_file.read(path, os.environ if environ is None else environ) if path else None
    entries = listed.entries if listed else ()
    problems = list(listed.problems) if listed else []
    claimed: list[Installed] = []
    for entry in entries:
        matching = _matching(entry, available_plugins)
        claimed += matching
        entry_problems = entry.problems or _load_entry(entry, matching, available_plugins, plugins)
        if entry_problems:
            text = "; ".join(
                f"{problem.path}: {problem.message}" if problem.path != entry.path else problem.message
                for problem in entry_problems
            )
            plugins.record_failure(entry.name, source=f"{entry.file}:{entry.line}", error=text)
            problems += entry_problems
    available = tuple(plugin for plugin in available_plugins if plugin not in claimed)
    return Loaded(registry=plugins, problems=tuple(problems), available=available)


def _load_entry(
    entry: plugins_file.Entry,
    matching: tuple[Installed, ...],
    installed_plugins: tuple[Installed, ...],
    plugins: registry.ToolPluginRegistry,
) -> tuple[Problem, ...]:
    """Load an entry, and return its problems."""
    module, attribute = entry.module, entry.class_name
    if not module:
        if len(matching) != 1:
            return (entry.problem(_not_unique(entry.id, matching, installed_plugins)),)
        module, attribute = matching[0].module, matching[0].attribute
    where = f"{module}:{attribute}"
    try:
        plugin = _instantiate(module, attribute)
    except (Exception, SystemExit) as error:
        _log.warning(
            "plugin cannot be loaded", plugin=entry.name, code=where, traceback=lifecycle.traced(error)
        )
        return (entry.problem(f"{where} cannot be loaded: {lifecycle.described(error)}"),)
    source = f"{where}, {entry.file}:{entry.line}"
    try:
        plugins.register(plugin, source=source, config=entry.config)
    except errors.Invalid as error:
        return tuple(entry.problem(str(problem)) for problem in error.problems)
    return ()


def _instantiate(module: str, attribute: str) -> contract.ToolPlugin:
    plugin: Any = functools.reduce(getattr, attribute.split("."), importlib.import_module(module))
    if isinstance(plugin, type) and hasattr(plugin, "execute"):
        plugin = plugin()
    if isinstance(plugin, type) or not agent_adapter.is_plugin(plugin):
        needed = ", ".join(agent_adapter.REQUIRED)
        raise TypeError(f"{attribute!r} is neither a ToolPlugin nor has what a plugin needs: {needed}")
    return agent_adapter.adapt(plugin)


def _matching(entry: plugins_file.Entry, installed_plugins: tuple[Installed, ...]) -> tuple[Installed, ...]:
    """Return the installed plugins that match the entry.

    An ``id`` is the name of the entry point, else of the distribution, else of the module, because a plugin called
    ``my-tool-plugin`` often has an entry point ``my_tool``. Differences in - and _ are ignored.
    """
    if entry.module:
        target = (entry.module, entry.class_name)
        return tuple(plugin for plugin in installed_plugins if (plugin.module, plugin.attribute) == target)
    names: tuple[Callable[[Installed], str], ...] = (
        lambda plugin: plugin.name,
        lambda plugin: plugin.distribution,
        lambda plugin: plugin.module.partition(".")[0],
    )
    for name in names:
        matching = tuple(
            plugin for plugin in installed_plugins if entry.id and _normal(name(plugin)) == _normal(entry.id)
        )
        if matching:
            return matching
    return ()


def _not_unique(name: str, matching: tuple[Installed, ...], installed_plugins: tuple[Installed, ...]) -> str:
    if matching:
        offers = ", ".join(f"{plugin.name} of {plugin.distribution or plugin.module}" for plugin in matching)
        return f"{name!r} is ambiguous: {offers}. Choose one with 'module' and 'class_name'."
    near = errors.nearest(name, [plugin.name for plugin in installed_plugins])
    hint = (
        f"Did you mean {' or '.join(near)}?" if near else "Install it, or name its 'module' and 'class_name'."
    )
    return f"No plugin {name!r} is installed. {hint}"


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).casefold()
