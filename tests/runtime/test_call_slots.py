"""A plugin runs a limited number of calls at a time, and waiting calls get their turn."""

from toolbelt.runtime import call_slots


def test_who_comes_later_waits_until_a_place_is_free() -> None:
    line = call_slots.CallSlots()
    first, second, third = (line.enter("kb", 1) for _ in range(3))
    assert [ticket.done() for ticket in (first, second, third)] == [True, False, False]

    line.leave("kb", first)
    assert [ticket.done() for ticket in (second, third)] == [True, False]

    line.leave("kb", second)
    line.leave("kb", third)
    assert line.enter("kb", 1).done()


def test_who_gives_up_while_waiting_leaves_no_gap() -> None:
    line = call_slots.CallSlots()
    first, second, third = (line.enter("kb", 1) for _ in range(3))

    line.leave("kb", second)
    line.leave("kb", first)

    assert third.done()
    assert not line.enter("kb", 1).done()


def test_each_plugin_has_places_of_its_own() -> None:
    line = call_slots.CallSlots()
    line.enter("kb", 1)

    assert line.enter("mail", 1).done()
