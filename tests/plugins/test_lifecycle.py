"""The states of a plugin: what may follow what."""

from __future__ import annotations

import itertools

import pytest

from toolbelt.plugins import lifecycle

LIVES = [lifecycle.Life(), lifecycle.initialized(), lifecycle.stopped(), lifecycle.failed("broken")]


def test_a_plugin_begins_as_registered():
    assert lifecycle.Life().state == "registered"


@pytest.mark.parametrize(
    ("before", "to"), [*itertools.product(LIVES[:1], LIVES[1:]), *itertools.product(LIVES[1:2], LIVES[2:])]
)
def test_a_step_that_the_rules_allow_is_taken(before, to):
    assert lifecycle.move(before, to) is to


@pytest.mark.parametrize(("over", "to"), list(itertools.product(LIVES[2:], LIVES)))
def test_nothing_follows_stopped_and_failed(over, to):
    assert over.is_over
    assert lifecycle.move(over, to) is over


@pytest.mark.parametrize("life", LIVES[:2])
def test_no_plugin_is_registered_a_second_time(life):
    assert not life.is_over
    assert lifecycle.move(life, lifecycle.Life()) is life


def test_a_failure_always_has_an_error_and_nothing_else_has_one():
    assert lifecycle.failed("").error
    assert [bool(life.error) for life in LIVES] == [False, False, False, True]


def test_an_exception_is_described_in_one_line():
    assert lifecycle.described(ValueError("first\n  second")) == "ValueError: first second"
    assert lifecycle.described(KeyError()) == "KeyError"
