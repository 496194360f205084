"""What was an agent, at any moment that the log knows?"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from tests.control.conftest import BELT
from toolbelt import models
from toolbelt.control import (
    actors,
    agents,
    belts,
    entries,
    past,
    queries,
    roles,
    switches,
    tools_config,
    undo,
)
from toolbelt.core import errors

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("stored")]


def entry_now(agent: str = "bob") -> dict[str, Any]:
    return entries.read("agent", agent)


def newest() -> int:
    return models.AuditEntry.objects.latest("id").pk


def test_every_state_that_there_was_comes_back(operator: actors.Actor) -> None:
    acts: list[Callable[[], object]] = [
        lambda: switches.flip(operator, "bob", "pushing", False),
        lambda: switches.override(operator, "bob", "clock", True),
        lambda: agents.equip(operator, "bob", "developer", confirm=True),
        lambda: agents.allow_toolkits(operator, "bob", ["reading", "pushing"], ["reading"], confirm=True),
        lambda: tools_config.put(operator, "bob", {"pushing": True, "git__push": False}, confirm=True),
        lambda: agents.edit(operator, "bob", {"role": "Reads", "protected": True}),
        lambda: undo.undo_act(operator, newest()),
        lambda: entries.change(
            operator, "agent", "bob", {"tools": ["clock"], "tools_config": None}, confirm=True
        ),
        lambda: entries.remove(operator, "agent", "bob"),
        lambda: entries.create(operator, "agent", {"key": "bob", "title": "Again"}),
        lambda: agents.equip(operator, "bob", "minimal", confirm=True),
    ]
    was = [(newest(), entry_now())]
    for act in acts:
        act()
        there = "bob" in queries.agent_keys()
        was.append((newest(), entry_now() if there else {}))
    for moment, entry in was:
        if entry:
            version = past.version("bob", moment)
            assert (version.entry, version.gaps, version.gone) == (entry, (), ())
        else:
            with pytest.raises(errors.NotFound, match="no agent at that time named 'bob'"):
                past.version("bob", moment)


def test_a_point_in_time_is_between_two_changes(operator: actors.Actor) -> None:
    switches.flip(operator, "bob", "pushing", False)
    between = timezone.now()
    switches.flip(operator, "bob", "pushing", True, confirm=True)
    version = past.version("bob", between)
    assert version.entry["tools_config"] == {"pushing": False, "reading": True}
    assert version.last is not None
    assert version.last.after is False
    assert past.version("bob", timezone.now()).entry == entry_now()


def test_before_it_was_made_there_was_none() -> None:
    with pytest.raises(errors.NotFound):
        past.version("bob", timezone.now() - dt.timedelta(days=1))
    with pytest.raises(errors.NotFound, match="no change named"):
        past.version("bob", 10**30)


def test_one_act_is_never_half_done(operator: actors.Actor) -> None:
    tools_config.change(operator, "bob", {"pushing": False, "verbose": True, "reading": None})
    inside = models.AuditEntry.objects.latest("id").pk - 1
    assert past.version("bob", inside).entry == entry_now()


def test_what_the_log_does_not_know_is_named(operator: actors.Actor) -> None:
    before = newest()
    switches.flip(operator, "bob", "pushing", False)
    models.ToolkitSwitch.objects.filter(toolkit__key="pushing").update(on=True)
    version = past.version("bob", before)
    assert version.gaps == ("pushing",)
    assert version.entry["tools_config"] == {"reading": True}


def test_what_is_not_there_any_more_is_named_and_left_out(operator: actors.Actor) -> None:
    switches.flip(operator, "bob", "verbose", False)
    then = newest()
    switches.flip(operator, "bob", "verbose", None)
    entries.remove(operator, "toolkit", "verbose")
    version = past.version("bob", then)
    assert version.gone == ("verbose",)
    assert version.entry["tools_config"] == {"reading": True, "verbose": False}
    assert version.agent.switches == {"reading": True}


def test_an_agent_that_came_before_its_log_is_known_as_far_back_as_that(operator: actors.Actor) -> None:
    models.Agent.objects.create(key="old", role="From the beginning")
    switches.flip(operator, "old", "reading", True)
    version = past.version("old", timezone.now() - dt.timedelta(days=9))
    assert (version.entry, version.last) == ({"key": "old", "role": "From the beginning"}, None)


def test_the_model_of_then_is_resolved_in_todays_catalog(operator: actors.Actor) -> None:
    then = newest()
    switches.flip(operator, "bob", "reading", False)
    entries.change(operator, "toolkit", "reading", {"policy": "New words."})
    stored = belts.export()
    version = past.version("bob", then)
    answer = past.surface_of(queries.access("bob").catalog, version.agent)
    assert [tool.name for tool in answer.tools] == ["clock", "git__log", "git__status"]
    assert "New words." in answer.policy.text
    assert belts.export() == stored
    assert [agent["key"] for agent in BELT["agents"]] == ["ada", "bob"]


def test_who_operates_an_agent_is_no_part_of_what_it_was(
    operator: actors.Actor, django_user_model: Any
) -> None:
    django_user_model.objects.create_user("anna")
    switches.flip(operator, "bob", "pushing", False)
    flipped = newest()
    roles.name_operators(operator, "bob", ["anna"])
    version = past.version("bob", flipped)
    assert version.entry == entry_now()
    assert not version.gaps
