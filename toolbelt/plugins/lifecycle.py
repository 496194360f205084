"""In which state is a plugin, and what may come next?

::

    registered ──> initialized ──> stopped
        │  └──────────────────────────^
        └──> failed <── (initialized)

1. A plugin begins as registered; one that could not even be loaded begins, and stays, as failed.
2. ``initialize`` is called once. Ends it well and in time, the plugin is initialized; else it has failed.
3. Calls go to initialized plugins alone; the first call of a registered one initializes it.
4. ``shutdown`` is called once, and of initialized plugins alone. Ends it well and in time, the plugin is stopped; else
   it has failed. A registered one is stopped without it, as it took nothing.
5. Failed and stopped are final: what comes later (an ``initialize`` that ends after its time) changes nothing.
6. An error is there exactly when the plugin has failed.
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
class Life:
    """Where a plugin is in its life; ``error`` says why it has failed."""

    state: PluginState = "registered"
    error: str = ""

    @property
    def is_over(self) -> bool:
        """Say whether nothing can come after this."""
        return self.state in ("stopped", "failed")


def initialized() -> Life:
    """Give the life of a plugin that got ready."""
    return Life("initialized")


def stopped() -> Life:
    """Give the life of a plugin that was shut down, or never began."""
    return Life("stopped")


def failed(error: str) -> Life:
    """Give the life of a plugin that failed, for this reason."""
    return Life("failed", error or "no reason was given")


def traced(error: BaseException) -> str:
    """Say where an exception came from, as text for the log: renderers of exceptions show variables, and so secrets."""
    return "".join(traceback.format_exception(error))


def move(life: Life, to: Life) -> Life:
    """Give the life after it was to become ``to``: that, where the rules allow it, else the same as before."""
    return to if (life.state, to.state) in _NEXT else life


def described(error: BaseException) -> str:
    """Say an exception in one line: its kind, and what it says."""
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
