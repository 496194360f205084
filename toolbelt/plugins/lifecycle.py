"""The states of a plugin, and the transitions between them.

::

    registered ──> initialized ──> stopped
        │  └──────────────────────────^
        └──> failed <── (initialized)

1. A plugin starts as registered. A plugin that could not be loaded is failed from the start.
2. ``initialize`` is called once. If it succeeds in time, the plugin is initialized; otherwise it has failed.
3. Only initialized plugins receive calls; the first call of a registered plugin initializes it.
4. ``shutdown`` is called once, and only for initialized plugins. If it succeeds in time, the plugin is stopped;
   otherwise it has failed. A registered plugin is stopped without it, because it acquired nothing.
5. Failed and stopped are final: later events, such as an ``initialize`` that ends after its time limit, change nothing.
6. A plugin has an error if and only if it has failed.
"""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import Literal

PluginState = Literal["registered", "initialized", "stopped", "failed"]

_NEXT: frozenset[tuple[PluginState, PluginState]] = frozenset(
    {
        ("registered", "initialized"),
        ("registered", "stopped"),
        ("registered", "failed"),
        ("initialized", "stopped"),
        ("initialized", "failed"),
    }
)


@dataclass(frozen=True, slots=True)
class Status:
    """A plugin's state, and the ``error`` if it has failed."""

    state: PluginState = "registered"
    error: str = ""

    @property
    def is_final(self) -> bool:
        """Return whether the state is final."""
        return self.state in ("stopped", "failed")


def initialized() -> Status:
    """Return the state of an initialized plugin."""
    return Status("initialized")


def stopped() -> Status:
    """Return the state of a plugin that was shut down, or never initialized."""
    return Status("stopped")


def failed(error: str) -> Status:
    """Return the state of a plugin that failed for this reason."""
    return Status("failed", error or "no reason was given")


def traced(error: BaseException) -> str:
    """Return an exception's traceback as text for the log. Other renderers show variables, and so secrets."""
    return "".join(traceback.format_exception(error))


def move(status: Status, to: Status) -> Status:
    """Return ``to`` if the transition is allowed, else the unchanged state."""
    return to if (status.state, to.state) in _NEXT else status


def described(error: BaseException) -> str:
    """Return an exception in one line: its class and its message."""
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
