"""Reasons in words: one sentence for each reason code, the same on every screen and in every command."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from toolbelt.core import rules
from toolbelt.core.rules import resolution

# The tools that a denied risk is about.
RISKS: Mapping[str, str] = {
    "writes": "tools that change something",
    "destructive": "tools that may destroy something",
    "unstated": "tools that do not state their risk",
}
_WORDS: Mapping[str, Callable[[rules.Origin], str]] = {
    "plugin-failed": lambda origin: f"plugin {origin.name} has failed",
    "plugin-disabled": lambda origin: f"plugin {origin.name} is disabled",
    "tool-retired": lambda _: "its plugin no longer offers it",
    "not-running": lambda origin: f"no running process can run it: plugin {origin.name} is not loaded",
    "schema-invalid": lambda origin: origin.detail,
    "tool-unseen": lambda _: "new, and not reviewed yet",
    "tool-changed": lambda _: "changed since it was approved",
    "blocked": lambda origin: f"{origin.kind} {origin.name} is blocked for everyone{_until(origin)}",
    "switch-off": lambda origin: f"toolkit {origin.name} is off{_until(origin)}",
    "override-off": lambda origin: f"its override is off{_until(origin)}",
    "loadout-disabled": lambda origin: f"disabled by loadout {origin.name}",
    "risk-denied": lambda origin: f"{_denying(origin)} denies {RISKS.get(origin.detail, origin.detail)}",
    "override-on": lambda origin: f"its override is on{_until(origin)}",
    "always-on": lambda _: "always on for this agent",
    "sub-app": lambda origin: f"bound by sub-app {origin.name}",
    "switch-on": lambda origin: f"toolkit {origin.name} is on{_until(origin)}",
    "initial": lambda origin: f"toolkit {origin.name} is loaded in every session",
    "loaded": lambda origin: f"{origin.kind} {origin.name} was loaded in this session",
    "loadout-plugin": lambda origin: f"loadout {origin.name} includes plugin {origin.detail}",
    "loadout-category": lambda origin: f"loadout {origin.name} includes category {origin.detail}",
    "default-on": lambda _: "on by default",
    "loadable": lambda origin: f"in toolkit {origin.name}, which the agent may load",
    "pattern": lambda origin: f"loadout {origin.name} lets the agent discover {origin.detail}",
    "budget": lambda _: "deferred by the agent's budget",
    "not-granted": lambda _: "nothing grants it",
}
CODES = tuple(_WORDS)
# The codes of active tools: those of the rules 6 to 9.
GRANTING = frozenset(
    {
        *("override-on", "always-on", "sub-app", "switch-on", "initial", "loaded"),
        *("loadout-plugin", "loadout-category", "default-on"),
    }
)


def _denying(origin: rules.Origin) -> str:
    return f"loadout {origin.name}" if origin.kind == "loadout" else "the agent"


def _until(origin: rules.Origin) -> str:
    """Return when a switch, an override or a block expires, if it does: that is its origin's detail."""
    return f" {origin.detail}" if origin.detail else ""


def explain(decision: resolution.Decision | rules.Answer) -> str:
    """Return the reason of a decision or of a rule's answer, without the state: ``toolkit devops is off``."""
    return _WORDS[decision.code](decision.origin)


def explain_briefly(decision: resolution.Decision) -> str:
    """Return the reason of a decision without its expiry: ``toolkit devops is off``."""
    origin = decision.origin
    if origin.kind in ("switch", "override") or decision.code == "blocked":
        origin = origin._replace(detail="")
    return _WORDS[decision.code](origin)


def format_line(decision: resolution.Decision) -> str:
    """Return the whole decision in one line: ``git__push  denied  switch-off: toolkit devops is off``."""
    return f"{decision.tool}  {decision.state}  {decision.code}: {explain(decision)}"
