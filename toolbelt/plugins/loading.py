"""Which plugins are to run here, and where is their code?

A plugin runs if the plugins' file lists it: by ``id``, which finds an installed one, or by module and class. What is
installed and not listed is shown, and not so much as imported. Whatever is wrong with one entry, and whatever its code
does when it is imported, the rest is loaded; the plugin is in the registry as failed, and its problem in ``problems``.
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
from toolbelt.plugins import builtin, contract, lifecycle, plugins_file, registry

GROUP = "toolbelt.tool_plugins"
# The distribution that the built-in plugins come with.
OURS = "toolbelt"

Problem = plugins_file.Problem

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A plugin that an installed distribution offers: its entry point's name, and where its code is."""

    name: str
    module: str
    attribute: str
    distribution: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The registry with every plugin that is listed, what was wrong, and what is installed but not listed."""

    registry: registry.ToolPluginRegistry
    problems: tuple[Problem, ...]
    available: tuple[Installed, ...]


def installed() -> tuple[Installed, ...]:
    """Find what is installed in this environment, Toolbelt's own plugins among it, in the order of names."""
    found = [
        Installed(
            name=point.name,
            module=point.module,
            attribute=point.attr,
            distribution=point.dist.name if point.dist else "",
        )
        for point in metadata.entry_points(group=GROUP)
    ]
    found += [
        Installed(name=name, module=module, attribute=attribute, distribution=OURS)
        for name, (module, attribute) in builtin.PLACES.items()
    ]
    return tuple(sorted(found, key=lambda one: (one.name, one.distribution)))


def load(
    path: Path | None,
    *,
    into: registry.ToolPluginRegistry | None = None,
    environ: Mapping[str, str] | None = None,
    offered: Iterable[Installed] | None = None,
) -> Loaded:
    """Load what the file lists, ``into`` a registry that may hold others already; without a file, nothing.

    ``environ`` has the variables, and ``offered`` is what is installed: both are this process's own if not given.
    """
    plugins = registry.ToolPluginRegistry() if into is None else into
    known = installed() if offered is None else tuple(offered)
    listed = plugins_file.read(path, os.environ if environ is None else environ) if path else None
    entries = listed.entries if listed else ()
    problems = list(listed.problems) if listed else []
    claimed: list[Installed] = []
    for entry in entries:
        matching = _matching(entry, known)
        claimed += matching
        found = entry.problems or _load_entry(entry, matching, known, plugins)
        if found:
            text = "; ".join(
                f"{one.path}: {one.message}" if one.path != entry.path else one.message for one in found
            )
            plugins.record_failure(entry.name, source=f"{entry.file}:{entry.line}", error=text)
            problems += found
    available = tuple(one for one in known if one not in claimed)
    return Loaded(registry=plugins, problems=tuple(problems), available=available)


def _load_entry(
    entry: plugins_file.Entry,
    matching: tuple[Installed, ...],
    known: tuple[Installed, ...],
    plugins: registry.ToolPluginRegistry,
) -> tuple[Problem, ...]:
    """Load one entry; give what stood against it."""
    module, attribute = entry.module, entry.class_name
    if not module:
        if len(matching) != 1:
            return (entry.problem(_not_one(entry.id, matching, known)),)
        module, attribute = matching[0].module, matching[0].attribute
    where = f"{module}:{attribute}"
    try:
        plugin = _made(module, attribute)
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


def _made(module: str, attribute: str) -> contract.ToolPlugin:
    found: Any = functools.reduce(getattr, attribute.split("."), importlib.import_module(module))
    if isinstance(found, type) and issubclass(found, contract.ToolPlugin):
        return found()
    if isinstance(found, contract.ToolPlugin):
        return found
    raise TypeError(f"{attribute!r} is neither a class of ToolPlugin nor a plugin")


def _matching(entry: plugins_file.Entry, known: tuple[Installed, ...]) -> tuple[Installed, ...]:
    """Find the installed plugins that the entry means.

    An ``id`` is the entry point's name, else the name of its distribution, else that of its module: a plugin that calls
    itself ``my-tool-plugin`` is often offered as ``my_tool``. That they call it alike without - and _ is enough.
    """
    if entry.module:
        return tuple(one for one in known if (one.module, one.attribute) == (entry.module, entry.class_name))
    names: tuple[Callable[[Installed], str], ...] = (
        lambda one: one.name,
        lambda one: one.distribution,
        lambda one: one.module.partition(".")[0],
    )
    for name in names:
        matching = tuple(one for one in known if entry.id and _normal(name(one)) == _normal(entry.id))
        if matching:
            return matching
    return ()


def _not_one(name: str, matching: tuple[Installed, ...], known: tuple[Installed, ...]) -> str:
    if matching:
        offers = ", ".join(f"{one.name} of {one.distribution or one.module}" for one in matching)
        return f"{name!r} may be each of {offers}: name the one by 'module' and 'class_name'."
    near = errors.nearest(name, [one.name for one in known])
    hint = (
        f"Did you mean {' or '.join(near)}?" if near else "Install it, or name its 'module' and 'class_name'."
    )
    return f"No plugin {name!r} is installed. {hint}"


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).casefold()
