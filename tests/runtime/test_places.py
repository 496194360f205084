"""Does a plugin run as many calls at a time as it may, and does everyone else get their turn?"""

from toolbelt.runtime import places


def test_who_comes_later_waits_until_a_place_is_free() -> None:
    line = places.Places()
    first, second, third = (line.enter("kb", 1) for _ in range(3))
    assert [ticket.done() for ticket in (first, second, third)] == [True, False, False]

    line.leave("kb", first)
    assert [ticket.done() for ticket in (second, third)] == [True, False]

    line.leave("kb", second)
    line.leave("kb", third)
    assert line.enter("kb", 1).done()


def test_who_gives_up_while_waiting_leaves_no_gap() -> None:
    line = places.Places()
    first, second, third = (line.enter("kb", 1) for _ in range(3))

    line.leave("kb", second)
    line.leave("kb", first)

    assert third.done()
    assert not line.enter("kb", 1).done()


def test_each_plugin_has_places_of_its_own() -> None:
    line = places.Places()
    line.enter("kb", 1)

    assert line.enter("mail", 1).done()
