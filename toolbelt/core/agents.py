"""Who consumes tools? One configured agent, as a frozen value. (semantics: Levels, tools_config, Budgets)"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

KINDS = ("explore", "task", "plan", "review", "general")
KIND_LOADOUTS: Mapping[str, str] = {
    "explore": "research",
    "task": "minimal",
    "plan": "developer",
    "review": "developer",
    "general": "full",
}
ON_EXCEED = ("warn", "refuse", "defer")

OnExceed = Literal["warn", "refuse", "defer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlwaysOn:
    """A tool that the agent always has, with the options it is handed (None: none)."""

    tool: str
    options: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most that an agent may have active: tools, tokens (o200k), and what happens on passing it."""

    max_tools: int | None = None
    max_tokens: int | None = None
    on_exceed: OnExceed = "warn"

    def passed_by(self, tools: int, tokens: int) -> bool:
        """Say whether so many tools and tokens are more than this budget."""
        return (self.max_tools is not None and tools > self.max_tools) or (
            self.max_tokens is not None and tokens > self.max_tokens
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One agent's configuration. Unset switches and overrides are the absence of their key."""

    key: str
    title: str = ""
    description: str = ""
    role: str = ""
    model: str = ""
    kind: str = ""
    loadout: str = ""
    tools: tuple[AlwaysOn, ...] = ()
    switches: Mapping[str, bool] = field(default_factory=dict)
    overrides: Mapping[str, bool] = field(default_factory=dict)
    allowed_toolkits: tuple[str, ...] = ()
    initial_toolkits: tuple[str, ...] = ()
    budget: Budget | None = None
    protected: bool = False
    session_loadouts: tuple[str, ...] = ()
    subagent_kinds: tuple[str, ...] = ()

    def loadout_name(self, kind_loadouts: Mapping[str, str] = KIND_LOADOUTS) -> str:
        """Name the loadout in force: the agent's own, else its kind's, else none (empty)."""
        return self.loadout or (kind_loadouts.get(self.kind, "") if self.kind else "")

    def tools_config(self) -> dict[str, bool]:
        """Give the flat form: toolkit and tool keys side by side, sorted (seed: Tools & Toolkits)."""
        return dict(sorted({**self.switches, **self.overrides}.items()))
