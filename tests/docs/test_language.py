"""Tests that the documentation is written in plain English, without phrasings that confuse readers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs import pages

# Phrases to avoid, and their replacements. Add a phrase when a reader had to ask what it means.
INSTEAD = {
    # People: address the reader, or name the role.
    r"somebody|whoever|nobody": "you, an operator, another operator, no agent, no one",
    # Words from this project's early texts that no other project uses in this sense.
    r"doors?": "`toolbelt.control`, `toolbelt.runtime`, or the permission that is checked",
    r"eleven questions": "eleven rules",
    r"judge[ds]?": "check, decide",
    r"one act|same act|whole act": "one step",
    r"(?:an?|no|need) look": "review, needs no review",
    r"needs? an eye": "needs attention",
    r"on (?:the )?screens?|by screen": "in the dashboard",
    r"gives? (?:what|the value|those|all)": "returns, contains, lists",
    # Idioms that read as translated.
    r"anew": "again",
    r"by itself": "automatically, or leave it out",
    r"all the same": "anyway, still",
    r"(?:is|are|was|were|be|been) told": "is notified, learns, reads",
    r"hears? of|heard of": "is notified of",
    r"is said|are said|was said|so to say": "the message says; or name the setting",
    r"comes? along|come along": "built-in",
    r"comes? with": "has, includes, installs",
    r"comes? to pass": "passes, happens",
    r"comes? of it|come of it": "the result, the effect",
    r"to be had|can be had": "available, may be loaded",
    r"parted by": "separated by",
    r"so already": "already up to date",
    r"went well": "succeeded",
    r"opens? nothing": "is revoked, is expired, is rejected",
    r"goes? on|went on": "continues, keeps working",
    r"(?:is|was|are) over(?!,? (?:its|the|a) budget| budget)": "has ended, has expired",
    r"from the next (?:one|request|question|run) on": "from the next request",
    r"stands? (?:in|under|beside|below|on|at|there|open)": "is in, is under, appears",
    r"is there (?:now|again)": "exists, is available again",
    r"looks? after": "manages",
    r"made-up": "generated, example",
    r"dear(?:er|est)": "more expensive, most expensive",
    r"as long as it lasts|for good": "permanently",
    r"without end|to its end": "endless; completely",
    r"half of them|95 of 100": "p50, p95",
    r"as it was then": "the earlier version",
    r"counts? (?:at once|at the next|from the)": "applies",
    r"nothing fits|no agent fits": "no matching tools, no matching agents",
    r"twice is twice": "not idempotent",
    r"too often is refused|that was too often": "too many requests",
    r"things there are|what there is": "name the things",
}
PHRASES = {re.compile(rf"\b(?:{phrase})\b", re.IGNORECASE): better for phrase, better in INSTEAD.items()}
CHECKED = [
    page
    for page in pages.every()
    if pages.name(page).startswith(("docs/", "README", "CONTRIBUTING", "CHANGELOG"))
]


def words_of(page: Path) -> str:
    """Return the page's own words on one line: without code, link targets and dashboard labels."""
    text = re.sub(r"`[^`]*`|\]\([^)]*\)|<!--.*?-->", " ", pages.prose(page))
    # A label is emphasized and, unlike an emphasized sentence, has no full stop.
    text = re.sub(r"(?<!\*)(\*{1,2})(?![\s*])[^*]*[^*.\s]\1(?!\*)", " ", text)
    return " ".join(text.split())


def phrases_to_avoid(page: Path) -> Iterator[str]:
    """Yield each phrase to avoid, in its context, with its replacement."""
    text = words_of(page)
    for phrase, better in PHRASES.items():
        for match in phrase.finditer(text):
            context = text[max(match.start() - 40, 0) : match.end() + 40]
            yield f"{pages.name(page)}: {match[0]!r} in …{context}… Write: {better}."


def test_the_pages_use_plain_words() -> None:
    assert [found for page in CHECKED for found in phrases_to_avoid(page)] == []
