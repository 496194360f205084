"""The reasons of decisions in words, with who blocked what is blocked for everyone, and when."""

from __future__ import annotations

from collections.abc import Iterable

from toolbelt.control.catalog import blocking
from toolbelt.core import catalog, rules
from toolbelt.core.rules import reasons, resolution
from toolbelt.web.kit import audit_words, words


class Explanations:
    """The reasons of some decisions. Who blocked what is read once, if any of them is a block."""

    def __init__(self, decisions: Iterable[resolution.Decision | None]) -> None:
        self._by = blocked_by(
            each.origin for each in decisions if each is not None and each.code == "blocked"
        )

    def of(self, decision: resolution.Decision | None) -> str:
        """Return the reason of a decision: ``plugin slack is blocked for everyone, by olive 2 h ago``."""
        if decision is None:
            return ""
        by = (
            self._by.get((decision.origin.kind, decision.origin.name), "")
            if decision.code == "blocked"
            else ""
        )
        return reasons.explain_briefly(decision) + by


def blocked_by(origins: Iterable[rules.Origin]) -> dict[tuple[str, str], str]:
    """Return who blocked each of these (kind and name), and when: ``, by olive 2 h ago``; without unknown ones."""
    return {
        subject: f", by {audit_words.actor(entry.actor, entry.actor_kind)} {words.since(entry.at)}"
        for subject, entry in blocking.latest_blocks(origins).items()
    }


def plugins_blocked_by(plugins: Iterable[catalog.Plugin]) -> dict[str, str]:
    """Return who blocked these plugins, and when, by name, without those that are not blocked."""
    origins = (rules.Origin("plugin", plugin.name) for plugin in plugins if plugin.blocked)
    return {name: by for (_, name), by in blocked_by(origins).items()}
