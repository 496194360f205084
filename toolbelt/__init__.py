"""Toolbelt decides which tools, which policy and which focus each AI agent receives.

Everything that a plugin needs can be imported from here, and so can loadouts and ``ask``, for a program that uses
Toolbelt in its own process. It is loaded lazily, so that ``import toolbelt``, for example in a settings module or a
build, is cheap. Only ``ask`` needs Django, and that it is set up.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolbelt.core.catalog import ToolCategory
    from toolbelt.core.loadout_registry import Builder as LoadoutBuilder
    from toolbelt.core.loadout_registry import Registry as LoadoutRegistry
    from toolbelt.core.loadouts import WellKnownLoadouts
    from toolbelt.plugins.background import wait
    from toolbelt.plugins.contract import (
        CallContext,
        CodeToolkit,
        DirectiveContext,
        Focus,
        PolicyContext,
        RuntimeAPI,
        ToolDefinition,
        ToolError,
        ToolPlugin,
        Wallet,
    )
    from toolbelt.plugins.functions import FunctionPlugin, tool
    from toolbelt.plugins.local import LocalRuntime
    from toolbelt.plugins.registry import ToolPluginRegistry
    from toolbelt.runtime.surfaces import ask

__version__ = "0.1.0"

_HOMES = {
    "CallContext": "plugins.contract",
    "CodeToolkit": "plugins.contract",
    "DirectiveContext": "plugins.contract",
    "Focus": "plugins.contract",
    "FunctionPlugin": "plugins.functions",
    "LoadoutBuilder": "core.loadout_registry:Builder",
    "LoadoutRegistry": "core.loadout_registry:Registry",
    "LocalRuntime": "plugins.local",
    "PolicyContext": "plugins.contract",
    "RuntimeAPI": "plugins.contract",
    "ToolCategory": "core.catalog",
    "ToolDefinition": "plugins.contract",
    "ToolError": "plugins.contract",
    "ToolPlugin": "plugins.contract",
    "ToolPluginRegistry": "plugins.registry",
    "Wallet": "plugins.contract",
    "WellKnownLoadouts": "core.loadouts",
    "ask": "runtime.surfaces",
    "tool": "plugins.functions",
    "wait": "plugins.background",
}

__all__ = [
    "CallContext",
    "CodeToolkit",
    "DirectiveContext",
    "Focus",
    "FunctionPlugin",
    "LoadoutBuilder",
    "LoadoutRegistry",
    "LocalRuntime",
    "PolicyContext",
    "RuntimeAPI",
    "ToolCategory",
    "ToolDefinition",
    "ToolError",
    "ToolPlugin",
    "ToolPluginRegistry",
    "Wallet",
    "WellKnownLoadouts",
    "ask",
    "tool",
    "wait",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _HOMES[name].partition(":")
    return getattr(importlib.import_module(f"toolbelt.{module}"), attribute or name)
