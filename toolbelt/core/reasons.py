"""How is a decision said in words? One sentence a reason code, the same on every screen and in every command."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from toolbelt.core import questions, resolution

_WORDS: Mapping[str, Callable[[questions.Origin], str]] = {
    "plugin-failed": lambda origin: f"plugin {origin.name} has failed",
    "plugin-disabled": lambda origin: f"plugin {origin.name} is disabled",
    "tool-retired": lambda _: "its plugin no longer offers it",
    "tool-unseen": lambda _: "new, and nobody has looked at it yet",
    "tool-changed": lambda _: "changed since it was approved",
    "blocked": lambda origin: f"{origin.kind} {origin.name} is blocked for everyone",
    "switch-off": lambda origin: f"toolkit {origin.name} is off{_until(origin)}",
    "override-off": lambda origin: f"its override is off{_until(origin)}",
    "loadout-disabled": lambda origin: f"disabled by loadout {origin.name}",
    "override-on": lambda origin: f"its override is on{_until(origin)}",
    "always-on": lambda _: "always on for this agent",
    "sub-app": lambda origin: f"bound by sub-app {origin.name}",
    "switch-on": lambda origin: f"toolkit {origin.name} is on{_until(origin)}",
    "initial": lambda origin: f"toolkit {origin.name} is loaded in every session",
    "loaded": lambda origin: f"{origin.kind} {origin.name} was loaded in this session",
    "loadout-plugin": lambda origin: f"loadout {origin.name} names plugin {origin.detail}",
    "loadout-category": lambda origin: f"loadout {origin.name} has category {origin.detail}",
    "default-on": lambda _: "on by default",
    "loadable": lambda origin: f"in toolkit {origin.name}, which the agent may load",
    "pattern": lambda origin: f"loadout {origin.name} lets the agent discover {origin.detail}",
    "budget": lambda _: "deferred by the agent's budget",
    "not-granted": lambda _: "nothing grants it",
}
CODES = tuple(_WORDS)


def _until(origin: questions.Origin) -> str:
    """Say when it ends, if it does: that is the detail of a switch or an override."""
    return f" {origin.detail}" if origin.detail else ""


def in_words(decision: resolution.Decision | questions.Answer) -> str:
    """Say why, without the state: ``toolkit devops is off``. Of a decision, or of what one question answered."""
    return _WORDS[decision.code](decision.origin)


def briefly(decision: resolution.Decision) -> str:
    """Say why, leaving aside until when it is so: ``toolkit devops is off``."""
    origin = decision.origin
    if origin.kind in ("switch", "override"):
        origin = origin._replace(detail="")
    return _WORDS[decision.code](origin)


def line(decision: resolution.Decision) -> str:
    """Say the whole decision in one line: ``git__push  denied  switch-off: toolkit devops is off``."""
    return f"{decision.tool}  {decision.state}  {decision.code}: {in_words(decision)}"
