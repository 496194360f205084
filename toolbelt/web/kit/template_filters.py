"""Template filters: values as pages print them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime

from django import template
from django.utils import timezone
from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString

from toolbelt.core import effects, gate_rules
from toolbelt.core.rules import reasons
from toolbelt.web.kit import context_saved, model_panel, proved_forms, texts, tool_sections, words

register = template.Library()

for print_value in (
    words.number,
    words.approx,
    words.limit,
    words.size,
    words.duration,
    words.signed,
    words.tools,
    words.counted,
    words.listing,
    words.words_used,
    words.since,
    words.in_full,
    texts.pieces,
    reasons.explain,
    model_panel.summarize,
    tool_sections.risk,
    tool_sections.purpose,
):
    register.filter(print_value.__name__, print_value)
# "cut" is a filter of Django's own.
register.filter("cut_to", words.cut)
register.filter("rule_words", gate_rules.in_words)
register.filter("state_word", words.state_of)
register.filter("visible", texts.visible)
register.filter("context_saved", context_saved.in_words)
register.filter("is_proved", proved_forms.find)


@register.filter
def highlight(text: str, query: str) -> SafeString:
    """Return a text with the matches of a search marked."""
    searched = query.strip()
    if not searched:
        return conditional_escape(text)
    return _tag_alternate(re.split(f"({re.escape(searched)})", text, flags=re.IGNORECASE), "<mark>{}</mark>")


@register.filter
def code_spans(text: str) -> SafeString:
    """Return a message with the parts between backticks as code."""
    return _tag_alternate(re.split("`([^`]+)`", text), "<code>{}</code>")


def _tag_alternate(parts: Sequence[str], tag: str) -> SafeString:
    """Return the parts joined, every second one in a tag."""
    return format_html_join(
        "", "{}", ((format_html(tag, part) if index % 2 else part,) for index, part in enumerate(parts))
    )


@register.filter
def without_backticks(text: str) -> str:
    """Return a message without markup, for the title of a page or a screen reader."""
    return text.replace("`", "")


@register.filter
def tool_name(key: str, query: str = "") -> SafeString:
    """Return the key of a tool with its namespace marked, or with the matches of a search marked."""
    if query.strip():
        return highlight(key, query)
    return format_html('<span class="tool-prefix">{}</span><wbr>{}', *model_panel.split_key(key))


@register.filter
def titled(key: str, titles: Mapping[str, str]) -> str:
    """Print an entry's title, or its key if it has none."""
    return texts.visible(titles.get(key) or key)


@register.filter
def key_beside(key: str, titles: Mapping[str, str]) -> SafeString | str:
    """Print an entry's key, to go beside its title; nothing if the title is the same, or there is none."""
    is_named = titles.get(key) not in (None, "", key)
    return format_html('<code class="quiet">{}</code>', key) if is_named else ""


@register.filter
def consequences(effect: effects.Effect) -> tuple[str, ...]:
    """Return what a change does to live conversations, and which prompt caches it resets."""
    return model_panel.consequences(effect.breaks, effect.conversations)


@register.filter
def delta(before: int, after: int) -> str:
    """Return the difference between a count before and after, with its sign."""
    return words.signed(after - before)


@register.filter
def moment(at: datetime | None) -> SafeString | str:
    """Return a time in the past, relative to now."""
    return _time(at, words.since(at)) if at else ""


@register.filter
def ahead(at: datetime) -> SafeString:
    """Return a time in the future, relative to now."""
    return _time(at, words.ahead(at))


@register.filter
def moment_in_full(at: datetime) -> SafeString:
    """Return a time with its day and zone."""
    return _time(at, words.in_full(at))


@register.filter
def weekday(day: date) -> str:
    """Return a day with its weekday: ``Monday, 3 March``. Django's date filter is too slow for a page of days."""
    return f"{day:%A, %-d %B}"


@register.filter
def clock(at: datetime) -> SafeString:
    """Return the time of day, for lists with the day in a heading."""
    local = timezone.localtime(at)
    return _time(at, f"{local:%H:%M}", f"{local:%-d %b %Y, %H:%M:%S %Z}")


def _time(at: datetime, text: str, title: str = "") -> SafeString:
    iso = timezone.localtime(at).isoformat(timespec="seconds")
    return format_html('<time datetime="{}" title="{}">{}</time>', iso, title or words.in_full(at), text)
