"""Tests of patterns: which texts they match here."""

from __future__ import annotations

import time

import pytest

from toolbelt.core.schema import patterns, validator

EMOJI = "\U0001f600"


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        (r"^[\u4e00-\u9fa5]+$", "\u4e2d\u6587", "abc"),
        (r"^[\u{1F600}-\u{1F64F}]$", EMOJI, "a"),
        (r"^\ud83d\ude00$", EMOJI, "a"),
        (r"^[\ud83d\ude00]$", EMOJI, "a"),
        (r"^[^\cA-\cZ]+$", "abc", "a\tb"),
        (r"^\/api\/\w+$", "/api/x", "/api/-"),
        (r"^\_\-\@\#\:$", "_-@#:", "_-@#"),
        (r"^{[a-z]+}$", "{abc}", "abc"),
        (r"^\$\{[A-Z]+\}$", "${HOME}", "$HOME"),
        (r"^a{5$", "a{5", "aaaaa"),
        (r"^a]$", "a]", "a"),
        (r"^[\w-.]+$", "a-b.c", "a b"),
        (r"^[a-\d]+$", "a-1", "b"),
        (r"^[^]$", "\n", ""),
        (r"^.$", "a", "\u2028"),
        (r"(?s)^.$", "\n", ""),
        (r"^\s$", "\u00a0", "a"),
        (r"^[\s]$", "\ufeff", "\u200b"),
        (r"^\S$", "\u200b", "\u3000"),
        (r"^[^\S]$", "\u3000", "a"),
        (r"^\d$", "5", "\u0665"),
        (r"^\x41\0\v[\b]$", "A\0\v\b", "A"),
        (r"^\p{Script=Greek}$", "\u03b1", "a"),
        (r"^\p{sc=Greek}$", "\u03b1", "a"),
        (r"^\p{Uppercase_Letter}\P{gc=Lu}$", "Aa", "AA"),
        (r"^[\p{ASCII}]$", "a", "\u00e4"),
        (r"^\P{ASCII}$", "\u00e4", "a"),
        (r"^(?<year>\d{4})(?P<month>-\d{2})?$", "2026-01", "26"),
        (r"^(?:(?i:a)|b??)$", "A", "B"),
        (r"(?i)^a$", "A", "B"),
        (r"\Aab\z", "ab", "ab\n"),
        (r"\Aab\Z", "ab\n", "abc"),
        (r"^[[:alpha:]_]+$", "a_", "1"),
        (r"^a$", "a", "a\n"),
    ],
)
def test_a_pattern_means_what_it_means_in_ecma_262(pattern: str, matching: str, other: str) -> None:
    compiled = validator.linear(pattern)

    assert compiled.search(matching) is not None
    assert compiled.search(other) is None


def test_an_empty_class_matches_nothing() -> None:
    assert validator.linear("[]").search("[]") is None


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=a)", "(?!a)b", "(?<=a)b", "(?<!a)b", r"(a)\1", r"(?<q>a)\k<q>", r"\p{Emoji}", r"\p{", r"\p{ASCII_Hex}",
        r"\P{Any}", "a++", "(?>a)", "a(?i)b", "(?s:.)", r"\h", r"\012", r"\u12", r"\ud83d", "\ud83d", "a{,5}", "a{2,1}",
        "a{1,70000}", "a{" + "9" * 5_000 + "}", "[z-a]", r"[\p{L}--[a-z]]", "[a-z&&[b]]", "[]a]", "*a", "a**", "^*",
        "/^[a-z]+$/i",
    ],
)  # fmt: skip
def test_a_pattern_without_an_equivalent_is_not_run_and_not_broken(pattern: str) -> None:
    assert validator.linear(pattern) is None
    assert not patterns.is_broken(pattern)


@pytest.mark.parametrize("pattern", ["[a-", "[a", "(a", "(?=a(", "a)", "\\", "[\\", "[a-\\"])
def test_an_incomplete_pattern_is_broken(pattern: str) -> None:
    assert patterns.is_broken(pattern)
    assert validator.linear(pattern) is None


@pytest.mark.parametrize("part", ["[", "(", "\\", "{1,", "(?", "[a-z]{1,2", "(?<a", "[[:a", "[a--", "a"])
def test_a_long_pattern_is_read_in_linear_time(part: str) -> None:
    start = time.process_time()

    patterns.is_broken(part * 20_000)

    assert time.process_time() - start < 1
