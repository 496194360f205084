"""The eleven rules of docs/semantics.md, one function each, in order. The first that applies decides.

Each returns the state, the reason code and what the reason names, or None if it does not apply.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from tests.reference import belts
from tests.reference.belts import Belt, Entry

# What a session loaded: "toolkit", "tool" or "plugin", and its name.
Load = tuple[str, str]


class Decision(NamedTuple):
    """The state of a tool, the reason code, and what decided: its kind, its name, and what of it."""

    state: str
    code: str
    origin: tuple[str, ...]


# Compared by identity, so that the decisions in a request are made once.
@dataclass(frozen=True, eq=False)
class View:
    """What one request is decided from. ``loads`` are what counts in the session, from the oldest to the newest."""

    belt: Belt
    agent: Entry
    config: dict[str, bool]
    has_session: bool = False
    loads: tuple[Load, ...] = ()
    session_loadout: str = ""
    subagent: str | None = None
    now: datetime | None = None

    def own_loadout(self) -> str:
        """Return the agent's loadout: its own, or that of its kind."""
        kind = belts.LOADOUT_OF_KIND.get(self.agent.get("kind") or "", "")
        return self.agent.get("loadout") or kind

    def loadout(self) -> str:
        """Return the loadout that includes: of the subagent, else of the session, else of the agent."""
        if self.subagent is not None:
            return belts.LOADOUT_OF_KIND.get(self.subagent, "")
        return self.session_loadout or self.own_loadout()

    def denying_chains(self) -> list[list[Entry]]:
        """Return the chains whose denials count: of the agent, the session and the subagent."""
        subagents = belts.LOADOUT_OF_KIND.get(self.subagent or "", "")
        names = (self.own_loadout(), self.session_loadout, subagents)
        return [belts.chain_of(self.belt, name) for name in names]

    def allowed(self) -> list[str]:
        """Return the toolkits that the agent may load, in the order of its list."""
        return [name for name in self.agent.get("allowed_toolkits") or () if name in self.belt.toolkits]

    def initial(self) -> list[str]:
        """Return the toolkits that every session has from the start, in the order of the allowed ones."""
        initial = self.agent.get("initial_toolkits") or ()
        return [name for name in self.allowed() if name in initial]

    def loaded(self) -> list[str]:
        """Return the toolkits that the session has, in the order of the allowed ones."""
        return [n for n in self.allowed() if n in self.initial() or ("toolkit", n) in self.loads]

    def pattern_for(self, *names: str) -> tuple[str, ...]:
        """Return the loadout and its first pattern that matches one of the names; nothing if none does."""
        chain = belts.chain_of(self.belt, self.loadout())
        for name, loadout in itertools.product(filter(None, names), chain):
            for pattern in loadout.get("discoverable") or ():
                if matches(pattern, name):
                    return ("loadout", loadout["name"], pattern)
        return ()


def matches(pattern: str, name: str) -> bool:
    """Return whether a pattern is the name, or a prefix of it followed by ``*``, ignoring case."""
    pattern, name = pattern.lower(), name.lower()
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def unavailable(view: View, tool: Entry) -> Decision | None:
    """Rule 1."""
    plugin = belts.plugin_of(view.belt, tool)
    approved = tool.get("approved") or ""
    # A rejected tool is blocked, and stays so until it is reviewed again.
    is_blocked = is_blocked_now(view, tool) and approved == f"rejected:{tool.get('hash')}"
    checks = {
        "plugin-failed": plugin.get("status") == "failed",
        "plugin-disabled": plugin.get("active") is False or plugin.get("status") == "disabled",
        "tool-retired": tool.get("retired"),
        "not-running": tool["key"] in (plugin.get("not_running") or ()),
        "schema-invalid": tool["key"] in view.belt.invalid,
        "tool-unseen": not is_blocked and tool.get("seen") is False and not plugin.get("trusted"),
        "tool-changed": not is_blocked and approved and approved != tool.get("hash"),
    }
    for code, applies in checks.items():
        if applies:
            about = (
                ("plugin", plugin["name"])
                if code in ("plugin-failed", "plugin-disabled", "not-running")
                else ("tool", tool["key"])
            )
            return Decision("unavailable", code, about)
    return None


