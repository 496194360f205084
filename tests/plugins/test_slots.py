"""Tests that a plugin runs a limited number of calls at a time, and that waiting calls start in order."""

from toolbelt.runtime import call_slots


def test_a_call_waits_until_a_slot_is_free() -> None:
    slots = call_slots.CallSlots()
    first, second, third = (slots.enter("kb", 1) for _ in range(3))
    assert [ticket.done() for ticket in (first, second, third)] == [True, False, False]

    slots.leave("kb", first)
    assert [ticket.done() for ticket in (second, third)] == [True, False]

    slots.leave("kb", second)
    slots.leave("kb", third)
    assert slots.enter("kb", 1).done()


def test_an_abandoned_wait_does_not_occupy_a_slot() -> None:
    slots = call_slots.CallSlots()
    first, second, third = (slots.enter("kb", 1) for _ in range(3))

    slots.leave("kb", second)
    slots.leave("kb", first)

    assert third.done()
    assert not slots.enter("kb", 1).done()


def test_each_plugin_has_its_own_slots() -> None:
    slots = call_slots.CallSlots()
    slots.enter("kb", 1)

    assert slots.enter("mail", 1).done()
