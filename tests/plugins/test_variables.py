"""Tests of variables in texts."""

from __future__ import annotations

import pytest

from toolbelt.plugins import variables

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


@pytest.mark.parametrize("text", ["${}", "${KEY", "${A B}", "${KEY:-default}", "${1A}"])
def test_malformed_variables_are_refused(text):
    [problem] = variables.fill(text, ENVIRON)[1]

    assert "is not a variable" in problem