def is_blocked_now(view: View, entry: Entry) -> bool:
    """Return whether a tool, plugin or toolkit is blocked, and the block has not ended."""
    end = entry.get("block_ends")
    is_over = end is not None and view.now is not None and datetime.fromisoformat(end) <= view.now
    return bool(entry.get("blocked")) and not is_over


def blocked(view: View, tool: Entry) -> Decision | None:
    """Rule 2."""
    plugin = belts.plugin_of(view.belt, tool)
    if is_blocked_now(view, tool):
        return Decision("denied", "blocked", ("tool", tool["key"]))
    if is_blocked_now(view, plugin):
        return Decision("denied", "blocked", ("plugin", plugin["name"]))
    for name in belts.toolkits_of(view.belt, tool["key"]):
        if is_blocked_now(view, view.belt.toolkits[name]):
            return Decision("denied", "blocked", ("toolkit", name))
    return None


def switch_off(view: View, tool: Entry) -> Decision | None:
    """Rule 3."""
    for name in belts.toolkits_of(view.belt, tool["key"]):
        if view.config.get(name) is False:
            return Decision("denied", "switch-off", ("switch", name))
    return None


def override_off(view: View, tool: Entry) -> Decision | None:
    """Rule 4."""
    if view.config.get(tool["key"]) is False:
        return Decision("denied", "override-off", ("override", tool["key"]))
    return None


def chains_deny(chains: Sequence[Sequence[Entry]], tool: Entry) -> Decision | None:
    """Return the decision of rule 5 if one of these chains disables a tool or its plugin, or denies its risk."""
    names = [name.lower() for name in (tool["key"], tool.get("plugin")) if name]
    for chain, name in itertools.product(chains, names):
        for loadout in chain:
            if name in [entry.lower() for entry in loadout.get("disabled") or ()]:
                return Decision("denied", "loadout-disabled", ("loadout", loadout["name"], name))
    for chain, risk in itertools.product(chains, belts.risks_of(tool)):
        for loadout in chain:
            if risk in (loadout.get("denied_risks") or ()):
                return Decision("denied", "risk-denied", ("loadout", loadout["name"], risk))
    return None


def profile_denies(view: View, tool: Entry) -> Decision | None:
    """Rule 5."""
    if denied := chains_deny(view.denying_chains(), tool):
        return denied
    risks = belts.risks_of(tool)
    if view.config.get(tool["key"]) is not True or view.subagent is not None:
        for risk in view.agent.get("denied_risks") or ():
            if risk in risks:
                return Decision("denied", "risk-denied", ("agent", view.agent["key"], risk))
    return None


def named(view: View, tool: Entry) -> Decision | None:
    """Rule 6."""
    key = tool["key"]
    if view.subagent is not None:
        return None
    if view.config.get(key) is True:
        return Decision("active", "override-on", ("override", key))
    if key in belts.uses(view.agent.get("tools")):
        return Decision("active", "always-on", ("agent", view.agent["key"]))
    for sub_app in view.belt.sub_apps:
        if view.agent["key"] in (sub_app.get("agents") or ()) and key in (sub_app.get("tool_names") or ()):
            return Decision("active", "sub-app", ("sub-app", sub_app["key"]))
    return None


def switch_on(view: View, tool: Entry) -> Decision | None:
    """Rule 7."""
    if view.subagent is not None:
        return None
    for name in belts.toolkits_of(view.belt, tool["key"]):
        if view.config.get(name) is True:
            return Decision("active", "switch-on", ("switch", name))
    return None


