"""A plain second implementation of the rules of loading (see tests/core/rulebook.py).

The status depends on what the next request has. No plugin has the name of a tool or toolkit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.core.rulebook import At, Decided, Rulebook


class Loading(Rulebook):
    """A configuration whose sessions load and unload."""

    def load(self, at: At, name: str) -> str:
        agent, session, request_id = at
        upcoming, decisions = (agent, session, None), self.all_decisions((agent, session, None))
        kind, tools, is_allowed, is_shut = self._target(upcoming, name)
        if not kind or not is_allowed:
            return "not_allowed" if kind else "unknown"
        states = {self.decide(upcoming, tool)[0] for tool in tools}
        if is_shut or (states <= {"denied", "unavailable"} and states != {"unavailable"}):
            return "denied"
        if states == {"unavailable"}:
            return "unavailable"
        has = self._has(upcoming, kind, name)
        if self._is_over_budget(upcoming, decisions, kind, name, tools):
            return "over_budget"
        if has and not any(decisions[tool][1] == "budget" for tool in tools):
            return "already_loaded"
        if not session:
            return "no_session"
        handed = self._options(name) if kind == "toolkit" else {}
        for tool in tools:
            brought = list(self._sources(upcoming, tool))
            closed = self.decide(upcoming, tool)[0] in ("denied", "unavailable")
            if brought and brought[0] != handed.get(tool) and not closed:
                return "conflict"
        self.history.setdefault((agent, session), []).append((kind, name, True, request_id))
        return "loaded"

    def unload(self, at: At, name: str) -> str:
        agent, session, request_id = at
        kind, _, is_allowed, _ = self._target((agent, session, None), name)
        if not kind or not is_allowed:
            return "not_allowed" if kind else "unknown"
        if kind == "toolkit" and name in self.agents[agent]["initial_toolkits"]:
            return "sticky"
        if not session:
            return "no_session"
        if not self._has((agent, session, None), kind, name):
            return "not_loaded"
        self.history.setdefault((agent, session), []).append((kind, name, False, request_id))
        return "unloaded"

    def has_meta_tools(self, at: At, subagent: str | None = None) -> bool:
        """Return whether trying all names finds a load that succeeds (of a tool: one that is not active), or an
        unload.
        """
        agent, session, request_id = at
        if subagent or not session:
            return False
        original = self.history
        earlier = [
            change
            for change in original.get((agent, session), [])
            if change[3] is None or change[3] != request_id
        ]
        decisions = self.all_decisions(at)
        names = [*self.kits, *self.plugins, *self.tools]
        loadable = [*self.kits, *(tool for tool in self.tools if decisions[tool][0] == "discoverable")]
        found = False
        for answers, attempts, success in ((self.load, loadable, "loaded"), (self.unload, names, "unloaded")):
            for name in attempts:
                self.history = {(agent, session): list(earlier)}
                found = found or answers((agent, session, None), name) == success
        self.history = original
        return found

    def _target(self, upcoming: At, name: str) -> tuple[str, list[str], bool, bool]:
        """Return the kind of a name (empty if unknown), its tools, and whether it is allowed and whether closed."""
        agent, decisions = upcoming[0], self.all_decisions(upcoming)

        def is_offered(tool: str) -> bool:
            return self.is_matched(agent, tool) or decisions[tool][1] == "budget"

        if name in self.kits:
            shut = self.kits[name].get("blocked") or self.agents[agent]["tools_config"].get(name) is False
            allowed = name in self.agents[agent]["allowed_toolkits"]
            return "toolkit", self.members(name), allowed, bool(shut)
        if name in self.tools:
            return "tool", [name], is_offered(name), bool(self.tools[name].get("blocked"))
        if name in self.plugins:
            tools = [tool for tool in self.tools if self.plugin_of(tool) == name and is_offered(tool)]
            return "plugin", tools, bool(tools), bool(self.plugins[name].get("blocked"))
        return "", [], False, False

    def _has(self, upcoming: At, kind: str, name: str) -> bool:
        return (
            name in self.toolkits(upcoming)
            if kind == "toolkit"
            else (kind, name) in self.loaded_targets(upcoming)
        )

    def _is_over_budget(self, upcoming: At, before: Decided, kind: str, name: str, tools: list[str]) -> bool:
        """Return whether a trial load gains tools beyond the budget, or is itself deferred."""
        agent, session, _ = upcoming
        budget = self.agents[agent].get("budget") or {}
        original = self.history
        trial = session or "(none)"
        self.history = original | {
            (agent, trial): [*(original.get((agent, session), [])), (kind, name, True, None)]
        }
        after = self.all_decisions((agent, trial, None))
        self.history = original
        active = {tool for tool, (state, _) in after.items() if state == "active"}
        gained = {tool for tool in active if before[tool][0] != "active"}
        if budget.get("on_exceed") == "refuse":
            return bool(gained) and len(active) > budget["max_tools"]
        return any(after[tool][1] == "budget" for tool in tools)

    def _options(self, kit: str) -> dict[str, Any]:
        uses = [use for use in self.kits[kit]["members"] if not isinstance(use, str)]
        return {use["tool"]: use.get("options") or None for use in uses}

    def _sources(self, upcoming: At, tool: str) -> Iterator[Any]:
        """Yield the options of each source of a tool by rank: always-on, sub-app, switches, initial, loaded."""
        agent = upcoming[0]
        ada = self.agents[agent]
        for use in ada["tools"]:
            if (use if isinstance(use, str) else use["tool"]) == tool:
                yield None if isinstance(use, str) else use.get("options") or None
        yield from (None for app in self.sub_apps if agent in app["agents"] and tool in app["tool_names"])
        initial = [kit for kit in self.toolkits(upcoming) if kit in ada["initial_toolkits"]]
        loaded = [kit for kit in self.toolkits(upcoming) if kit not in initial]
        switched_on = [kit for kit in self.kits if ada["tools_config"].get(kit) is True]
        for brought in (switched_on, initial, loaded):
            yield from (self._options(kit).get(tool) for kit in self.kits_of(tool) if kit in brought)
        yield from [None] if self.is_loaded_by_name(upcoming, tool) else []
