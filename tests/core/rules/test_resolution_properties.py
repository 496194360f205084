"""Properties that hold for every configuration, valid or not, even with unknown names, cycles and conflicts."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core import values
from toolbelt.core import (
    admitting,
    agents,
    catalog,
    conflicts,
    loading,
    rules,
    schema,
    sessions,
    surface,
    tool_versions,
)
from toolbelt.core.rules import budgets, reasons, resolution

pytestmark = pytest.mark.slow


def states(snapshot: resolution.Snapshot) -> dict[str, str]:
    return {key: decision.state for key, decision in budgets.resolve(snapshot).all_decisions().items()}


def content(snapshot: resolution.Snapshot, message: str | None = None) -> str:
    return schema.canonical(surface.build(snapshot, message).document())


@given(values.snapshots())
def test_a_denial_overrides_every_grant(snapshot: resolution.Snapshot) -> None:
    stored, ada = snapshot.catalog, snapshot.agent
    active = budgets.resolve(snapshot).active
    for toolkit in stored.toolkits.values():
        if ada.switches.get(toolkit.key) is False or toolkit.blocked:
            assert not {member.tool for member in toolkit.members} & active.keys()
    assert not {key for key, on in ada.overrides.items() if not on} & active.keys()
    for key in active:
        tool = stored.tools[key]
        plugin = stored.plugins.get(tool.plugin)
        assert tool.seen or (plugin is not None and plugin.trusted)
        assert not tool.blocked
        assert not tool.retired
        assert not tool_versions.is_changed(tool)
        assert plugin is None or not (plugin.blocked or not plugin.active or plugin.status == "failed")


@given(values.snapshots(), values.some_changes)
def test_loading_never_overrides_a_denial(snapshot: resolution.Snapshot, changes: Sequence[Any]) -> None:
    equipped = snapshot.session.loadout if snapshot.session else ""
    loaded = dataclasses.replace(snapshot, session=values.session_of(changes, equipped))
    closed = ("denied", "unavailable")
    before, after = states(snapshot), states(loaded)
    assert {k: s for k, s in before.items() if s in closed} == {k: s for k, s in after.items() if s in closed}


@given(values.snapshots())
def test_a_subagent_never_has_tools_that_its_agent_is_denied(snapshot: resolution.Snapshot) -> None:
    own = states(dataclasses.replace(snapshot, subagent=None))
    for kind in agents.KINDS:
        borrowed = states(dataclasses.replace(snapshot, subagent=kind))
        for key, state in own.items():
            assert state not in ("denied", "unavailable") or borrowed[key] == state


@given(values.snapshots())
def test_enumerated_tools_match_individual_decisions(snapshot: resolution.Snapshot) -> None:
    context = resolution.build_context(snapshot)
    decided = {key: resolution.decide(context, key) for key in sorted(snapshot.catalog.tools)}
    assert resolution.active(context) == {key: d for key, d in decided.items() if d.state == "active"}
    resolved = budgets.resolve(snapshot)
    offered = [d for d in resolved.all_decisions().values() if d.state == "discoverable"]
    assert list(resolved.discoverable()) == offered
    assert resolved.has_discoverable() is bool(offered)


@given(values.snapshots())
def test_a_decision_equals_the_first_answer_of_its_trace(snapshot: resolution.Snapshot) -> None:
    context = resolution.build_context(snapshot)
    for key in snapshot.catalog.tools:
        decision = resolution.decide(context, key)
        step = next(step for step in resolution.trace(context, key) if step.answer)
        assert (decision.rule_number, (decision.state, decision.code, decision.origin)) == (
            step.rule_number,
            step.answer,
        )
        assert reasons.format_line(decision)


def shuffled(draw: st.DrawFn, items: Sequence[Any]) -> list[Any]:
    return draw(st.permutations(list(items)))


def reordered_mapping(draw: st.DrawFn, mapping: Mapping[str, Any]) -> dict[str, Any]:
    return dict(shuffled(draw, list(mapping.items())))


@st.composite
def rearranged(draw: st.DrawFn) -> tuple[resolution.Snapshot, resolution.Snapshot]:
    """Return two equal snapshots that differ only in orders that must not matter."""
    parts, ada, changes = draw(values.catalogs()), draw(values.some_agents), draw(values.some_changes)
    other_parts = {
        **parts,
        "plugins": shuffled(draw, parts["plugins"]),
        "tools": shuffled(draw, parts["tools"]),
        "loadouts": [
            dataclasses.replace(
                loadout,
                plugins=tuple(shuffled(draw, loadout.plugins)),
                categories=tuple(shuffled(draw, loadout.categories)),
                discoverable=tuple(shuffled(draw, loadout.discoverable)),
                disabled=tuple(shuffled(draw, loadout.disabled)),
            )
            for loadout in shuffled(draw, parts["loadouts"])
        ],
    }
    other = dataclasses.replace(
        ada,
        switches=reordered_mapping(draw, ada.switches),
        overrides=reordered_mapping(draw, ada.overrides),
        tools=tuple(shuffled(draw, ada.tools)),
        initial_toolkits=tuple(shuffled(draw, ada.initial_toolkits)),
    )
    # The last change of a name decides, so only changes of different names may be reordered.
    by_name = {change[0]: change for change in changes}
    session, session_loadout = list(by_name.values()), draw(values.a_profile)
    # A deferring budget defers the oldest load first, so its order matters.
    reloaded = session if ada.budget and ada.budget.on_exceed == "defer" else shuffled(draw, session)
    request: dict[str, Any] = {
        "request_id": draw(st.sampled_from(values.REQUESTS)),
        "subagent": draw(st.sampled_from((None, "plan"))),
    }
    return (
        resolution.Snapshot(
            catalog=catalog.compile_(**parts),
            agent=ada,
            session=values.session_of(session, session_loadout),
            **request,
        ),
        resolution.Snapshot(
            catalog=catalog.compile_(**other_parts),
            agent=other,
            session=values.session_of(reloaded, session_loadout),
            **request,
        ),
    )


@given(rearranged(), st.sampled_from(values.MESSAGES))
def test_the_order_of_configuration_and_loads_does_not_matter(
    twice: tuple[resolution.Snapshot, resolution.Snapshot], message: str | None
) -> None:
    one, other = twice
    assert content(one, message) == content(other, message)
    decided, again = (budgets.resolve(snapshot).all_decisions() for snapshot in twice)
    for key, decision in decided.items():
        # Which of two matching patterns is named may depend on their order.
        assert decision[:4] == again[key][:4]
        assert decision.code in ("pattern", "loaded") or decision.origin == again[key].origin


@given(values.catalogs(), values.some_agents, st.data())
def test_the_order_of_toolkit_members_does_not_change_states(
    parts: values.Parts, ada: agents.Agent, data: st.DataObject
) -> None:
    kits = [
        dataclasses.replace(kit, members=tuple(data.draw(st.permutations(list(kit.members)))))
        for kit in parts["toolkits"]
    ]
    one = resolution.Snapshot(catalog=catalog.compile_(**parts), agent=ada)
    other = resolution.Snapshot(catalog=catalog.compile_(**{**parts, "toolkits": kits}), agent=ada)
    assert states(one) == states(other)
    assert surface.build(one, "fix it").directive == surface.build(other, "fix it").directive


@given(values.catalogs(), values.some_agents, values.some_changes, st.sampled_from(values.MESSAGES))
def test_a_surface_is_byte_identical_for_equal_inputs(
    parts: values.Parts, ada: agents.Agent, changes: Sequence[Any], message: str | None
) -> None:
    requests = [
        resolution.Snapshot(catalog=catalog.compile_(**parts), agent=one, session=values.session_of(changes))
        for one in (
            ada,
            dataclasses.replace(ada, loadout="full", overrides={}),
            dataclasses.replace(ada, switches={}),
        )
    ]
    fresh = [content(snapshot, message) for snapshot in requests]
    # The same catalog serves all agents, so a request of one must not affect the others.
    shared = [dataclasses.replace(snapshot, catalog=requests[0].catalog) for snapshot in requests]
    for _ in range(2):
        assert [content(snapshot, message) for snapshot in shared] == fresh


@given(values.snapshots(), st.sampled_from(values.MESSAGES))
def test_no_operation_raises_for_any_configuration(
    snapshot: resolution.Snapshot, message: str | None
) -> None:
    built = surface.build(snapshot, message)
    content(snapshot, message)
    conflicts.of_agent(snapshot.catalog, snapshot.agent)
    loading.list_toolkits(snapshot)
    for name in (*values.TOOLS, *values.KITS, *values.PLUGINS, values.GHOST, ""):
        loading.load(snapshot, name)
        loading.unload(snapshot, name)
        admitting.admit(built.resolution, name, {"x": 1})
    for tool, arguments in (
        ("search_tools", {"query": "use a tool"}),
        ("load_tools", {}),
        ("list_toolkits", {}),
    ):
        admitting.meta(built.resolution, snapshot, tool, arguments)


@given(values.snapshots())
def test_a_deferring_budget_is_met_or_leaves_only_tools_never_deferred(snapshot: resolution.Snapshot) -> None:
    resolved = budgets.resolve(snapshot)
    budget = snapshot.agent.budget
    unlimited = resolution.active(resolved.context)
    assert resolved.active.keys() | resolved.deferred.keys() == unlimited.keys()
    assert not resolved.active.keys() & resolved.deferred.keys()
    assert all(unlimited[key].code not in budgets.NEVER_DEFERRED for key in resolved.deferred)
    assert resolved.spent.tokens == sum(snapshot.catalog.tools[key].tokens for key in resolved.active)
    if budget is None or budget.on_exceed != "defer":
        assert resolved.deferred == {}
    elif resolved.spent.is_exceeded:
        assert all(decision.code in budgets.NEVER_DEFERRED for decision in resolved.active.values())


def replayed(changes: Sequence[Any], request_id: str | None) -> dict[Any, bool]:
    """Return what is on after every change that applies to this request, by the plainest form of the rule."""
    counting = (change for change in changes if change[2] is None or change[2] != request_id)
    return {target: on for target, on, _ in counting}


@given(values.some_changes)
def test_a_compacted_session_equals_a_replay_of_its_whole_history(changes: Sequence[Any]) -> None:
    session = values.session_of(changes)
    for request_id in (*values.REQUESTS, "another"):
        on = replayed(changes, request_id)
        for kind in ("toolkit", "plugin", "tool"):
            expected = {name for (of_kind, name), held in on.items() if of_kind == kind and held}
            assert sessions.loaded(session, kind, request_id) == expected


@given(values.snapshots(), st.sampled_from((*values.TOOLS, *values.KITS, *values.PLUGINS)))
def test_an_unload_reverts_a_load(snapshot: resolution.Snapshot, name: str) -> None:
    loaded = loading.load(snapshot, name)
    if loaded.session is None:
        return
    assert loaded.status == "loaded"
    after_load = dataclasses.replace(snapshot, session=loaded.session)
    assert loading.load(after_load, name).status == "already_loaded"
    after_unload = loading.unload(after_load, name)
    assert after_unload.status == "unloaded"
    later = dataclasses.replace(snapshot, request_id="later")
    restored = dataclasses.replace(later, session=after_unload.session)
    assert content(restored) == content(later)
    assert content(dataclasses.replace(restored, request_id=snapshot.request_id)) == content(snapshot)


@given(values.snapshots(), st.sampled_from((*values.TOOLS, *values.KITS, *values.PLUGINS)))
def test_a_load_applies_from_the_next_request_not_its_own(snapshot: resolution.Snapshot, name: str) -> None:
    within = dataclasses.replace(snapshot, request_id="own")
    loaded = loading.load(within, name)
    if loaded.session is not None:
        after_load = dataclasses.replace(within, session=loaded.session)
        assert content(after_load) == content(within)
        following = dataclasses.replace(after_load, request_id="next")
        assert list(loaded.loaded_toolkits) == loading.list_toolkits(following)["loaded_toolkits"]


@given(values.snapshots(), st.sampled_from((None, 0, 1, 2, 4)), st.sampled_from((None, 30, 80)))
def test_the_decision_without_one_override_is_that_of_resolving_without_it(
    snapshot: resolution.Snapshot, max_tools: int | None, max_tokens: int | None
) -> None:
    stored = dataclasses.replace(snapshot.catalog, count_tokens=len, derived={})
    budget = agents.Budget(max_tools=max_tools, max_tokens=max_tokens, on_exceed="defer")
    for limited in (snapshot.agent.budget, budget):
        ada = dataclasses.replace(snapshot.agent, budget=limited)
        now = dataclasses.replace(snapshot, catalog=stored, agent=ada)
        found = budgets.without_each_override(now)
        assert found.keys() == ada.overrides.keys() & stored.tools.keys()
        for tool, decision in found.items():
            others = {key: on for key, on in ada.overrides.items() if key != tool}
            alone = dataclasses.replace(now, agent=dataclasses.replace(ada, overrides=others))
            assert decision == budgets.resolve(alone).decision(tool)


@pytest.mark.parametrize("on_exceed", ["warn", "defer"])
def test_the_decisions_without_each_override_resolve_no_more_often_for_more_overrides(
    on_exceed: agents.OnExceed, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = catalog.compile_(tools=[catalog.Tool(key=f"t{n}", default_on=True) for n in range(60)])
    built: list[resolution.Snapshot] = []
    build_context = resolution.build_context

    def count(snapshot: resolution.Snapshot) -> rules.EvaluationContext:
        built.append(snapshot)
        return build_context(snapshot)

    monkeypatch.setattr(resolution, "build_context", count)
    counts = []
    for number in (2, 60):
        overrides = {f"t{n}": n % 2 == 0 for n in range(number)}
        ada = agents.Agent(
            key="ada", overrides=overrides, budget=agents.Budget(max_tools=9, on_exceed=on_exceed)
        )
        built.clear()
        budgets.without_each_override(resolution.Snapshot(catalog=stored, agent=ada))
        counts.append(len(built))
    assert counts[0] == counts[1]
