"""The reasons of decisions in words, with who blocked what is blocked for everyone, when, and until when."""

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
        """Return the reason of a decision: ``plugin slack is blocked for everyone until 16:05, by olive 2 h ago``."""
        if decision is None:
            return ""
        by = (
            self._by.get((decision.origin.kind, decision.origin.name), "")
            if decision.code == "blocked"
            else ""
        )
        return reasons.explain_briefly(decision) + by


def blocked_by(origins: Iterable[rules.Origin]) -> dict[tuple[str, str], str]:
    """Return until when each of these (kind and name) is blocked, who blocked it, and when, without what is unknown:
    `` until 16:05, by olive 2 h ago``.
    """
    subjects = list(origins)
    if not subjects:
        return {}
    result = {subject: f" until {words.until(at)}" for subject, at in blocking.ends(subjects).items()}
    for subject, entry in blocking.latest_blocks(subjects).items():
        by = f", by {audit_words.actor(entry.actor, entry.actor_kind)} {words.since(entry.at)}"
        result[subject] = result.get(subject, "") + by
    return result


def plugins_blocked_by(plugins: Iterable[catalog.Plugin]) -> dict[str, str]:
    """Return until when these plugins are blocked, who blocked them, and when, by name, without those that are not
    blocked.
    """
    origins = (rules.Origin("plugin", plugin.name) for plugin in plugins if plugin.blocked)
    return {name: by for (_, name), by in blocked_by(origins).items()}
