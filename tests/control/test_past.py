"""Tests that the whole configuration is rebuilt from the audit log as it was after every change."""

from __future__ import annotations

import contextlib
import datetime as dt
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import fast_fixtures
from tests.control import sample_server
from tests.plugins.upstream import listing
from toolbelt import models
from toolbelt.control import past, undo, writing
from toolbelt.control.access import expirations, switches
from toolbelt.control.agents import agents
from toolbelt.control.catalog import blocking, entries, ordering, purging
from toolbelt.control.config import belts
from toolbelt.control.people import roles
from toolbelt.control.servers import decisions, plugins
from toolbelt.core import belts as core
from toolbelt.core import errors
from toolbelt.store import agents as stored_agents
from toolbelt.store import audit, clock, snapshots

START = dt.datetime(2031, 5, 4, 12, tzinfo=dt.UTC)
WRITE = writing.by("olive", via="screen").replace(confirm=True)
BELT: dict[str, Any] = {
    "categories": ["crm", "billing"],
    "plugins": [{"name": "git", "namespace": "git"}, {"name": "kb"}],
    "tools": [
        {"key": "git__log", "plugin": "git", "default_on": True},
        {"key": "git__push", "plugin": "git"},
        {"key": "search", "plugin": "kb"},
        {"key": "clock"},
    ],
    "toolkits": [
        {"key": "vcs", "members": ["git__log", {"tool": "git__push", "options": {"force": False}}]},
        {"key": "kit", "members": ["search"], "policy": "Look first."},
        {"key": "extra", "members": ["clock"]},
    ],
    "loadouts": [{"name": "desk", "plugins": ["kb"]}, {"name": "lab", "parent": "desk"}],
    "agents": [
        {"key": "ada", "tools_config": {"vcs": True}},
        {"key": "bob", "loadout": "desk", "allowed_toolkits": ["kit"], "budget": {"max_tools": 9}},
        {"key": "eve"},
    ],
    "sub_apps": [{"key": "room", "tool_names": ["clock"], "agents": ["bob"]}, {"key": "hall"}],
    "gate_rules": [
        {"key": "no_force", "effect": "deny", "tools": ["git__*"], "when": {"force": {"const": True}}}
    ],
}
AGENTS, TOOLS, TOOLKITS = (
    ("ada", "bob", "eve", "new"),
    ("git__log", "git__push", "search", "clock"),
    ("vcs", "kit", "extra"),
)

Dice = random.Random


def stored() -> dict[str, Any]:
    """Return what is stored now, as it is stored, without who set an end: that is the actor of its change."""
    listed = stored_agents.load_as_written()
    document = core.dump(
        core.Belt(catalog=snapshots.catalog_as_written(), agents={agent.key: agent for agent in listed})
    )
    return comparable(document)


def comparable(document: dict[str, Any]) -> dict[str, Any]:
    for agent in document.get("agents", ()):
        for key, end in agent.get("ends", {}).items():
            agent["ends"] = {
                **agent["ends"],
                key: {name: value for name, value in end.items() if name != "by"},
            }
    return document


def _end(dice: Dice) -> dt.datetime | None:
    return clock.now() + dt.timedelta(minutes=dice.randrange(1, 40)) if dice.random() < 0.5 else None


def _refresh(dice: Dice) -> None:
    """Let the server list some tools, the first of which may state something else each time."""
    tools = [listing.tool(f"t{number}", f"Text {number}.") for number in range(dice.randrange(1, 4))]
    sample_server.record(listing.tool("t0", f"Text {dice.randrange(3)}."), *tools[1:])


def _review(dice: Dice) -> None:
    shown = sample_server.shown_digests()
    if dice.random() < 0.7:
        decisions.approve(WRITE, shown, plugin="files")
    else:
        decisions.reject(WRITE, shown, plugin="files")


