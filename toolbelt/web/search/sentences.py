"""Requests in words: "turn off slack for assistant", "block slack", "why is slack off for assistant"."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Verb = Literal[
    "on", "off", "block", "unblock", "why", "connect", "preview", "sessions", "history", "settings"
]

_FOR = r"(?:\s+(?:for|in|of)\s+(?P<agent>.+))?"
_STATES = r"(?:not\s+)?(?:on request|on|off|blocked|unavailable)"
_FORMS = (
    rf"(?:(?:turn|switch|set|flip)\s+)?(?P<verb>on|off)\s+(?P<target>.+?){_FOR}",
    rf"(?:turn|switch|set|flip)\s+(?P<target>.+?)\s+(?P<verb>on|off){_FOR}",
    r"(?P<verb>block|unblock)\s+(?P<target>.+?)(?:\s+for\s+(?:everyone|everybody|all|all\s+agents))?",
    r"(?P<verb>why)\s+(?:can't|can’t|cannot|can|does|doesn't|doesn’t)\s+(?P<agent>.+?)\s+(?:not\s+)?(?:use|have|call|see)\s+(?P<target>.+)",
    rf"(?P<verb>why)\s+(?:(?:is|are|isn't|isn’t)\s+)?(?P<target>.+?)(?:\s+{_STATES})?{_FOR}",
    r"(?P<verb>connect|preview|sessions|history|settings)(?:\s+(?:for|of))?\s+(?P<agent>.+)",
)
_PATTERNS = tuple(re.compile(form, re.IGNORECASE) for form in _FORMS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A request: ``target`` names a toolkit or tool, and ``agent`` an agent; either may be empty."""

    verb: Verb
    target: str = ""
    agent: str = ""


def parse(text: str) -> Sentence | None:
    """Return the request that a text makes, or None if it only names something."""
    line = " ".join(text.split()).rstrip("?. ")
    for pattern in _PATTERNS:
        if match := pattern.fullmatch(line):
            parts = {"target": "", "agent": "", **match.groupdict(default="")}
            verb: Verb = parts["verb"].lower()  # type: ignore[assignment]
            return Sentence(verb=verb, target=parts["target"], agent=parts["agent"])
    return None
