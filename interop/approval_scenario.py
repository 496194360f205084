"""The tests of runs that pause until people have approved a call, which the adapters of all four frameworks must pass.

A part imports them, and provides a fixture ``pausing``: it returns a player whose model makes one call, and whose
program then says yes, as its framework does it, whatever people said in Toolbelt.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import kit
import local_scenario
import pytest
import scenario

from toolbelt.adapters.connection import http

SUM = scenario.Call("desk__add", {"a": 777, "b": 3})
REFUND = scenario.Call(local_scenario.REFUND, {"order": 777, "reason": "broken"})


@dataclass
class Paused:
    """A run that waits, and what its program is shown of each call that waits."""

    questions: list[dict[str, Any]]


class Player(Protocol):
    """A program with an agent. ``pauses_again``: a run that is resumed too early pauses again."""

    pauses_again: bool

    def begin(self, session: str, call: scenario.Call) -> Paused | str:
        """Let the model make the call. Return the pause, or what the model then read."""

    def resume(self) -> Paused | str:
        """Say yes to the call, and go on."""


Pausing = Callable[..., Player]


def connection() -> http.Http:
    return http.Http(kit.ADDRESS, kit.AGENT, kit.TOKEN)


def waiting(tool: str, session: str) -> dict[str, Any]:
    """Return the only call of a session that waits for people."""
    items = kit.operator("GET", f"approvals?tool={tool}")["items"]
    [approval] = [item for item in items if item["session"].endswith(session)]
    return dict(approval)


def decide(approval: dict[str, Any], how: str, **body: Any) -> dict[str, Any]:
    """Decide about a call, as an operator does."""
    path = f"agents/{approval['agent']}/approvals/{approval['id']}/{how}"
    return dict(kit.operator("POST", path, body))


def state(approval: dict[str, Any]) -> str:
    path = f"agents/{approval['agent']}/approvals/{approval['id']}"
    return str(kit.operator("GET", path)["state"])


def test_a_run_pauses_until_people_have_approved_the_call_and_goes_on(pausing: Pausing) -> None:
    player, session = pausing(connection()), kit.session()
    paused = player.begin(session, SUM)
    assert isinstance(paused, Paused)
    approval = waiting(SUM.name, session)
    for question in paused.questions:
        assert (question["toolbelt_approval"], question["tool"]) == (approval["id"], SUM.name)
        assert "Large sums need a person." in question["message"]
    decide(approval, "approve", shown=approval["shown"])
    assert "sum:780" in scenario.normalized(str(player.resume()))
    assert state(approval) == "done"


def test_the_programs_own_yes_runs_nothing(pausing: Pausing) -> None:
    player, session = pausing(connection()), kit.session()
    assert isinstance(player.begin(session, SUM), Paused)
    approval = waiting(SUM.name, session)
    early = player.resume()
    assert isinstance(early, Paused) if player.pauses_again else "approval-pending" in str(early)
    assert state(approval) == "pending"
    if player.pauses_again:
        decide(approval, "approve", shown=approval["shown"])
        assert "sum:780" in scenario.normalized(str(player.resume()))


def test_what_people_rejected_does_not_run_and_the_model_reads_why(pausing: Pausing) -> None:
    player, session = pausing(connection()), kit.session()
    assert isinstance(player.begin(session, SUM), Paused)
    decide(waiting(SUM.name, session), "reject", note="Not without a ticket.")
    assert "Not without a ticket." in str(player.resume())


def test_the_model_reads_what_an_operator_changed(pausing: Pausing) -> None:
    player, session = pausing(connection()), kit.session()
    assert isinstance(player.begin(session, SUM), Paused)
    approval = waiting(SUM.name, session)
    edited = decide(approval, "edit", shown=approval["shown"], arguments={"b": 4})
    decide(approval, "approve", shown=edited["shown"])
    result = str(player.resume())
    assert "sum:781" in scenario.normalized(result)
    assert "b is 4 instead of 3" in result


def test_a_tool_of_the_program_waits_for_people_as_well(pausing: Pausing) -> None:
    shop, session = local_scenario.Shop(), kit.session()
    shop.play(lambda *_, **more: pausing_declares(pausing, shop, more))
    player = pausing(shop._http_connection(), local_tools=shop.tools, plugin=local_scenario.PLUGIN)
    assert isinstance(player.begin(session, REFUND), Paused)
    approval = waiting(REFUND.name, session)
    assert shop.ran == []
    decide(approval, "approve", shown=approval["shown"])
    assert "Order 777 is refunded." in str(player.resume())
    assert shop.ran == [("refund", 777, "broken")]
    assert state(approval) in ("spent", "done")


def pausing_declares(pausing: Pausing, shop: local_scenario.Shop, more: dict[str, Any]) -> scenario.Play:
    """Return a player that declares the program's tools."""

    def play(session: str, message: str, script: scenario.Script) -> scenario.Run:
        player = pausing(shop._http_connection(), **more)
        player.begin(session, scenario.ADD)
        return scenario.Run([], [], "Hello.")

    return play


@pytest.mark.parametrize("approvals", ["ask", ""])
def test_an_unknown_way_to_wait_is_an_error_that_names_the_ways(pausing: Pausing, approvals: str) -> None:
    with pytest.raises(ValueError, match='"tell" or "pause"'):
        pausing(connection(), approvals=approvals)
