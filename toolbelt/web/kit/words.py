"""Numbers, times and states in words."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from toolbelt.core import catalog, grants, rules, texts
from toolbelt.core.rules import resolution

# Switches and overrides, in the words of the fields `on` and `was` of every form.
STORED: dict[bool | None, str] = {True: "true", False: "false", None: "unset"}
_READ = {word: on for on, word in STORED.items()}
MAX_VALUE_LENGTH = 400
# The most characters of a search text that are used.
MAX_QUERY_LENGTH = 200
# The words for the states of a tool; the codes are data (docs/reference/glossary.md). "Blocked" is only for tools that
# an operator blocked for everyone: see `state_of`.
STATES = {
    "active": "On",
    "discoverable": "On request",
    "denied": "Off",
    "dormant": "Off",
    "unavailable": "Unavailable",
}
BLOCKED = "Blocked"
# The kinds of entries of the catalog.
KINDS = {
    "tool": "tool",
    "prompt": "prompt",
    "resource": "resource",
    "template": "resource template",
    "elicitation": "asks users",
}


counted = texts.counted


def number(count: int) -> str:
    """Return a count with separators: ``1,204``."""
    return f"{count:,}"


def approx(count: int) -> str:
    """Return a rounded count: ``~1.2k``, ``~340``, ``~66.9M``."""
    if count >= 1_000_000:
        return f"~{count / 1_000_000:,.1f}M"
    if count >= 100_000:
        return f"~{count / 1000:.0f}k"
    return f"~{count / 1000:.1f}k" if count >= 1000 else f"~{count}"


def limit(count: int) -> str:
    """Return a limit that an operator set: ``16k``, ``1,200``."""
    return f"{count // 1000:,}k" if count % 1000 == 0 and count else number(count)


def size(count: int) -> str:
    """Return a size in bytes: ``340 bytes``, ``48.2 KB``."""
    return f"{count / 1000:,.1f} KB" if count >= 1000 else f"{count} bytes"


def duration(milliseconds: int) -> str:
    """Return a duration: ``340 ms``, ``1.2 s``, ``2.5 min``."""
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    if milliseconds < 100_000:
        return f"{milliseconds / 1000:.1f} s"
    return f"{milliseconds / 60_000:,.1f} min"


def signed(count: int) -> str:
    """Return a difference with its sign: ``+4``, ``−23``, ``±0``."""
    return ("+" if count > 0 else "−" if count < 0 else "±") + number(abs(count))


def tools(count: int) -> str:
    """Return a number of tools: ``1 tool``, ``12 tools``."""
    return counted(count, "tool")


def count_kinds(kinds: Iterable[str]) -> str:
    """Return the numbers of catalog entries by kind: ``12 tools, 1 prompt``."""
    counts = Counter(kinds)
    return ", ".join(counted(counts[kind], noun) for kind, noun in KINDS.items() if counts[kind])


def form_value(on: bool | None) -> str:
    """Return a switch or override as the value of a form field."""
    return STORED[on]


def from_form_value(word: str) -> bool | None:
    """Return the switch or override of a form field. Raise KeyError for any other value."""
    return _READ[word]


def state(on: Any) -> str:
    """Return a switch or override in words: ``on``, ``off``, ``default``, ``on until 16:05``."""
    word = {True: "on", False: "off", None: "default"}[grants.is_on(on)]
    end = grants.expiry_of(on)
    return word if end is None else f"{word} until {until(end.at)}"


def until(at: datetime) -> str:
    """Return when something ends: ``16:05``, ``tomorrow 09:00``, ``24 Nov 09:00``."""
    local, today = timezone.localtime(at), timezone.localdate()
    hour = local.strftime("%H:%M:%S" if local.second else "%H:%M")
    if local.date() == today:
        return hour
    if local.date() == today + timedelta(days=1):
        return f"tomorrow {hour}"
    return local.strftime("%-d %b " if local.year == today.year else "%-d %b %Y ") + hour


def blocked(ends: datetime | None) -> str:
    """Return the state of what is blocked, with its end: ``blocked for everyone until 16:05``."""
    return "blocked for everyone" + (f" until {until(ends)}" if ends is not None else "")


def time_span(first: datetime, last: datetime) -> str:
    """Return a time of the past, or from when to when: ``today, 02:10 to 03:09``, ``27 Nov, 23:50``."""
    days = [_past_day(at) for at in (first, last)]
    hours = [f"{timezone.localtime(at):%H:%M}" for at in (first, last)]
    if days[0] != days[1]:
        return f"{days[0]}, {hours[0]} to {days[1]}, {hours[1]}"
    return f"{days[0]}, {hours[0]}" + (f" to {hours[1]}" if hours[0] != hours[1] else "")


def _past_day(at: datetime) -> str:
    date, today = timezone.localdate(at), timezone.localdate()
    if date == today:
        return "today"
    return "yesterday" if date == today - timedelta(days=1) else f"{date:%-d %b}"


def time_left(at: datetime) -> str:
    """Return the time left: ``1 h 52 min left``, ``3 d 4 h left``."""
    minutes = max(0, int((at - timezone.now()).total_seconds() // 60))
    hours, days = minutes // 60, minutes // (24 * 60)
    if not minutes:
        return "less than a minute left"
    if not hours:
        return f"{minutes} min left"
    if not days:
        return f"{hours} h {minutes % 60} min left" if minutes % 60 else f"{hours} h left"
    return f"{days} d {hours % 24} h left" if hours % 24 else f"{days} d left"


def switch_verb(on: bool | None) -> str:
    """Return the label of a button that sets a switch or an override: ``Turn on``, ``Reset to default``."""
    return {True: "Turn on", False: "Turn off", None: "Reset to default"}[on]


def switch_question(key: str, on: Any, agent: str) -> str:
    """Return the title of a confirmation to set a switch or an override: ``Turn off devops for ada?``"""
    if on is None:
        return f"Reset {key} to default for {agent}?"
    end = grants.expiry_of(on)
    question = f"Turn {state(grants.is_on(on))} {key} for {agent}"
    return f"{question}?" if end is None else f"{question} until {until(end.at)}?"


def switch_result(key: str, on: Any, agent: str) -> str:
    """Return the result of setting a switch or an override: ``devops is off for ada``."""
    end = grants.expiry_of(on)
    now = "is reset to default" if grants.is_on(on) is None else f"is {state(grants.is_on(on))}"
    sentence = f"{key} {now} for {agent}"
    return sentence if end is None else f"{sentence} until {until(end.at)}"


def since(at: datetime) -> str:
    """Return a time in the past, relative to now."""
    seconds = (timezone.now() - at).total_seconds()
    if seconds < 60:
        return "just now"
    if seconds < 3600:
        return f"{int(seconds // 60)} min ago"
    if seconds < 24 * 3600:
        return f"{int(seconds // 3600)} h ago"
    days = (timezone.localdate() - timezone.localdate(at)).days
    if days <= 1:
        return "yesterday"
    return f"{days} d ago" if days < 31 else f"on {timezone.localdate(at):%-d %b %Y}"


def in_full(at: datetime) -> str:
    """Return a time with its day and zone: ``3 Mar 2025, 09:00 UTC``."""
    return f"{timezone.localtime(at):%-d %b %Y, %H:%M %Z}"


def ahead(at: datetime) -> str:
    """Return a time in the future, relative to now."""
    seconds = (at - timezone.now()).total_seconds()
    if seconds < 3600:
        return f"in {max(1, round(seconds / 60))} min"
    if seconds < 36 * 3600:
        return f"in {round(seconds / 3600)} h"
    return f"in {round(seconds / (24 * 3600))} d"


def day(at: datetime) -> str:
    """Return a day: ``Today``, ``Yesterday, 20 November``, ``3 March 2025``."""
    date, today = timezone.localdate(at), timezone.localdate()
    if date == today:
        return "Today"
    if date == today - timedelta(days=1):
        return f"Yesterday, {date:%-d %B}"
    return f"{date:%A, %-d %B}" if date.year == today.year else f"{date:%-d %B %Y}"


def value(stored: Any) -> str:
    """Return a stored value in one line: words for booleans and None, JSON for lists and mappings, cut if long."""
    if stored is None:
        text = "not set"
    elif isinstance(stored, bool) or grants.expiry_of(stored) is not None:
        text = state(stored)
    elif isinstance(stored, str):
        text = stored
    else:
        text = json.dumps(stored, ensure_ascii=False, sort_keys=True)
    return texts.cut(text, MAX_VALUE_LENGTH)


def cut(text: str, maximum: int) -> str:
    """Return a text in one line, cut to a maximum length."""
    return texts.cut(" ".join(text.split()), maximum)


def state_of(decision: resolution.Decision | rules.Answer) -> str:
    """Return the word for the state of a decision."""
    return BLOCKED if decision.code == "blocked" else STATES[decision.state]


def first_words(query: str) -> str:
    """Return as many of the first words of a search text as are used."""
    used = query.strip()[: MAX_QUERY_LENGTH + 1]
    if len(used) <= MAX_QUERY_LENGTH:
        return used
    whole, _, _ = used.rpartition(" ")
    return (whole or used[:MAX_QUERY_LENGTH]).rstrip()


def words_used(query: str | None, used: str) -> str:
    """Return a sentence about how much of a query was used; empty if all of it was."""
    if not query or len(query.strip()) <= len(used.strip()):
        return ""
    count = len(used.split())
    return f"Only the first {counted(count, 'word') if count > 1 else f'{len(used)} characters'} were used."


def with_few_names(reason: str) -> str:
    """Return a reason with only the first few of its names."""
    head, colon, rest = reason.partition(": ")
    names = rest.rstrip(".").split(", ")
    # What is no list of names is a text to read whole, such as a finding.
    if not colon or any(" " in name for name in names):
        return reason
    return f"{head}: {listing(names)}."


def contains(query: str, *found: str) -> bool:
    """Return whether one of the texts contains the query; an empty query matches everything."""
    needle = query.strip().casefold()
    return not needle or any(needle in text.casefold() for text in found)


def listing(names: Sequence[str], maximum: int = 3) -> str:
    """Return the first few names, and the number of the others: ``a, b, c and 4 more``."""
    return texts.listing(names, maximum)


def about_tool(stored: catalog.Catalog, key: str) -> str:
    """Return the purpose of a tool, to show beside its key; empty if there is no such tool."""
    tool = stored.tools.get(key)
    return cut(tool.description or tool.title, 100) if tool else ""


def span(time: timedelta) -> str:
    """Return a span of time in words: ``40 s``, ``12 min``, ``1 h 30 min``, ``2 d``."""
    seconds = round(time.total_seconds())
    if seconds < 120:
        return f"{seconds} s"
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    parts = [f"{count} {unit}" for count, unit in ((days, "d"), (hours, "h"), (minutes, "min")) if count]
    return " ".join(parts[:2])
