"""The hooks of toolkits in code (docs/semantics.md: Toolkits in code).

A toolkit that a plugin owns may have :class:`ToolkitHooks`, which are called while a request is answered:

1. They are called only while the plugin is active and has not failed, and a member is active. Otherwise, and in a
   process that does not run the plugin, the toolkit's stored texts apply.
2. They return the same for the same active members (and message), so a section is computed once and then cached with
   the catalog.
3. Their focus is cut to active tools.
4. They never raise. The wrapper around foreign code logs an error and returns None, and the request is answered
   without that section or focus.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, Protocol


class Focus(NamedTuple):
    """The focus of the first step, chosen by a toolkit's code; ``because`` is a short reason."""

    tools: tuple[str, ...]
    tool_choice: Literal["auto", "required"] = "auto"
    because: str = ""


class ToolkitHooks(Protocol):
    """The code of one toolkit; ``active_tools`` are its active members, in the members' order."""

    def policy(self, active_tools: tuple[str, ...]) -> str | None:
        """Return the toolkit's policy section, or None."""
        ...

    def focus(self, active_tools: tuple[str, ...], message: str) -> Focus | None:
        """Return the focus for the message, or None."""
        ...


# By plugin and toolkit, so that a plugin cannot provide hooks for a toolkit that it does not own.
HooksByToolkit = Mapping[tuple[str, str], ToolkitHooks]