def in_session(view: View, tool: Entry) -> Decision | None:
    """Rule 8."""
    key = tool["key"]
    if view.subagent is not None:
        return None
    mine = [name for name in belts.toolkits_of(view.belt, key) if name in view.loaded()]
    for name in mine:
        if name in view.initial():
            return Decision("active", "initial", ("toolkit", name))
    for name in mine:
        return Decision("active", "loaded", ("toolkit", name))
    if load := covers_by_name(view, key):
        return Decision("active", "loaded", load)
    return None


def included(view: View, tool: Entry) -> Decision | None:
    """Rule 9."""
    if not view.loadout():
        if tool.get("default_on"):
            return Decision("active", "default-on", ("tool", tool["key"]))
        return None
    chain = belts.chain_of(view.belt, view.loadout())
    plugin, category = (tool.get("plugin") or "").lower(), belts.category_of(view.belt, tool)
    for loadout in chain:
        for entry in loadout.get("plugins") or ():
            if plugin and entry.lower() == plugin:
                return Decision("active", "loadout-plugin", ("loadout", loadout["name"], entry))
    for loadout in chain:
        for entry in loadout.get("categories") or ():
            if category and entry.lower() == category:
                return Decision("active", "loadout-category", ("loadout", loadout["name"], entry))
    return None


def offered(view: View, tool: Entry) -> Decision | None:
    """Rule 10."""
    for name in belts.toolkits_of(view.belt, tool["key"]):
        if name in view.allowed() and name not in view.loaded():
            return Decision("discoverable", "loadable", ("toolkit", name))
    if pattern := view.pattern_for(tool["key"], tool.get("plugin") or ""):
        return Decision("discoverable", "pattern", pattern)
    return None


def otherwise(view: View, tool: Entry) -> Decision:
    """Rule 11."""
    return Decision("dormant", "not-granted", ("agent", view.agent["key"]))


RULES: tuple[Callable[[View, Entry], Decision | None], ...] = (
    unavailable,
    blocked,
    switch_off,
    override_off,
    profile_denies,
    named,
    switch_on,
    in_session,
    included,
    offered,
    otherwise,
)


def decide(view: View, tool: Entry) -> Decision:
    """Return what the first rule that applies says about a tool."""
    return next(decision for rule in RULES if (decision := rule(view, tool)) is not None)


@functools.lru_cache(64)
def decide_all(view: View) -> dict[str, Decision]:
    """Return the decision about every tool, before the budget."""
    return {key: decide(view, tool) for key, tool in view.belt.tools.items()}


def options_of(view: View, key: str) -> Iterator[tuple[str, Any]]:
    """Yield each source that provides a tool, in order of precedence, with the options that it passes."""
    if view.subagent is not None:
        return
    if key in belts.uses(view.agent.get("tools")):
        yield "agent", belts.uses(view.agent["tools"])[key] or {}
    for sub_app in view.belt.sub_apps:
        if view.agent["key"] in (sub_app.get("agents") or ()) and key in (sub_app.get("tool_names") or ()):
            yield f"sub-app {sub_app['key']}", {}
    mine = belts.toolkits_of(view.belt, key)
    switched = [name for name in mine if view.config.get(name) is True]
    initial = [name for name in mine if name in view.initial()]
    loaded = [name for name in mine if name in view.loaded() and name not in initial]
    for name in (*switched, *initial, *loaded):
        yield f"toolkit {name}", belts.members(view.belt.toolkits[name])[key] or {}
    if covers_by_name(view, key):
        yield f"tool {key}", {}


def covers_by_name(view: View, key: str) -> tuple[str, ...]:
    """Return what a session loaded by name, and a pattern still matches, that brings a tool; nothing if none does."""
    plugin = view.belt.tools[key].get("plugin") or ""
    loads = [load for load in (("tool", key), ("plugin", plugin)) if load in view.loads]
    return loads[0] if loads and view.pattern_for(key, plugin) else ()
