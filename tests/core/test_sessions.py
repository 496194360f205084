"""Sessions: which request a load counts from."""

from __future__ import annotations

from tests.core import building
from toolbelt.core import sessions

NEW = sessions.Session(key="s")


def held(session: sessions.Session, request_id: str | None) -> bool:
    return "dev" in sessions.loaded(session, "toolkit", request_id)


def turned(session: sessions.Session, on: bool, request_id: str | None) -> sessions.Session:
    return sessions.with_change(session, "toolkit", "dev", on, request_id)


def test_a_load_counts_for_every_request_but_its_own() -> None:
    session = turned(NEW, True, "r1")
    assert [held(session, request) for request in ("r1", "r2", "r0", None)] == [False, True, True, True]


def test_an_unload_counts_for_every_request_but_its_own() -> None:
    session = turned(turned(NEW, True, "r1"), False, "r2")
    assert [held(session, request) for request in ("r1", "r2", "r3", None)] == [False, True, False, False]


def test_a_change_without_a_request_counts_at_the_next_question() -> None:
    session = turned(NEW, True, None)
    assert held(session, None)
    assert held(session, "r1")
    assert not held(turned(session, False, None), None)


def test_a_load_and_an_unload_in_one_request_leave_nothing() -> None:
    session = turned(turned(NEW, True, "r1"), False, "r1")
    assert session.changes == ()


def test_an_unload_and_a_load_in_one_request_leave_what_was() -> None:
    before = turned(NEW, True, "r1")
    session = turned(turned(before, False, "r2"), True, "r2")
    assert held(session, "r2")
    assert held(session, "r3")


def test_an_unload_and_a_load_in_a_later_request_are_two_changes() -> None:
    session = turned(turned(turned(NEW, True, "r1"), False, "r2"), True, "r3")
    assert [held(session, request) for request in ("r1", "r2", "r3", "r4")] == [True, True, False, True]


def test_a_name_that_is_off_for_every_request_is_not_kept() -> None:
    session = turned(turned(NEW, True, None), False, None)
    assert session.changes == ()
    assert turned(NEW, False, "r1").changes == ()


def test_toolkits_plugins_and_tools_of_one_name_are_apart() -> None:
    session = sessions.with_change(turned(NEW, True, None), "plugin", "dev", True, None)
    session = turned(session, False, None)
    assert sessions.loaded(session, "plugin", None) == {"dev"}
    assert sessions.loaded(session, "toolkit", None) == frozenset()


def test_what_was_asked_for_is_what_the_next_request_will_have() -> None:
    session = building.session("dev web", request_id="r1")
    assert sessions.requested(session, "toolkit") == {"dev", "web"}
    assert sessions.loaded(session, "toolkit", "r1") == frozenset()


def test_without_a_session_nothing_is_loaded() -> None:
    assert sessions.loaded(None, "toolkit", None) == frozenset()
    assert sessions.requested(None, "tool") == frozenset()


def test_a_change_keeps_the_loadout_that_the_session_is_equipped_with() -> None:
    assert turned(building.session(loadout="house"), True, "r1").loadout == "house"


def test_what_counts_is_cut_to_what_is_allowed_in_the_allowed_order() -> None:
    allowed, initial = ("c", "b", "a"), ("a", "ghost")
    assert sessions.in_allowed_order(["b", "stranger", "c"], allowed, initial) == ("c", "b", "a")
