"""Who consumes tools? One configured agent, as a frozen value. (semantics: Levels, tools_config, Budgets, Revisions)"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
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
# How its MCP clients get at what it could load: by a constant list and call_tool, or by a list that grows.
MCP_LOADINGS = ("dispatch", "list")

OnExceed = Literal["warn", "refuse", "defer"]
McpLoading = Literal["dispatch", "list"]


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
class End:
    """Until when a switch or an override stands (UTC; it is over at that very second), what stands from then on
    (None: it is unset), and who gave it for so long.
    """

    at: datetime
    then: bool | None = None
    by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One agent's configuration. Unset switches and overrides are the absence of their key.

    ``ends`` says of some of them, by key, when they end. What is over is here until it is asked what stands at a
    moment (:meth:`standing`), for there is no clock here.
    """

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
    ends: Mapping[str, End] = field(default_factory=dict)
    allowed_toolkits: tuple[str, ...] = ()
    initial_toolkits: tuple[str, ...] = ()
    budget: Budget | None = None
    protected: bool = False
    session_loadouts: tuple[str, ...] = ()
    subagent_kinds: tuple[str, ...] = ()
    mcp_loading: McpLoading = "dispatch"
    archived: bool = False

    def loadout_name(self, kind_loadouts: Mapping[str, str] = KIND_LOADOUTS) -> str:
        """Name the loadout in force: the agent's own, else its kind's, else none (empty)."""
        return self.loadout or (kind_loadouts.get(self.kind, "") if self.kind else "")

    def tools_config(self) -> dict[str, bool]:
        """Give the flat form: toolkit and tool keys side by side, sorted (seed: Tools & Toolkits)."""
        return dict(sorted({**self.switches, **self.overrides}.items()))

    def over(self, now: datetime) -> dict[str, End]:
        """Give what is over at this moment, the first that ended first."""
        if not self.ends:
            return {}
        ended = [(end.at, key) for key, end in self.ends.items() if end.at <= now]
        return {key: self.ends[key] for _, key in sorted(ended)}

    def standing(self, now: datetime) -> Agent:
        """Give the agent as it stands at this moment: what is over is as it was before, and has no end any more."""
        over = self.over(now)
        if not over:
            return self
        return replace(
            self,
            switches=_without(self.switches, over),
            overrides=_without(self.overrides, over),
            ends={key: end for key, end in self.ends.items() if key not in over},
        )

    def next_end(self) -> datetime | None:
        """Give the first moment at which one of its switches or overrides ends."""
        return min((end.at for end in self.ends.values()), default=None)


def _without(given: Mapping[str, bool], over: Mapping[str, End]) -> dict[str, bool]:
    standing = {key: over[key].then if key in over else on for key, on in given.items()}
    return {key: on for key, on in standing.items() if on is not None}
