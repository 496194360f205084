"""Tests that a change is proved as everything was configured then, and that stepping back decides as from scratch."""

from __future__ import annotations

import datetime as dt
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection

from tests.control.conftest import BELT
from tests.factories import call as recorded
from toolbelt import conf, models
from toolbelt.control import past, past_replays, proofs, writing
from toolbelt.control.access import expirations, switches
from toolbelt.control.catalog import blocking, entries, ordering
from toolbelt.control.config import belts as stored_belts
from toolbelt.core import belts, errors, reach, replay, tool_versions
from toolbelt.store import audit, clock, recorded_facts, revisions, snapshots, token_counts

WRITE = writing.by("olive", via="screen").replace(confirm=True)
BEGIN = dt.timedelta(days=20)


@pytest.fixture(autouse=True)
def configured(db: None) -> None:
    with writing.at(clock.now() - BEGIN):
        stored_belts.import_(WRITE, BELT)


def made(agent: str, tool: str, **facts: Any) -> None:
    """Record a call as everything is configured at this moment."""
    stored = snapshots.catalog()
    version = tool_versions.version(stored.tools[tool]) if tool in stored.tools else ""
    defaults = {
        "state": "",
        "subagent": "",
        "dispatched": False,
        "revision": revisions.number(),
        "definition": tool_versions.short(version),
    }
    row = recorded(tool, agent=agent, **{**defaults, **facts})
    type(row).objects.filter(pk=row.pk).update(at=clock.now())


def then(act: Callable[[], object]) -> proofs.Proof:
    return proofs.prove(act, basis="then")


def flip(agent: str, key: str, on: bool | None) -> Callable[[], object]:
    return lambda: switches.flip(WRITE, agent, key, on)


def counts(proof: proofs.Proof) -> dict[tuple[str, str, str], int]:
    return {(row.agent, row.tool, row.after): row.calls for row in proof.rows}


def test_each_call_is_decided_as_everything_was_configured_then() -> None:
    made("bob", "git__log")
    switches.flip(WRITE, "bob", "reading", False)
    made("bob", "git__log", outcome="tool-denied")

    proof = then(lambda: blocking.set_blocked(WRITE, "tool", "git__log", True))

    # Today it is refused anyway.
    assert counts(proof) == {("bob", "git__log", "refused"): 1}
    assert proofs.prove(lambda: blocking.set_blocked(WRITE, "tool", "git__log", True)).is_nothing


def test_a_switch_is_set_and_lists_gain_and_lose_what_the_change_adds_and_removes() -> None:
    made("bob", "git__status")
    entries.change(WRITE, "toolkit", "reading", {"members": ["git__log", "git__push"]})
    made("bob", "git__push")

    # Then, it had another member, which the change does not touch.
    proof = then(lambda: entries.change(WRITE, "toolkit", "reading", {"members": ["git__log"]}))
    assert counts(proof) == {("bob", "git__push", "refused"): 1}
    proof = then(flip("bob", "reading", False))
    assert counts(proof) == {("bob", "git__status", "refused"): 1, ("bob", "git__push", "refused"): 1}


def test_calls_before_what_the_change_is_about_are_counted_apart() -> None:
    made("bob", "git__log")
    entries.create(WRITE, "toolkit", {"key": "later", "members": ["git__log"]})
    made("bob", "git__log")

    proof = then(lambda: blocking.set_blocked(WRITE, "toolkit", "later", True))

    assert counts(proof) == {("bob", "git__log", "refused"): 1}
    assert dict(proof.unproven) == {"not-there-yet": 1}
    # What the change creates was not there either, but would have been.
    rule = {"key": "no", "effect": "deny", "tools": ["git__log"]}
    proof = then(lambda: entries.create(WRITE, "gate_rule", rule))
    assert (counts(proof), dict(proof.unproven)) == ({("bob", "git__log", "refused"): 2}, {})


def test_calls_before_something_was_written_around_the_log_are_uncertain() -> None:
    made("bob", "git__log")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE toolbelt_agent SET loadout = 'minimal' WHERE key = 'bob'")
    switches.flip(WRITE, "ada", "reading", True)
    made("bob", "git__log")

    proof = then(flip("bob", "reading", False))

    assert dict(proof.unproven) == {"history-gap": 1}
    assert counts(proof) == {("bob", "git__log", "refused"): 1}


def test_calls_without_a_revision_cannot_be_placed() -> None:
    made("bob", "git__log", revision=None)

    assert dict(then(flip("bob", "reading", False)).unproven) == {"no-revision": 1}


