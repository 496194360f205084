"""Tests of a plugin's states and the allowed transitions."""

from __future__ import annotations

import itertools

import pytest

from toolbelt.plugins import lifecycle

STATES = [lifecycle.Status(), lifecycle.initialized(), lifecycle.stopped(), lifecycle.failed("broken")]


def test_a_plugin_starts_as_registered():
    assert lifecycle.Status().state == "registered"


@pytest.mark.parametrize(
    ("before", "to"),
    [*itertools.product(STATES[:1], STATES[1:]), *itertools.product(STATES[1:2], STATES[2:])],
)
def test_an_allowed_transition_changes_the_state(before, to):
    assert lifecycle.move(before, to) is to


@pytest.mark.parametrize(("final", "to"), list(itertools.product(STATES[2:], STATES)))
def test_stopped_and_failed_are_final_states(final, to):
    assert final.is_final
    assert lifecycle.move(final, to) is final


@pytest.mark.parametrize("status", STATES[:2])
def test_a_plugin_does_not_return_to_registered(status):
    assert not status.is_final
    assert lifecycle.move(status, lifecycle.Status()) is status


def test_only_the_failed_state_has_an_error():
    assert lifecycle.failed("").error
    assert [bool(status.error) for status in STATES] == [False, False, False, True]


def test_an_exception_is_described_on_a_single_line():
    assert lifecycle.described(ValueError("first\n  second")) == "ValueError: first second"
    assert lifecycle.described(KeyError()) == "KeyError"
