"""Agents, which consume tools, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, get_args

from toolbelt.core import catalog

Kind = Literal["explore", "task", "plan", "review", "general"]
KINDS: tuple[Kind, ...] = get_args(Kind)
KIND_LOADOUTS: Mapping[str, str] = {
    "explore": "research",
    "task": "minimal",
    "plan": "developer",
    "review": "developer",
    "general": "full",
}
ON_EXCEED = ("warn", "refuse", "defer")
McpLoading = Literal["dispatch", "list", "constant"]
# How MCP clients reach the tools that the agent could load: through call_tool, beside a list that changes with its
# grants; by a list that also grows; or through call_tool, beside a list that never changes.
MCP_LOADINGS: tuple[McpLoading, ...] = get_args(McpLoading)

OnExceed = Literal["warn", "refuse", "defer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlwaysOn:
    """A tool that the agent always has, with the options passed to it (None: no options)."""

    tool: str
    options: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits on an agent's active tools and tokens (o200k), and what happens when they are exceeded."""

    max_tools: int | None = None
    max_tokens: int | None = None
    on_exceed: OnExceed = "warn"

    @property
    def defers(self) -> bool:
        """Return whether it defers tools, so that what becomes of each depends on the others."""
        return self.on_exceed == "defer"

    def exceeded_by(self, tools: int, tokens: int) -> bool:
        """Return whether this many tools and tokens exceed the budget."""
        return (self.max_tools is not None and tools > self.max_tools) or (
            self.max_tokens is not None and tokens > self.max_tokens
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The expiry of a switch or an override: its time in UTC, and who set it.

    ``then`` is the value afterwards; None: it is unset.
    """

    at: datetime
    then: bool | None = None
    by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """Changes of an agent that count in some of its sessions, until they count in all of them, or in none.

    ``trial`` is its number, ``percent`` the share of sessions; ``changes`` are JSON, as in the audit log. From ``ends``
    on, they count in none, although they may be stored until the next round.
    """

    trial: int
    percent: int = 100
    changes: str
    ends: datetime | None = None


# The longest name of a model in a request.
MAX_MODEL_LENGTH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One agent's configuration. An unset switch or override has no key.

    ``ends`` maps keys of switches and overrides to their expiry. Because the core has no clock, expired ones stay here
    until :meth:`as_of` is called with a time. ``rollout`` runs for some of the agent's sessions, and ``arm`` is the one
    whose changes this value has (:mod:`toolbelt.core.rollouts`).
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
    denied_risks: tuple[catalog.DeniedRisk, ...] = ()
    mcp_loading: McpLoading = "dispatch"
    archived: bool = False
    rollout: Rollout | None = None
    arm: Rollout | None = None

    def loadout_name(self, kind_loadouts: Mapping[str, str] = KIND_LOADOUTS) -> str:
        """Return the name of the loadout in force: the agent's own, else its kind's, else empty."""
        return self.loadout or (kind_loadouts.get(self.kind, "") if self.kind else "")

    def tools_config(self) -> dict[str, bool]:
        """Return the flat form: toolkit and tool keys side by side, sorted (seed: Tools & Toolkits)."""
        return dict(sorted({**self.switches, **self.overrides}.items()))

    def expired(self, now: datetime) -> dict[str, End]:
        """Return the switches and overrides that have expired by ``now``, oldest first."""
        if not self.ends:
            return {}
        expired = [(end.at, key) for key, end in self.ends.items() if end.at <= now]
        return {key: self.ends[key] for _, key in sorted(expired)}

    def as_of(self, now: datetime) -> Agent:
        """Return the agent as it is at ``now``: expired switches and overrides have their later value."""
        expired = self.expired(now)
        if not expired:
            return self
        return replace(
            self,
            switches=_without(self.switches, expired),
            overrides=_without(self.overrides, expired),
            ends={key: end for key, end in self.ends.items() if key not in expired},
        )

    def next_end(self) -> datetime | None:
        """Return when the next of its switches or overrides expires, or the roll-out whose changes it has."""
        if not self.ends and self.arm is None:
            return None
        ends = [end.at for end in self.ends.values()]
        if self.arm is not None and self.arm.ends is not None:
            ends.append(self.arm.ends)
        return min(ends, default=None)


def _without(values: Mapping[str, bool], expired: Mapping[str, End]) -> dict[str, bool]:
    remaining = {key: expired[key].then if key in expired else on for key, on in values.items()}
    return {key: on for key, on in remaining.items() if on is not None}