# What people, servers and the clock do; each is refused where it is impossible.
ACTS: dict[str, Callable[[Dice], object]] = {
    "switch": lambda dice: switches.flip(
        WRITE, dice.choice(AGENTS), dice.choice(TOOLKITS), dice.choice((True, False)), ends=_end(dice)
    ),
    "clear": lambda dice: switches.flip(WRITE, dice.choice(AGENTS), dice.choice(TOOLKITS), None),
    "override": lambda dice: switches.override(
        WRITE, dice.choice(AGENTS), dice.choice(TOOLS), dice.choice((True, False)), ends=_end(dice)
    ),
    "time passes": lambda dice: expirations.record_due(),
    "equip": lambda dice: agents.equip(WRITE, dice.choice(AGENTS), dice.choice(("desk", "lab", "full", ""))),
    "edit an agent": lambda dice: agents.edit(
        WRITE,
        dice.choice(AGENTS),
        dice.choice(
            (
                {"role": f"Role {dice.randrange(9)}", "protected": dice.choice((True, None))},
                {"allowed_toolkits": dice.sample(TOOLKITS, 2), "initial_toolkits": None},
                {"tools_config": {dice.choice(TOOLS): True, dice.choice(TOOLKITS): False}},
                {"tools": dice.sample(TOOLS, 2), "budget": {"max_tools": dice.randrange(5, 9)}},
                {"denied_risks": ["destructive"], "session_loadouts": ["lab"]},
                {"archived": dice.choice((True, None))},
            )
        ),
    ),
    "create": lambda dice: entries.create(
        WRITE,
        *dice.choice(
            (
                ("agent", {"key": "new", "tools_config": {"vcs": False}}),
                ("toolkit", {"key": "late", "members": ["clock"], "policy": "Later."}),
                ("loadout", {"name": "night", "parent": "lab", "disabled": ["git"]}),
                ("sub_app", {"key": "yard", "tool_names": ["search"], "agents": ["ada"]}),
                ("category", {"name": "science"}),
                ("gate_rule", {"key": "a_rule", "effect": "deny", "agents": ["ada"], "tools": ["clock"]}),
                ("tool", {"key": "lamp"}),
            )
        ),
    ),
    "remove": lambda dice: entries.remove(
        WRITE,
        *dice.choice(
            (
                *(("agent", key) for key in AGENTS),
                *(("toolkit", key) for key in (*TOOLKITS, "late")),
                *(("loadout", name) for name in ("night", "lab")),
                *(("sub_app", key) for key in ("hall", "yard", "room")),
                *(("category", name) for name in ("billing", "science")),
                *(("gate_rule", key) for key in ("no_force", "a_rule")),
            )
        ),
    ),
    "edit the catalog": lambda dice: entries.change(
        WRITE,
        *dice.choice(
            (
                ("toolkit", "kit", {"policy": f"Text {dice.randrange(9)}", "members": dice.sample(TOOLS, 2)}),
                ("loadout", "desk", {"plugins": dice.sample(("git", "kb"), 1), "denied_risks": ["unstated"]}),
                ("sub_app", "room", {"tool_names": dice.sample(TOOLS, 2), "agents": dice.sample(AGENTS, 1)}),
                ("tool", "clock", {"default_on": dice.choice((True, None)), "recorded_fields": ["zone"]}),
                ("tool", "clock", {"retired": dice.choice((True, None))}),
                ("plugin", "kb", {"title": f"KB {dice.randrange(9)}", "active": dice.choice((False, None))}),
                ("gate_rule", "no_force", {"observed": dice.choice((True, None)), "reason": "Never."}),
            )
        ),
    ),
    "block": lambda dice: blocking.set_blocked(
        WRITE,
        *dice.choice((("tool", "clock"), ("toolkit", "vcs"), ("plugin", "git"))),
        on=dice.choice((True, False)),
        ends=_end(dice),
    ),
    "reorder": lambda dice: ordering.set_order(
        WRITE,
        *dice.choice(
            (
                ("toolkit", dice.sample(TOOLKITS, 3)),
                ("agent", dice.sample(AGENTS[:3], 2)),
                ("loadout", ["lab", "desk"]),
                ("plugin", dice.sample(("git", "kb"), 2)),
            )
        ),
    ),
    "import": lambda dice: belts.import_(
        WRITE,
        {
            "tools": [{"key": f"tool_{dice.randrange(4)}", "title": f"Title {dice.randrange(9)}"}],
            "toolkits": [
                {"key": key, "members": ["clock"]} for key in dice.sample(("kit", "extra", "late"), 2)
            ],
            "agents": [
                {"key": "eve", "tools_config": {"vcs": dice.choice((True, False))}, "role": "Imported"}
            ],
        },
    ),
    "a server lists": _refresh,
    "review": _review,
    "a plugin fails": lambda dice: plugins.record_failure("kb", f"error {dice.randrange(3)}"),
    "a plugin is enabled": lambda dice: plugins.enable(WRITE, "kb"),
    "purge": lambda dice: purging.purge(WRITE, "tool", dice.choice(TOOLS)),
    "operators": lambda dice: roles.set_operators(
        WRITE, dice.choice(AGENTS[:3]), ["olive"] * dice.randrange(2)
    ),
    "undo": lambda dice: undo.undo(WRITE, _some_entry(dice)),
    "undo a batch": lambda dice: undo.undo_batch(WRITE, _some_entry(dice)),
}


def _some_entry(dice: Dice) -> int:
    return dice.choice(list(models.AuditEntry.objects.order_by("-id").values_list("id", flat=True)[:12]))


@pytest.fixture
def installed(db: None, django_user_model: Any) -> Iterator[None]:
    django_user_model.objects.create_user("olive")

    def store() -> None:
        belts.import_(WRITE, BELT)
        sample_server.add()

    with clock.stopped(START):
        fast_fixtures.stored("past", store)
    yield
    snapshots.forget()


def live(acts: list[tuple[str, int]]) -> list[tuple[int, dict[str, Any]]]:
    """Do these things one after the other; return the newest entry of the log, and what is stored, after each."""
    states = [(audit.newest_id(), stored())]
    for number, (name, seed) in enumerate(acts, 1):
        with clock.stopped(START + number * dt.timedelta(minutes=7)):
            with contextlib.suppress(errors.ToolbeltError):
                ACTS[name](random.Random(seed))  # noqa: S311
            states.append((audit.newest_id(), stored()))
    return states


@given(st.lists(st.tuples(st.sampled_from(sorted(ACTS)), st.integers(0, 9999)), min_size=5, max_size=40))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_the_log_rebuilds_the_whole_configuration_after_every_change(
    installed: None, acts: list[tuple[str, int]]
) -> None:
    with transaction.atomic():
        states = live(acts)
        walk = past.Past()
        for (entry, document), name in zip(
            reversed(states), [*reversed([name for name, _ in acts]), ""], strict=True
        ):
            walk.to(past.Place(entry, START))
            assert comparable(walk.history.document()) == document, f"after {name}"
            assert walk.history.gaps == ()
        assert not walk.history.is_uncertain("ada")
        transaction.set_rollback(True)


def test_every_act_happens_in_some_history(installed: None) -> None:
    done: set[str] = set()
    for name, act in ACTS.items():
        for seed in range(40):
            before = audit.newest_id()
            with contextlib.suppress(errors.ToolbeltError):
                act(random.Random(seed))  # noqa: S311
            if audit.newest_id() > before or name == "time passes":
                done.add(name)
                break
    assert done == set(ACTS)
