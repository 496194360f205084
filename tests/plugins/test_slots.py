"""Tests that a plugin runs a limited number of calls at a time, and that no agent takes all slots."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from toolbelt.plugins import slots as fair


def started(tickets: list[fair.Ticket]) -> int:
    return sum(ticket.done() and not ticket.cancelled() for ticket in tickets)


def test_a_call_waits_until_a_slot_is_free() -> None:
    slots = fair.Slots()
    first, second, third = (slots.enter("kb", "ada", 1) for _ in range(3))
    assert [ticket.done() for ticket in (first, second, third)] == [True, False, False]

    slots.leave(first)
    assert [ticket.done() for ticket in (second, third)] == [True, False]

    slots.leave(second)
    slots.leave(third)
    assert slots.enter("kb", "ada", 1).done()


def test_an_abandoned_wait_does_not_occupy_a_slot() -> None:
    slots = fair.Slots()
    first, second, third = (slots.enter("kb", "ada", 1) for _ in range(3))

    slots.leave(second)
    slots.leave(first)

    assert third.done()
    assert not slots.enter("kb", "ada", 1).done()


def test_each_plugin_has_its_own_slots() -> None:
    slots = fair.Slots()
    slots.enter("kb", "ada", 1)

    assert slots.enter("mail", "ada", 1).done()


def test_one_agent_has_at_most_half_and_others_start_at_once() -> None:
    slots = fair.Slots()
    of_ada = [slots.enter("kb", "ada", 16) for _ in range(50)]

    assert started(of_ada) == 8
    assert started([slots.enter("kb", "bob", 16) for _ in range(50)]) == 4
    assert started([slots.enter("kb", name, 16) for name in ("cleo", "dan", "eve")]) == 3


def test_a_free_slot_goes_to_the_agent_that_waited_longest_within_its_share() -> None:
    slots = fair.Slots()
    of_ada = [slots.enter("kb", "ada", 4) for _ in range(3)]
    of_bob = [slots.enter("kb", "bob", 4) for _ in range(2)]
    assert (started(of_ada), started(of_bob)) == (2, 1)

    slots.leave(of_ada[0])
    assert (started(of_ada[1:]), started(of_bob)) == (2, 1)

    slots.leave(of_ada[1])
    assert (started(of_ada[2:]), started(of_bob)) == (1, 2)


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.integers(0, 30)), max_size=60),
    st.integers(1, 9),
)
def test_no_slot_is_lost_and_no_agent_waits_alone(steps: list[tuple[str, bool, int]], limit: int) -> None:
    slots = fair.Slots()
    held: list[fair.Ticket] = []
    for agent, enters, position in steps:
        if enters or not held:
            held.append(slots.enter("kb", agent, limit))
        else:
            slots.leave(held.pop(position % len(held)))
        assert started(held) <= limit
        for name in "abc":
            own = [ticket for ticket in held if ticket.agent == name]
            may_start = fair.has_room(started(own), started(held), limit)
            assert not may_start or started(own) == len(own)
    for ticket in held:
        slots.leave(ticket)
    assert slots.waiting("kb") == 0
    assert slots.enter("kb", "z", limit).done()
