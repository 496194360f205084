"""Toolbelt decides which tools, which policy and which focus each AI agent gets.

What a plugin needs can be imported from here. It is fetched when it is asked for, so that ``import toolbelt``
alone, of a settings module as of a build, costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    )
    from toolbelt.plugins.functions import FunctionPlugin, tool
    from toolbelt.plugins.local import LocalRuntime
    from toolbelt.plugins.registry import ToolPluginRegistry

__version__ = "0.1.0"

_HOMES = {
    "CallContext": "contract",
    "CodeToolkit": "contract",
    "DirectiveContext": "contract",
    "Focus": "contract",
    "FunctionPlugin": "functions",
    "LocalRuntime": "local",
    "PolicyContext": "contract",
    "RuntimeAPI": "contract",
    "ToolDefinition": "contract",
    "ToolError": "contract",
    "ToolPlugin": "contract",
    "ToolPluginRegistry": "registry",
    "tool": "functions",
    "wait": "background",
}

__all__ = [
    "CallContext",
    "CodeToolkit",
    "DirectiveContext",
    "Focus",
    "FunctionPlugin",
    "LocalRuntime",
    "PolicyContext",
    "RuntimeAPI",
    "ToolDefinition",
    "ToolError",
    "ToolPlugin",
    "ToolPluginRegistry",
    "tool",
    "wait",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"toolbelt.plugins.{_HOMES[name]}"), name)
