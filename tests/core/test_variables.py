"""Tests of variables in texts."""

from __future__ import annotations

import pytest

from toolbelt.core import variables

ENVIRON = {"KEY": "k", "HOST": "example.org", "ODD": "${KEY}", "EMPTY": ""}


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("plain $HOME {x} }", "plain $HOME {x} }"),
        ("${KEY}", "k"),
        ("https://${HOST}/?key=${KEY}&x=1", "https://example.org/?key=k&x=1"),
        ("${EMPTY}", ""),
        ("${ODD}", "${KEY}"),
        ("$${KEY} costs 5$", "${KEY} costs 5$"),
        ("${env:KEY}", "k"),
        ("${KEY:-other}/${NO_KEY:-a b}/${EMPTY:-c}/${NO_KEY:-}", "k/a b/c/"),
        ("${env:NO_KEY:-d}", "d"),
        ("$${NO_KEY:-d}", "${NO_KEY:-d}"),
    ],
)
def test_variables_are_filled_in_anywhere_in_a_text(text, filled):
    assert variables.fill(text, ENVIRON) == (filled, [])


def test_every_missing_variable_is_reported_by_name():
    _, problems = variables.fill("${A_KEY} ${KEY} ${B_KEY}", ENVIRON)

    assert [problem.split(" is not set")[0] for problem in problems] == [
        "The variable 'A_KEY'",
        "The variable 'B_KEY'",
    ]


@pytest.mark.parametrize(
    "text", ["${}", "${KEY", "${A B}", "${KEY-default}", "${1A}", "${KEY:-${B}}", "${env:}"]
)
def test_malformed_variables_are_refused(text):
    [problem] = variables.fill(text, ENVIRON)[1]

    assert "is not a variable" in problem


@pytest.mark.parametrize("text", ["${A}", "$${A}", "a$${A:-b}c", "$$$${"])
def test_an_escaped_text_is_filled_in_as_it_was(text):
    assert variables.fill(variables.escaped(text), {"A": "x"}) == (text, [])


def test_a_default_counts_as_written_out():
    text = "a${KEY}b${HOST:-localhost}c$${X}"

    assert variables.written_out(text) == "ablocalhostc$${X}"
    assert ([*variables.names(text)], [*variables.required(text)]) == (["KEY", "HOST"], ["KEY"])
    assert [variables.is_literal(text) for text in ("a", "$${A}", "${A}", "${A:-}", "${A:-b}")] == [
        *(True, True, False, False, True)
    ]
