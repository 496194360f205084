"""Safe calls of the hooks of code toolkits: an error in one never fails a request.

If a hook fails, its section or focus is left out, and the error is logged (see toolbelt.core.toolkit_hooks for the
rules).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

import structlog

from toolbelt.core import toolkit_hooks
from toolbelt.plugins import contract
from toolbelt.runtime import plugins
from toolbelt.store import snapshots

T = TypeVar("T")

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ToolkitHooks:
    """The hooks of one code toolkit. Implements :class:`toolbelt.core.toolkit_hooks.ToolkitHooks`."""

    toolkit: contract.CodeToolkit

    def policy(self, active_tools: tuple[str, ...]) -> str | None:
        """Return the toolkit's policy section."""
        return self._call(self._policy, active_tools)

    def focus(self, active_tools: tuple[str, ...], message: str) -> toolkit_hooks.Focus | None:
        """Return the focus for the user's message."""
        return self._call(self._focus, active_tools, message)

    def _policy(self, active_tools: tuple[str, ...]) -> str | None:
        text = self.toolkit.policy(contract.PolicyContext(active_tools=active_tools))
        if text is not None and not isinstance(text, str):
            raise TypeError(f"policy() returned {type(text).__name__}, not text")
        return text

    def _focus(self, active_tools: tuple[str, ...], message: str) -> toolkit_hooks.Focus | None:
        context = contract.DirectiveContext(active_tools=active_tools, message=message)
        focus = self.toolkit.directive(context)
        if focus is None:
            return None
        if focus.tool_choice not in ("auto", "required"):
            raise ValueError(
                f"directive() returned the tool choice {focus.tool_choice!r}: it must be auto or required"
            )
        return toolkit_hooks.Focus(tuple(map(str, focus.active_tools)), focus.tool_choice, str(focus.because))

    def _call(self, hook: Callable[..., T], *args: object) -> T | None:
        try:
            return hook(*args)
        except Exception:
            _log.exception("toolkit in code failed", toolkit=self.toolkit.key)
            return None


class AllToolkitHooks(Mapping[tuple[str, str], toolkit_hooks.ToolkitHooks]):
    """The hooks of all code toolkits in this process, by plugin and toolkit key. First use loads the plugins."""

    def __getitem__(self, name: tuple[str, str]) -> toolkit_hooks.ToolkitHooks:
        plugin, key = name
        return ToolkitHooks(plugins.toolkits(plugin)[key])

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return ((plugin.name, toolkit.key) for plugin in plugins.live() for toolkit in plugin.toolkits)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def register() -> None:
    """Use the hooks of the plugins' toolkits for all surfaces."""
    snapshots.register_hooks(AllToolkitHooks())