def test_what_a_change_concerns_is_found_once_for_calls_without_a_revision(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, reach_of = list[reach.Reach](), past_replays._reach

    def reach_noted(*args: Any) -> reach.Reach:
        found.append(reach_of(*args))
        return found[-1]

    monkeypatch.setattr(past_replays, "_reach", reach_noted)
    for _ in range(3):
        made("bob", "git__log", revision=None)

    assert dict(then(flip("bob", "reading", False)).unproven) == {"no-revision": 3}
    assert len(found) == 1


def test_what_has_ended_counts_as_ended_before_it_is_recorded() -> None:
    start = clock.now() - dt.timedelta(days=2)
    with writing.at(start):
        switches.override(WRITE, "ada", "git__push", True, ends=start + dt.timedelta(minutes=1))
        made("ada", "git__push")
    with writing.at(start + dt.timedelta(minutes=2)):
        made("ada", "git__push", outcome="tool-not-active")
        expirations.record_due()

    proof = then(lambda: blocking.set_blocked(WRITE, "tool", "git__push", True))

    assert counts(proof) == {("ada", "git__push", "refused"): 1}


def test_a_removed_agent_and_a_new_one_are_decided_as_they_were() -> None:
    made("bob", "git__log")
    made("eve", "git__log")
    entries.create(WRITE, "agent", {"key": "eve", "tools_config": {"reading": True}})
    made("eve", "git__log")

    proof = then(lambda: entries.remove(WRITE, "agent", "eve"))

    assert counts(proof) == {("eve", "git__log", "refused"): 1}
    assert dict(proof.unproven) == {"history-gap": 1}


# The rest compares stepping with judging from scratch, over random histories.

TOOLS = ("git__status", "git__log", "git__push", "clock")
KITS = ("reading", "pushing", "verbose", "extra")


def random_act(dice: random.Random) -> Callable[[], object]:
    """Return a random change; some are refused."""
    agent, tool, kit = dice.choice(("ada", "bob")), dice.choice(TOOLS), dice.choice(KITS)
    on = dice.choice((True, False, None))
    some = dice.sample(TOOLS, dice.randrange(len(TOOLS)))
    rule = {"key": "r", "effect": dice.choice(("deny", "ask")), "tools": some or ["clock"]}
    return dice.choice(
        (
            lambda: switches.flip(WRITE, agent, kit, on),
            lambda: switches.flip(WRITE, agent, kit, on),
            lambda: switches.override(WRITE, agent, tool, on),
            lambda: switches.override(WRITE, agent, tool, True, ends=clock.now() + dt.timedelta(hours=1)),
            lambda: entries.change(WRITE, "agent", agent, {"loadout": dice.choice(("", "house", "minimal"))}),
            lambda: entries.change(WRITE, "agent", agent, {"allowed_toolkits": dice.sample(KITS, 2)}),
            lambda: entries.change(
                WRITE, "agent", agent, {"budget": dice.choice((None, {"max_tools": 1, "on_exceed": "defer"}))}
            ),
            lambda: entries.change(WRITE, "agent", agent, {"denied_risks": dice.choice(([], ["writes"]))}),
            lambda: entries.change(WRITE, "toolkit", kit, {"members": some}),
            lambda: blocking.set_blocked(WRITE, "tool", tool, dice.choice((True, False))),
            lambda: blocking.set_blocked(WRITE, "toolkit", kit, dice.choice((True, False))),
            lambda: entries.change(WRITE, "plugin", "git", {"active": dice.choice((True, False))}),
            lambda: entries.change(WRITE, "tool", tool, {"default_on": dice.choice((True, False))}),
            lambda: entries.change(WRITE, "tool", tool, {"description": f"Text {dice.random()}."}),
            lambda: entries.put(
                WRITE,
                "loadout",
                {"name": "house", "plugins": ["git"], "disabled": some[:1], "discoverable": ["g*"]},
            ),
            lambda: entries.create(WRITE, "toolkit", {"key": "extra", "members": some}),
            lambda: entries.remove(WRITE, "toolkit", "extra"),
            lambda: entries.put(WRITE, "gate_rule", rule),
            lambda: entries.remove(WRITE, "gate_rule", "r"),
            lambda: entries.put(WRITE, "sub_app", {"key": "app", "tool_names": some, "agents": [agent]}),
            lambda: entries.create(WRITE, "agent", {"key": "eve", "tools_config": {"reading": True}}),
            lambda: entries.remove(WRITE, "agent", "eve"),
            lambda: ordering.set_order(WRITE, "toolkit", dice.sample(KITS, 3)),
        )
    )


def a_life(dice: random.Random) -> None:
    """Change the configuration at random, while calls are made."""
    states = [
        '{"by_agent":false,"labels":[],"loaded":[["toolkit","verbose"]],"loadout":""}',
        '{"by_agent":false,"labels":[],"loaded":[["plugin","git"]],"loadout":"house"}',
    ]
    for number, state in enumerate(states):
        models.SessionState.objects.create(
            digest=f"d{number}", document=json.loads(state), used=clock.now().date()
        )
    moment = clock.now() - BEGIN + dt.timedelta(hours=1)
    for _ in range(40):
        moment += dt.timedelta(minutes=dice.randrange(1, 50))
        with writing.at(moment):
            try:
                random_act(dice)()
            except errors.ToolbeltError:
                continue
            finally:
                for _ in range(2):
                    state = dice.choice(("", "", "d0", "d1"))
                    made(
                        dice.choice(("ada", "bob", "eve")),
                        dice.choice((*TOOLS, "load_tools")),
                        state=state,
                        session="s" if state else "",
                        subagent=dice.choice(("", "", "plan")),
                        detail=dice.choice(("verbose loaded", "git loaded", None)),
                        outcome=dice.choice(("ok", "ok", "tool-denied")),
                    )
            if dice.random() < 0.2:
                expirations.record_due()


def from_scratch(
    changes: list[belts.LoggedChange], now: tuple[replay.Judge, replay.Judge]
) -> Iterator[tuple[int, Any]]:
    """Yield the id of each call, and its answer, with the configuration rebuilt and compiled for every single one."""
    reader = recorded_facts.Reader(recorded_facts.Window(clock.now() - BEGIN - dt.timedelta(days=1)))
    for call, revision in reader.by_revision():
        was = past.Past()
        was.to(past.Place(audit.last_by_revision()(revision or 0), call.at))
        document = was.history.document()
        base = _judge(document, call)
        if call.facts.agent not in base.agents:
            yield call.id, replay.Unproven("history-gap")
            continue
        yield call.id, replay.compare(base, _judge(_with(document, changes), call), call.facts)


def _judge(document: dict[str, Any], call: recorded_facts.Recorded) -> replay.Judge:
    belt = belts.load(document, lenient=True, count_tokens=token_counts.count)
    among = {key: agent.as_of(call.at) for key, agent in belt.agents.items()}
    return replay.Judge(belt.catalog.as_of(call.at), among, conf.KIND_LOADOUTS, call.at)


def _with(document: dict[str, Any], changes: list[belts.LoggedChange]) -> dict[str, Any]:
    """Return a belt with a change made to its entries."""
    changed = {section: [*items] for section, items in document.items()}
    for change in changes:
        kind = belts.KINDS[change.kind]  # type: ignore[index]
        items = changed.setdefault(kind.section, [])
        if change.action.endswith(".order"):
            order = belts.reordered([item[kind.named_by] for item in items], change)
            items.sort(key=lambda item: order.index(item[kind.named_by]))
            continue
        place = next((n for n, item in enumerate(items) if item[kind.named_by] == change.name), None)
        entry = belts.changed(change.kind, None if place is None else items[place], change)  # type: ignore[arg-type]
        if place is None:
            items.extend([] if entry is None else [entry])
        elif entry is None:
            del items[place]
        else:
            items[place] = entry
    return changed


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_stepping_back_decides_each_call_as_rebuilding_everything_for_it_does(seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - a history that is the same each time
    a_life(dice)
    tried = 0
    while tried < 3:
        act = random_act(dice)
        try:
            with writing.dry_run():
                today, newest = proofs.as_configured(), audit.newest_id()
                act()
                changed, changes = proofs.as_configured(), audit.logged_after(newest)
        except errors.ToolbeltError:
            continue
        if not changes:
            continue
        tried += 1
        reader = recorded_facts.Reader(recorded_facts.Window(clock.now() - BEGIN - dt.timedelta(days=1)))
        now = (today, changed)
        within = reach.between(
            today.catalog, changed.catalog, today.agents, changed.agents, conf.KIND_LOADOUTS
        )
        for group in reader.grouped(clock.now()):
            if isinstance(replay.compare(today, changed, group.facts), replay.Difference):
                assert within.covers(group.facts.agent, group.facts.tool)

        stepped = {call.id: answer for call, answer in past_replays.replays(reader, changes, now)}

        for call, expected in from_scratch(changes, now):
            answer = stepped.get(call)
            if isinstance(answer, replay.Unproven) and answer.reason == "not-there-yet":
                assert expected is None
            elif call in stepped:
                assert answer == expected, (seed, changes, call)
            else:
                # What is out of reach goes as before.
                assert not isinstance(expected, replay.Difference), (seed, changes, call)
