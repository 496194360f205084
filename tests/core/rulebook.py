"""A plain second implementation of the rules over raw belts, for comparison with the core.

It is written from docs/semantics.md rule by rule, not from the code. It has no indexes, computes nothing in advance,
and shares only the tables of the seed with ``toolbelt.core``, so that a mistake in either shows as a difference. Belts
are valid or nearly so, and their budgets count tools.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolbelt.core import agents, catalog, loadouts

Entry = dict[str, Any]
Decided = dict[str, tuple[str, str]]
# The context of a request: agent, session, request ID.
At = tuple[str, str | None, str | None]

EXPLICIT = ("override-on", "always-on", "sub-app", "switch-on")
BUILT_IN: dict[str, Entry] = {
    name: {
        "parent": loadout.parent,
        "plugins": list(loadout.plugins),
        "categories": list(loadout.categories),
        "discoverable": list(loadout.discoverable),
    }
    for name, loadout in loadouts.BUILT_IN.items()
}


class Rulebook:
    """A configuration and its sessions. ``history`` has every load and unload in order."""

    def __init__(self, belt: Entry) -> None:
        self.tools: dict[str, Entry] = {entry["key"]: entry for entry in belt["tools"]}
        self.kits: dict[str, Entry] = {entry["key"]: entry for entry in belt["toolkits"]}
        self.plugins: dict[str, Entry] = {entry["name"]: entry for entry in belt["plugins"]}
        self.agents: dict[str, Entry] = {entry["key"]: entry for entry in belt["agents"]}
        self.loadouts = BUILT_IN | {entry["name"].lower(): entry for entry in belt["loadouts"]}
        self.sub_apps: list[Entry] = belt["sub_apps"]
        self.history: dict[tuple[str, str | None], list[tuple[str, str, bool, str | None]]] = {}

    # Loadouts

    def chain(self, name: str) -> Iterator[Entry]:
        visited: set[str] = set()
        while name.lower() in self.loadouts and name.lower() not in visited:
            visited.add(name.lower())
            yield self.loadouts[name.lower()]
            name = self.loadouts[name.lower()].get("parent", "")

    def union(self, name: str, field: str) -> set[str]:
        return {entry.lower() for link in self.chain(name) for entry in link.get(field, [])}

    def own_loadout(self, agent: str) -> str:
        ada = self.agents[agent]
        return ada.get("loadout") or agents.KIND_LOADOUTS.get(ada.get("kind", ""), "")

    def in_force(self, agent: str, subagent: str | None) -> str:
        return agents.KIND_LOADOUTS[subagent] if subagent else self.own_loadout(agent)

    def is_matched(self, agent: str, tool: str, subagent: str | None = None) -> bool:
        names = [name for name in (tool.lower(), self.plugin_of(tool).lower()) if name]
        return any(
            name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern
            for pattern in self.union(self.in_force(agent, subagent), "discoverable")
            for name in names
        )

    # Tools

    def plugin_of(self, tool: str) -> str:
        return str(self.tools[tool].get("plugin", ""))

    def category(self, tool: str) -> str:
        plugin = self.plugin_of(tool)
        stated = self.tools[tool].get("category") or self.plugins.get(plugin, {}).get("category")
        return str(stated or catalog.PLUGIN_CATEGORIES.get(plugin.lower(), "")).lower()

    def risks_of(self, entry: Entry) -> set[str]:
        """Return the risk that a tool states, and the one of its approved version while another waits."""
        approved = entry.get("approved_version")
        return {
            "read-only"
            if stated.get("readOnlyHint") is True
            else {True: "destructive", False: "writes"}.get(stated.get("destructiveHint"), "unstated")
            for stated in (version.get("annotations", {}) for version in (entry, approved) if version)
        }

    def members(self, kit: str) -> list[str]:
        return [use if isinstance(use, str) else use["tool"] for use in self.kits[kit]["members"]]

    def kits_of(self, tool: str) -> list[str]:
        return [kit for kit in self.kits if tool in self.members(kit)]

    # Sessions

    def loaded_targets(self, at: At) -> set[tuple[str, str]]:
        """Return the loaded targets: every change applies except those of the request itself."""
        agent, session, request_id = at
        on: dict[tuple[str, str], bool] = {}
        for kind, name, loaded, made_in in self.history.get((agent, session), []) if session else []:
            if made_in is None or made_in != request_id:
                on[kind, name] = loaded
        return {target for target, loaded in on.items() if loaded}

    def toolkits(self, at: At) -> list[str]:
        ada = self.agents[at[0]]
        had = {name for kind, name in self.loaded_targets(at) if kind == "toolkit"} | set(
            ada["initial_toolkits"]
        )
        return [kit for kit in ada["allowed_toolkits"] if kit in had]

    def is_loaded_by_name(self, at: At, tool: str) -> bool:
        loaded = self.loaded_targets(at)
        named = ("tool", tool) in loaded or ("plugin", self.plugin_of(tool)) in loaded
        return named and self.is_matched(at[0], tool)

    # The eleven rules

    def decide(self, at: At, tool: str, subagent: str | None = None) -> tuple[str, str]:
        agent = at[0]
        ada, entry, kits = self.agents[agent], self.tools[tool], self.kits_of(tool)
        plugin, flat = self.plugins.get(self.plugin_of(tool), {}), ada["tools_config"]
        for closes, code in (
            (plugin.get("status") == "failed", "plugin-failed"),
            (plugin.get("active") is False, "plugin-disabled"),
            (entry.get("retired"), "tool-retired"),
            (tool in plugin.get("not_running", ()), "not-running"),
            (entry.get("seen") is False and not plugin.get("trusted"), "tool-unseen"),
            (entry.get("approved"), "tool-changed"),
        ):
            if closes:
                return "unavailable", code
        blocked = [
            entry.get("blocked"),
            plugin.get("blocked"),
            *(self.kits[kit].get("blocked") for kit in kits),
        ]
        disabled = self.union(self.own_loadout(agent), "disabled")
        denied_risks = self.union(self.own_loadout(agent), "denied_risks")
        if subagent:
            disabled |= self.union(self.in_force(agent, subagent), "disabled")
            denied_risks |= self.union(self.in_force(agent, subagent), "denied_risks")
        if subagent or flat.get(tool) is not True:
            denied_risks |= {*ada.get("denied_risks", ())}
        for closes, code in (
            (any(blocked), "blocked"),
            (any(flat.get(kit) is False for kit in kits), "switch-off"),
            (flat.get(tool) is False, "override-off"),
            (disabled & {tool.lower(), self.plugin_of(tool).lower() or tool.lower()}, "loadout-disabled"),
            (denied_risks & self.risks_of(entry), "risk-denied"),
        ):
            if closes:
                return "denied", code
        has, allowed, loadout = self.toolkits(at), ada["allowed_toolkits"], self.in_force(agent, subagent)
        always = [use if isinstance(use, str) else use["tool"] for use in ada["tools"]]
        for opens, code in (
            ()
            if subagent
            else (
                (flat.get(tool) is True, "override-on"),
                (tool in always, "always-on"),
                (
                    any(agent in app["agents"] and tool in app["tool_names"] for app in self.sub_apps),
                    "sub-app",
                ),
                (any(flat.get(kit) is True for kit in kits), "switch-on"),
                (set(kits) & set(allowed) & set(ada["initial_toolkits"]), "initial"),
                (set(kits) & set(has), "loaded"),
                (self.is_loaded_by_name(at, tool), "loaded"),
            )
        ):
            if opens:
                return "active", code
        if loadout and self.plugin_of(tool).lower() in self.union(loadout, "plugins"):
            return "active", "loadout-plugin"
        if loadout and self.category(tool) in self.union(loadout, "categories"):
            return "active", "loadout-category"
        if not loadout and entry["default_on"]:
            return "active", "default-on"
        if any(kit in allowed and kit not in has for kit in kits):
            return "discoverable", "loadable"
        return (
            ("discoverable", "pattern")
            if self.is_matched(agent, tool, subagent)
            else ("dormant", "not-granted")
        )

    def all_decisions(self, at: At, subagent: str | None = None) -> Decided:
        """Return the decision for every tool, including the tools that the budget defers."""
        decisions = {tool: self.decide(at, tool, subagent) for tool in self.tools}
        budget = self.agents[at[0]].get("budget") or {}
        if budget.get("on_exceed") == "defer":
            for group in self._deferral_groups(at, decisions, subagent):
                if sum(state == "active" for state, _ in decisions.values()) <= budget["max_tools"]:
                    break
                decisions |= {
                    tool: ("discoverable", "budget") for tool in group if self._is_deferrable(decisions, tool)
                }
        return decisions

    def _is_deferrable(self, decisions: Decided, tool: str) -> bool:
        return decisions[tool][0] == "active" and decisions[tool][1] not in EXPLICIT

    def _deferral_groups(self, at: At, decisions: Decided, subagent: str | None) -> list[list[str]]:
        """Return the groups of tools in the order of deferral: loadout and defaults, initial toolkits, then loads."""
        requested = [] if subagent else [*self._initial(at), *self._loads(at)]
        requested_tools = {tool for group in requested for tool in group}
        brought = [tool for tool in decisions if tool not in requested_tools]
        loose = sorted((tool for tool in brought if not self.kits_of(tool)), reverse=True)
        kits = [[tool for tool in self.members(kit) if tool in brought] for kit in reversed(self.kits)]
        return [[tool] for tool in loose] + kits + requested

    def _initial(self, at: At) -> list[list[str]]:
        ada = self.agents[at[0]]
        initial = [
            kit for kit in self.kits if kit in ada["initial_toolkits"] and kit in ada["allowed_toolkits"]
        ]
        needed = {tool for group in self._loads(at) for tool in group}
        return [[tool for tool in self.members(kit) if tool not in needed] for kit in reversed(initial)]

    def _loads(self, at: At) -> list[list[str]]:
        """Return the tools of each load, oldest first, without those of a later load."""
        agent, session, _ = at
        order = [(kind, name) for kind, name, _, _ in self.history.get((agent, session), []) if session]
        latest = [target for place, target in enumerate(order) if target not in order[place + 1 :]]
        loads = [
            self._tools_brought_by(at, *target) for target in latest if target in self.loaded_targets(at)
        ]
        return [
            [tool for tool in group if not any(tool in later for later in loads[place + 1 :])]
            for place, group in enumerate(loads)
        ]

    def _tools_brought_by(self, at: At, kind: str, name: str) -> list[str]:
        if kind == "toolkit":
            return self.members(name) if name in self.toolkits(at) else []
        return [
            tool
            for tool in self.tools
            if (name if kind == "tool" else tool) == tool and (kind == "tool" or self.plugin_of(tool) == name)
        ]

    def answers_meta_tools(self, at: At, subagent: str | None = None) -> bool:
        """Return whether calls of meta-tools are answered with their status, even if all refuse."""
        offered = any(state == "discoverable" for state, _ in self.all_decisions(at, subagent).values())
        by_name = any(kind != "toolkit" for kind, _ in self.loaded_targets(at))
        return bool(self.agents[at[0]]["allowed_toolkits"]) or offered or by_name

    # What the model receives

    def policy(self, at: At, subagent: str | None = None) -> list[Entry]:
        active = {tool for tool, (state, _) in self.all_decisions(at, subagent).items() if state == "active"}
        sections: list[Entry] = []
        for key, kit in self.kits.items():
            members = [tool for tool in self.members(key) if tool in active]
            has_policy = kit.get("policy") or any(kit.get("tool_notes", {}).get(tool) for tool in members)
            if members and has_policy:
                sections.append({"toolkit": key, "state": "on"})
            elif not members and kit.get("policy_when_off") and self.concerns(at, key, subagent):
                sections.append({"toolkit": key, "state": "off"})
        own = [tool for tool in sorted(active) if self.tools[tool].get("policy") and not self.kits_of(tool)]
        return sections + [{"tool": tool, "state": "on"} for tool in own]

    def concerns(self, at: At, kit: str, subagent: str | None = None) -> bool:
        """Return whether the agent's configuration, its loadout or its session names the toolkit or a member."""
        agent, ada = at[0], self.agents[at[0]]
        if kit in ada["tools_config"] or kit in ada["allowed_toolkits"]:
            return True
        always = [use if isinstance(use, str) else use["tool"] for use in ada["tools"]]
        loadout = self.in_force(agent, subagent)
        for tool in self.members(kit):
            names = {tool.lower(), self.plugin_of(tool).lower() or tool.lower()}
            included = self.plugin_of(tool).lower() in self.union(loadout, "plugins") or (
                self.category(tool) in self.union(loadout, "categories")
            )
            bound = any(agent in app["agents"] and tool in app["tool_names"] for app in self.sub_apps)
            brought = (
                included
                and not names & self.union(loadout, "disabled")
                and not self.risks_of(self.tools[tool]) & self.union(loadout, "denied_risks")
                if loadout
                else self.tools[tool]["default_on"]
            )
            own = not subagent and (tool in always or bound or self.is_loaded_by_name(at, tool))
            if tool in ada["tools_config"] or brought or own:
                return True
        return False

    def directive(self, at: At, message: str | None, subagent: str | None = None) -> Entry | None:
        """Return the directive for a message, if all patterns are plain words."""
        active = {tool for tool, (state, _) in self.all_decisions(at, subagent).items() if state == "active"}
        words, focus, choice = set((message or "").lower().split()), set[str](), "auto"
        for key, kit in self.kits.items():
            trigger = next((entry for entry in kit["triggers"] if _fires(entry, words)), None)
            if trigger is not None and active & set(self.members(key)):
                triggered = active & set(trigger.get("focus", self.members(key)))
                focus |= triggered
                if triggered and trigger.get("tool_choice") == "required":
                    choice = "required"
        return {"active_tools": sorted(focus), "tool_choice": choice} if focus else None


def _fires(trigger: Entry, words: set[str]) -> bool:
    groups = [trigger["any"]] if "any" in trigger else []
    return all(words & set(group) for group in groups + trigger.get("all", [])) and not words & set(
        trigger.get("none", [])
    )
