"""Tests of the rules of a flip, through every interface for operators: dashboard, admin, API, command, `control`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.api.conftest import reset_rate_limits
from tests.control.conftest import operator, stored
from tests.flows.flip_interfaces import INTERFACES, SETUP, Flip
from toolbelt.control.access import switches, tools_config
from toolbelt.control.catalog import entries
from toolbelt.control.reports import queries
from toolbelt.runtime import surfaces

__all__ = ["operator", "reset_rate_limits", "stored"]
pytestmark = pytest.mark.usefixtures("stored")

OTHER = SETUP.replace(confirm=True)
TOOLS = {
    "ada": {"clock"},
    "bob": {"clock", "git__log", "git__status"},
}


def through(*, except_: tuple[str, ...] = ()) -> pytest.MarkDecorator:
    """Run the test through every interface but these."""
    return pytest.mark.parametrize("interface", [name for name in INTERFACES if name not in except_])


def active(agent: str) -> set[str]:
    return {definition.name for definition in surfaces.ask(agent).tools}


def change(agent: str, **fields: Any) -> Callable[[], object]:
    return lambda: entries.change(OTHER, "agent", agent, fields)


def set_to(agent: str, key: str, on: bool | None) -> Callable[[], object]:
    flip_or_override = switches.override if "__" in key else switches.flip
    return lambda: flip_or_override(OTHER, agent, key, on)


@pytest.mark.parametrize(
    ("agent", "key", "on", "action", "gained", "lost"),
    [
        ("ada", "reading", True, "switch.set", {"git__log", "git__status"}, set()),
        ("bob", "reading", False, "switch.set", set(), {"git__log", "git__status"}),
        ("bob", "reading", None, "switch.clear", set(), {"git__log", "git__status"}),
        ("ada", "git__log", True, "override.set", {"git__log"}, set()),
        ("bob", "git__log", False, "override.set", set(), {"git__log"}),
        ("ada", "clock", False, "override.set", set(), {"clock"}),
    ],
)
@through()
def test_a_flip_changes_the_next_surface_and_has_one_audit_entry(
    interface: str, agent: str, key: str, on: bool | None, action: str, gained: set[str], lost: set[str]
) -> None:
    before = tools_config.read(agent).get(key)
    entries_before = queries.changes(agent=agent).total

    answer = INTERFACES[interface].flip(Flip(agent, key, on, reason="for the release"))

    assert answer.accepted, answer.text
    assert active(agent) == TOOLS[agent] - lost | gained
    assert queries.changes(agent=agent).total == entries_before + 1
    entry = queries.changes(agent=agent).entries[0]
    assert (entry.actor, entry.via) == (INTERFACES[interface].actor, INTERFACES[interface].via)
    assert (entry.action, entry.subject_key, entry.key) == (action, agent, key)
    assert (entry.before, entry.after, entry.reason) == (before, on, "for the release")


@pytest.mark.parametrize(("agent", "key", "on"), [("bob", "reading", True), ("ada", "reading", None)])
@through()
def test_a_flip_to_the_current_state_is_accepted_and_not_recorded(
    interface: str, agent: str, key: str, on: bool | None
) -> None:
    entries_before = queries.changes(agent=agent).total
    assert INTERFACES[interface].flip(Flip(agent, key, on)).accepted
    assert queries.changes(agent=agent).total == entries_before


@through()
def test_a_change_of_another_key_meanwhile_is_no_conflict(interface: str) -> None:
    flip = Flip("bob", "reading", False, meanwhile=set_to("bob", "git__log", False))
    assert INTERFACES[interface].flip(flip).accepted
    assert tools_config.read("bob") == {"git__log": False, "reading": False}


@pytest.mark.parametrize(
    ("on", "now", "text"),
    [(False, None, "you saw on, it is not set now"), (None, False, "you saw on, it is off now")],
)
@through(except_=("command",))  # The command does not send the value that was read.
def test_a_stale_flip_is_refused_with_the_current_state(
    interface: str, on: bool | None, now: bool | None, text: str
) -> None:
    flip = Flip("bob", "reading", on, meanwhile=set_to("bob", "reading", now))
    answer = INTERFACES[interface].flip(flip)
    assert not answer.accepted
    assert text in answer.text
    assert tools_config.read("bob") == ({} if now is None else {"reading": now})
    assert queries.changes(agent="bob").entries[0].actor == OTHER.actor.name


@pytest.mark.parametrize(
    ("prepare", "flip", "text"),
    [
        pytest.param(
            change("ada", budget={"max_tools": 2, "on_exceed": "refuse"}),
            Flip("ada", "reading", True),
            "Switch something else off first, or raise the budget.",
            id="over a budget",
        ),
        pytest.param(
            lambda: None,
            Flip("bob", "verbose", True, confirm=True),
            "git__log",
            id="conflicting options",
        ),
    ],
)
@through()
def test_a_flip_that_breaks_a_limit_is_refused_even_if_it_is_confirmed(
    interface: str, prepare: Callable[[], object], flip: Flip, text: str
) -> None:
    prepare()
    before, entries_before = tools_config.read(flip.agent), queries.changes(agent=flip.agent).total
    answer = INTERFACES[interface].flip(flip)
    assert not answer.accepted
    assert text in answer.text
    assert (tools_config.read(flip.agent), queries.changes(agent=flip.agent).total) == (
        before,
        entries_before,
    )


@pytest.mark.parametrize(
    ("prepare", "flip", "text"),
    [
        pytest.param(
            lambda: None,
            Flip("ada", "pushing", True),
            "Enables destructive tools: git__push.",
            id="destructive tools",
        ),
        pytest.param(
            change("bob", protected=True),
            Flip("bob", "clock", False),
            "bob is protected",
            id="a protected agent",
        ),
        pytest.param(
            change("bob", protected=True), Flip("bob", "reading", None), "bob is protected", id="a reset"
        ),
        pytest.param(lambda: None, Flip("bob", "reading", False), "Turns off 2 tools", id="many tools"),
    ],
)
@through()
def test_a_flip_with_a_large_effect_requires_confirmation(
    interface: str, prepare: Callable[[], object], flip: Flip, text: str, settings: Any
) -> None:
    settings.TOOLBELT_CONFIRM_OFF_TOOLS = 1
    prepare()
    before, entries_before = tools_config.read(flip.agent), queries.changes(agent=flip.agent).total

    answer = INTERFACES[interface].flip(flip)
    assert not answer.accepted
    assert text in answer.text
    assert (tools_config.read(flip.agent), queries.changes(agent=flip.agent).total) == (
        before,
        entries_before,
    )

    answer = INTERFACES[interface].flip(flip._replace(confirm=True))
    assert answer.accepted, answer.text
    assert tools_config.read(flip.agent).get(flip.key) is flip.on


@pytest.mark.parametrize(
    ("agent", "key", "nearest"), [("ada", "raeding", "reading"), ("adda", "reading", "ada")]
)
@through(except_=("admin", "dashboard", "dashboard with scripts"))  # They offer only what exists.
def test_an_unknown_agent_or_key_is_not_found_with_the_nearest_name(
    interface: str, agent: str, key: str, nearest: str
) -> None:
    answer = INTERFACES[interface].flip(Flip(agent, key, True))
    assert not answer.accepted
    assert nearest in answer.text
