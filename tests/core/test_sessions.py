"""Tests of sessions: from which request a load or unload applies."""

from __future__ import annotations

import json

from tests.core import building
from toolbelt.core import sessions

NEW = sessions.Session(key="s")


def is_loaded(session: sessions.Session, request_id: str | None) -> bool:
    return "dev" in sessions.loaded(session, "toolkit", request_id)


def with_dev(session: sessions.Session, on: bool, request_id: str | None) -> sessions.Session:
    return sessions.with_change(session, "toolkit", "dev", on, request_id)


def test_a_load_applies_to_every_request_except_its_own() -> None:
    session = with_dev(NEW, True, "r1")
    assert [is_loaded(session, request) for request in ("r1", "r2", "r0", None)] == [False, True, True, True]


def test_an_unload_applies_to_every_request_except_its_own() -> None:
    session = with_dev(with_dev(NEW, True, "r1"), False, "r2")
    assert [is_loaded(session, request) for request in ("r1", "r2", "r3", None)] == [
        False,
        True,
        False,
        False,
    ]


def test_a_change_without_a_request_id_applies_immediately() -> None:
    session = with_dev(NEW, True, None)
    assert is_loaded(session, None)
    assert is_loaded(session, "r1")
    assert not is_loaded(with_dev(session, False, None), None)


def test_a_load_and_unload_in_one_request_cancel_out() -> None:
    session = with_dev(with_dev(NEW, True, "r1"), False, "r1")
    assert session.changes == ()


def test_an_unload_and_load_in_one_request_keep_the_earlier_load() -> None:
    before = with_dev(NEW, True, "r1")
    session = with_dev(with_dev(before, False, "r2"), True, "r2")
    assert is_loaded(session, "r2")
    assert is_loaded(session, "r3")


def test_an_unload_and_a_load_in_different_requests_both_apply() -> None:
    session = with_dev(with_dev(with_dev(NEW, True, "r1"), False, "r2"), True, "r3")
    assert [is_loaded(session, request) for request in ("r1", "r2", "r3", "r4")] == [True, True, False, True]


def test_a_change_that_no_request_needs_is_dropped() -> None:
    session = with_dev(with_dev(NEW, True, None), False, None)
    assert session.changes == ()
    assert with_dev(NEW, False, "r1").changes == ()


def test_a_toolkit_and_a_plugin_of_the_same_name_are_distinct() -> None:
    session = sessions.with_change(with_dev(NEW, True, None), "plugin", "dev", True, None)
    session = with_dev(session, False, None)
    assert sessions.loaded(session, "plugin", None) == {"dev"}
    assert sessions.loaded(session, "toolkit", None) == frozenset()


def test_requested_names_are_those_loaded_for_the_next_request() -> None:
    session = building.session("dev web", request_id="r1")
    assert sessions.requested(session, "toolkit") == {"dev", "web"}
    assert sessions.loaded(session, "toolkit", "r1") == frozenset()


def test_without_a_session_nothing_is_loaded() -> None:
    assert sessions.loaded(None, "toolkit", None) == frozenset()
    assert sessions.requested(None, "tool") == frozenset()


def test_a_change_keeps_the_sessions_loadout() -> None:
    assert with_dev(building.session(loadout="house"), True, "r1").loadout == "house"


def test_loaded_and_initial_toolkits_are_limited_to_the_allowed_order() -> None:
    allowed, initial = ("c", "b", "a"), ("a", "ghost")
    assert sessions.in_allowed_order(["b", "stranger", "c"], allowed, initial) == ("c", "b", "a")


def test_a_session_is_restored_from_its_state() -> None:
    session = sessions.Session(key="s", loadout="night", by_agent=True)
    for name in ("more", "rare"):
        session = sessions.with_change(session, "toolkit", name, True, "r1")

    restored = sessions.with_state(json.loads(sessions.state(session, "r2")))

    assert (restored.loadout, restored.by_agent) == ("night", True)
    assert sessions.load_order(restored, None) == (("toolkit", "more"), ("toolkit", "rare"))
