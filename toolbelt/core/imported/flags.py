"""Flags for texts from upstream servers that give models instructions beyond the tool's purpose, and for changes that
remove the limits of a tool.

A flag is a hint for the operator who reviews the tool, not a verdict, so a pattern must match something rare. Words
such as "must" and "always" are in every second honest description. Patterns are RE2: linear time for any text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import re2

from toolbelt.core import risks, schema
from toolbelt.core.imported import cleaning
from toolbelt.core.schema import relaxations

MAX_SHOWN_LENGTH = 60
COSTLY = "has a schema that can take too long to check: calls with nested arguments may be refused"

_SUSPICIOUS_PHRASES: Mapping[str, str] = {
    "overrules instructions": (
        r"\b(ignore|disregard|forget|override|overrule|bypass|supersedes?)\b[^.\n]{0,30}"
        r"\b(previous|prior|above|earlier|preceding|existing|all|any|other|system|your|these)\b[^.\n]{0,20}"
        r"\b(instructions?|prompts?|rules|guidelines|directives|polic(y|ies)|safety|guardrails)\b"
    ),
    "keeps something from the user": (
        r"\b(do not|don'?t|never|without|must not|should not|avoid)\s+(\w+\s+){0,2}"
        r"(tell(ing)?|mention(ing)?|inform(ing)?|reveal(ing)?|notify(ing)?|alert(ing)?|disclos(e|ing)|show(ing)?)\b"
        r"[^.\n]{0,30}\b(users?|humans?|operators?|anyone|anybody|customers?|them)\b"
        r"|\b(secretly|covertly|behind the user'?s back|without the user'?s? (knowledge|knowing))\b"
    ),
    "orders a call": (
        r"\b(you|the (model|assistant|agent|ai|llm)) (must|have to|has to|shall)"
        r" (always |first |also |then |immediately )*(call|invoke|run|execute|use)\b"
        r"|\b(always|first|immediately) (call|invoke|run|execute) (this|the)\b"
        r"|\bbefore (calling|using|running|invoking) (any|all|every|each)( other)? (tools?|functions?)\b"
        r"|\b(instead of|rather than) (calling|using) (any|all) other tools?\b"
    ),
    "imitates another speaker": (
        r"(?m)^\s*#*\s*\[?(system|assistant|developer)( message| prompt| note)?\]?\s*:\s*\S"
        r"|<\|?(im_start|im_end|system|endoftext)\|?>|\[/?INST\]|<<SYS>>"
        r"|\byou are now\b|\bnew (system )?instructions?\b|\byour (new|real|true) (task|goal|role|instructions?)\b"
    ),
    "contains markup that poses as instructions": (
        r"</?\s*(important|system|secret|instructions?|critical|admin|override|hidden|assistant|user|prompt"
        r"|policy|rules?|directive)\b[^>\n]{0,40}>|<!--|<(script|iframe|img|style)\b"
    ),
    "asks for secrets": (
        r"~/\.(ssh|aws|gnupg|kube|netrc|cursor|claude)\b|\bid_(rsa|ed25519)\b|/etc/(passwd|shadow)\b"
        r"|\b(claude_desktop_config|mcp|credentials)\.json\b"
        r"|\b(read|include|attach|send|pass|paste|append|provide)\b[^.\n]{0,40}"
        r"\b(system prompt|conversation( history)?|chat (history|log)|previous messages|environment variables"
        r"|private keys?|ssh keys?|your (credentials|api keys?|passwords?))\b"
    ),
    "contains a long encoded text": r"[A-Za-z0-9+/]{120,}={0,2}|(?:[0-9a-fA-F]{2}){80,}|(?:\\x[0-9a-fA-F]{2}){12,}",
    "loads an image from elsewhere": r"!\[[^\]\n]{0,200}\]\(\s*(https?:)?//",
}


def _compile(pattern: str) -> Any:
    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    return re2.compile(pattern, options=options)


_PATTERNS = {flag: _compile(pattern) for flag, pattern in _SUSPICIOUS_PHRASES.items()}


def flags(text: str) -> tuple[str, ...]:
    """Return the flags of a text, each with the words that raised it."""
    encoded = text.encode(errors="replace")
    raised = [
        f"{flag}: “{_shown(match.group())}”"
        for flag, pattern in _PATTERNS.items()
        if (match := pattern.search(encoded)) is not None
    ]
    if cleaning.has_hidden(text):
        raised.append("contains invisible characters")
    return tuple(raised)


def of_tool(
    name: str,
    title: str,
    description: str,
    *schemas: Mapping[str, Any] | None,
    details: Mapping[str, Any] | None = None,
) -> tuple[str, ...]:
    """Return the flags of all texts of a tool, including those in its schemas and details."""
    raised = {
        flag.partition(":")[0]: flag
        for text in (*_texts_of_details(details or {}), *texts(schemas), title, name, description)
        for flag in flags(text)
    }
    unenforced = [
        pattern
        for document in schemas
        if document is not None
        for pattern in schema.unenforced_patterns(document)
    ]
    if unenforced:
        patterns = ", ".join(_shown(pattern.encode(errors="replace")) for pattern in unenforced[:3])
        raised["pattern"] = f"has a pattern that is not enforced, because RE2 cannot run it: {patterns}"
    # Only the first schema describes arguments, which are checked.
    if any(document is not None and schema.is_costly(schema.canonical(document)) for document in schemas[:1]):
        raised["cost"] = COSTLY
    return tuple(sorted(raised.values()))


def of_change(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the flags of a change of a tool, from the fields of the approved version and of the one to review: a
    higher risk, and limits of its arguments that were removed or loosened.
    """
    return (*_of_risk(before, after), *_of_limits(before, after))


def _of_risk(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    hints = after.get("annotations") or {}
    if raised := risks.raised(before.get("annotations") or {}, hints):
        was, now = raised
        if risks.is_stated(hints):
            yield f"its server now states a higher risk: {now} (it was {was})"
        else:
            yield f"its server no longer states its risk (it was {was}), so it counts as {now}"


def _of_limits(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    was, now = before.get("input_schema"), after.get("input_schema")
    if isinstance(was, Mapping) and isinstance(now, Mapping) and was != now:
        yield from (cleaning.escape_hidden(sentence) for sentence in relaxations.of(was, now))


def texts(value: Any) -> Iterator[str]:
    """Yield every text in a document, including the names of its fields."""
    match value:
        case str():
            yield value
        case Mapping():
            yield from (key for key in value if isinstance(key, str))
            yield from _each(value.values())
        case list() | tuple():
            yield from _each(value)


def _texts_of_details(details: Mapping[str, Any]) -> Iterator[str]:
    for field, value in details.items():
        for text in texts(value):
            # An image in base64 is a long encoded text, but not shown to a model.
            if field != "icons" or not text.startswith("data:image/"):
                yield text


def _each(values: Iterable[Any]) -> Iterator[str]:
    for item in values:
        yield from texts(item)


def _shown(text: bytes) -> str:
    return cleaning.line(text.decode(errors="replace"), MAX_SHOWN_LENGTH)
