"""What do toolkits in code say, in a question? Their Python is asked, and what goes wrong in it stays here.

A section that cannot be written is left out, and a focus that cannot be found is none: the question goes on, and the
log says whose code it was (see toolbelt.core.code for the rule).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

import structlog

from toolbelt.core import code
from toolbelt.plugins import contract
from toolbelt.runtime import plugins
from toolbelt.store import snapshots

T = TypeVar("T")

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Voice:
    """One toolkit's code. An implementation of :class:`code.Voice`."""

    toolkit: contract.CodeToolkit

    def policy(self, active_tools: tuple[str, ...]) -> str | None:
        """Give the toolkit's section."""
        return self._asked(self._policy, active_tools)

    def focus(self, active_tools: tuple[str, ...], message: str) -> code.Focus | None:
        """Give what the message should focus on."""
        return self._asked(self._focus, active_tools, message)

    def _policy(self, active_tools: tuple[str, ...]) -> str | None:
        text = self.toolkit.policy(contract.PolicyContext(active_tools=active_tools))
        if text is not None and not isinstance(text, str):
            raise TypeError(f"policy() gave {type(text).__name__}, not a text")
        return text

    def _focus(self, active_tools: tuple[str, ...], message: str) -> code.Focus | None:
        context = contract.DirectiveContext(active_tools=active_tools, message=message)
        found = self.toolkit.directive(context)
        if found is None:
            return None
        if found.tool_choice not in ("auto", "required"):
            raise ValueError(
                f"directive() gave the tool choice {found.tool_choice!r}: it is auto or required"
            )
        return code.Focus(tuple(map(str, found.active_tools)), found.tool_choice, str(found.because))

    def _asked(self, ask: Callable[..., T], *about: object) -> T | None:
        try:
            return ask(*about)
        except Exception:
            _log.exception("toolkit in code failed", toolkit=self.toolkit.key)
            return None


class Voices(Mapping[tuple[str, str], code.Voice]):
    """The voices of the plugins that run here; these are loaded when the first voice is asked for, at the latest."""

    def __getitem__(self, name: tuple[str, str]) -> code.Voice:
        plugin, key = name
        return Voice(plugins.toolkits(plugin)[key])

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return ((plugin.name, toolkit.key) for plugin in plugins.live() for toolkit in plugin.toolkits)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def connect() -> None:
    """Let them speak, whichever door asks for a surface."""
    snapshots.let_speak(Voices())
