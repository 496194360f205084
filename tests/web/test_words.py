"""Tests of how numbers, times and states are formatted."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import pytest
from django.utils import timezone

from toolbelt.web.kit import template_filters, words


@pytest.mark.parametrize(
    ("count", "about", "signed"),
    [
        (0, "~0", "±0"),
        (7, "~7", "+7"),
        (999, "~999", "+999"),
        (1234, "~1.2k", "+1,234"),
        (128_287, "~128k", "+128,287"),
    ],
)
def test_numbers_are_abbreviated_and_signed(count: int, about: str, signed: str) -> None:
    assert words.approx(count) == about
    assert words.signed(count) == signed
    assert words.signed(-count) == signed.replace("+", "−")


def test_limits_are_shown_exactly() -> None:
    assert [words.limit(most) for most in (16_000, 24_500, 80, 0)] == ["16k", "24,500", "80", "0"]


def test_tools_are_counted() -> None:
    assert [words.tools(count) for count in (0, 1, 1200)] == ["0 tools", "1 tool", "1,200 tools"]


@pytest.mark.parametrize(
    ("ago", "text"),
    [
        ({"seconds": 3}, "just now"),
        ({"minutes": 5}, "5 min ago"),
        ({"hours": 3}, "3 h ago"),
        ({"days": 4}, "4 d ago"),
    ],
)
def test_recent_times_are_relative(ago: dict[str, int], text: str) -> None:
    at = timezone.now() - dt.timedelta(**ago)
    assert words.since(at) == text
    assert re.fullmatch(
        rf'<time datetime="[^"]+\+00:00" title="[^"]+">{text}</time>', template_filters.moment(at)
    )


def test_old_times_are_dates() -> None:
    assert words.since(dt.datetime(2024, 3, 5, 12, tzinfo=dt.UTC)) == "on 5 Mar 2024"


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (None, "not set"),
        (True, "on"),
        (False, "off"),
        ("text", "text"),
        (["a", 1], '["a", 1]'),
        ("x" * 500, "x" * 399 + "…"),
    ],
)
def test_values_are_formatted_on_one_line(written: Any, text: str) -> None:
    assert words.value(written) == text


def test_a_long_listing_names_the_first_items_and_counts_the_rest() -> None:
    assert words.listing(["a", "b", "c"]) == "a, b, c"
    assert words.listing(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"


def test_texts_are_truncated_to_one_line() -> None:
    assert words.cut("one\n  two", 20) == "one two"
    assert words.cut("one two three", 8) == "one two…"


def test_switch_states_have_their_words() -> None:
    assert [words.switch_verb(on) for on in (True, False, None)] == [
        "Turn on",
        "Turn off",
        "Reset to default",
    ]
    assert words.switch_question("shell", None, "ada") == "Reset shell to default for ada?"
    assert words.switch_result("dev", False, "ada") == "dev is off for ada"
    assert all(words.from_form_value(words.form_value(on)) is on for on in (True, False, None))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1, "in 1 min"),
        (600, "in 10 min"),
        (2 * 3600, "in 2 h"),
        (2 * 86400, "in 2 d"),
        (90 * 86400, "in 90 d"),
    ],
)
def test_future_times_are_relative(seconds: int, text: str) -> None:
    assert words.ahead(timezone.now() + dt.timedelta(seconds=seconds)) == text


@pytest.mark.parametrize(("count", "text"), [(0, "0 bytes"), (999, "999 bytes"), (48_230, "48.2 KB")])
def test_sizes_are_formatted_in_readable_units(count: int, text: str) -> None:
    assert words.size(count) == text
