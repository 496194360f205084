"""Tests that an agent keeps what its recorded calls need, loses what they do not, and is denied nothing unasked."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core import values
from toolbelt.core import agents, catalog, least_privilege, replay, sessions, tool_versions
from toolbelt.core.rules import budgets, resolution

NOON = dt.datetime(2031, 5, 4, 12, tzinfo=dt.UTC)
TOOLS = tuple(
    catalog.Tool(key=f"{plugin}__{name}", plugin=plugin, category=category, tokens=100)
    for plugin, category, names in (
        ("git", "git", ("log", "push")),
        ("hub", "git", ("issue", "merge")),
        ("desk", "", ("refund", "note")),
        ("web", "", ("fetch", "search")),
    )
    for name in names
)


def stored(**parts: Any) -> catalog.Catalog:
    defaults: dict[str, Any] = {
        "plugins": [catalog.Plugin(name=name) for name in ("git", "hub", "desk", "web")],
        "tools": TOOLS,
        "toolkits": [
            catalog.Toolkit(key=name, members=tuple(catalog.Member(tool=tool) for tool in members))
            for name, members in (("desk", ("desk__refund", "desk__note")), ("web", ("web__fetch",)))
        ],
        "loadouts": [
            catalog.Loadout(
                name="coder", categories=("git",), discoverable=("web*",), disabled=("hub__merge",)
            )
        ],
    }
    return catalog.compile_(**{**defaults, **parts})


def facts(tool: str, *, among: catalog.Catalog | None = None, **fields: Any) -> replay.Facts:
    tool_ = (among or stored()).tools.get(tool)
    definition = "" if tool_ is None else tool_versions.short(tool_versions.version(tool_))
    defaults: dict[str, Any] = {
        "has_session": False,
        "state": "",
        "subagent": "",
        "dispatched": False,
        "outcome": "ok",
        "definition": definition,
    }
    return replay.Facts(agent="ada", tool=tool, **{**defaults, **fields})


def find(
    agent: agents.Agent,
    *calls: str | replay.Facts,
    among: catalog.Catalog | None = None,
    turn_off: bool = False,
    **evidence: Any,
) -> least_privilege.Smaller:
    made = [facts(call, among=among) if isinstance(call, str) else call for call in calls]
    return least_privilege.find(
        among or stored(),
        agent,
        least_privilege.Evidence(calls=made, **evidence),
        at=NOON,
        turn_off=turn_off,
    )


def ada(**fields: Any) -> agents.Agent:
    return agents.Agent(key="ada", **fields)


def test_a_switch_that_no_call_needs_is_cleared_and_its_toolkit_can_be_loaded() -> None:
    smaller = find(ada(switches={"desk": True, "web": True}), "desk__refund")

    assert dict(smaller.agent.switches) == {"desk": True}
    assert smaller.agent.allowed_toolkits == ("web",)
    assert [(step.kind, step.names) for step in smaller.steps] == [("load", ("web",))]


def test_unused_overrides_and_always_on_tools_are_cleared_and_used_ones_stay() -> None:
    agent = ada(
        overrides={"git__log": True, "git__push": True, "web__fetch": False},
        tools=(agents.AlwaysOn(tool="hub__issue"), agents.AlwaysOn(tool="hub__merge")),
    )

    smaller = find(agent, "git__log", "hub__issue")

    # What was off stays off.
    assert dict(smaller.agent.overrides) == {"git__log": True, "web__fetch": False}
    assert [always.tool for always in smaller.agent.tools] == ["hub__issue"]
    assert (smaller.before.tools, smaller.after.tools) == (4, 2)


def test_a_toolkit_that_sessions_begin_with_and_do_not_use_is_loaded_on_request() -> None:
    agent = ada(allowed_toolkits=("desk", "web"), initial_toolkits=("desk", "web"))

    smaller = find(agent, "desk__note")

    assert smaller.agent.initial_toolkits == ("desk",)
    assert smaller.agent.allowed_toolkits == ("desk", "web")


def test_its_own_loadout_has_what_was_used_and_every_denial_of_the_former() -> None:
    smaller = find(ada(loadout="coder"), "git__log")

    assert smaller.agent.loadout == "ada-used"
    assert smaller.loadout == catalog.Loadout(
        name="ada-used",
        description="What the calls used of coder.",
        plugins=("git",),
        discoverable=("web*",),
        disabled=("hub__merge",),
    )
    assert (smaller.before.tokens, smaller.after.tokens) == (300, 200)


def test_a_name_of_a_loadout_that_is_taken_is_not_used_again() -> None:
    taken = [*stored().loadouts.values(), catalog.Loadout(name="Ada-used")]

    assert find(ada(loadout="coder"), "git__log", among=stored(loadouts=taken)).agent.loadout == "ada-used-2"


def test_a_plugin_that_would_bring_more_than_the_loadout_is_not_included() -> None:
    # Only one tool of the plugin is on by default: no plugin or category has it alone.
    tools = [*TOOLS[1:], catalog.Tool(key="git__log", plugin="git", default_on=True, tokens=100)]
    spare = catalog.Tool(key="spare", default_on=True, tokens=100)
    among = stored(tools=[*tools, spare])

    smaller = find(ada(), "git__log", among=among)

    assert (smaller.loadout, smaller.steps) == (None, ())
    assert smaller.unused == {"spare": "together"}


def test_what_is_kept_new_or_unavailable_is_left_as_it_is() -> None:
    held = [
        tool if tool.key != "hub__merge" else catalog.Tool(key="hub__merge", seen=False) for tool in TOOLS
    ]
    agent = ada(
        overrides=dict.fromkeys(("git__log", "git__push", "hub__issue", "hub__merge", "web__fetch"), True),
        ends={"web__fetch": agents.End(at=NOON + dt.timedelta(days=1))},
    )

    smaller = find(
        agent, among=stored(tools=held), keep=["git*"], new=frozenset({"hub__issue"}), turn_off=True
    )

    assert smaller.agent == agent
    assert smaller.unused == {
        "git__log": "kept",
        "git__push": "kept",
        "hub__issue": "new",
        "web__fetch": "ends",
    }


def test_a_pattern_keeps_toolkits_and_plugins_by_their_names() -> None:
    agent = ada(switches={"web": True}, overrides={"git__log": True, "hub__issue": True})

    smaller = find(agent, keep=["web", "HUB"])

    assert dict(smaller.agent.switches) == {"web": True}
    assert dict(smaller.agent.overrides) == {"hub__issue": True}


def test_resources_are_not_cleared_because_reading_them_is_not_recorded() -> None:
    tools = [*TOOLS, catalog.Tool(key="git__readme", kind="resource", plugin="git")]
    agent = ada(overrides={"git__readme": True, "git__log": True})

    assert dict(find(agent, among=stored(tools=tools)).agent.overrides) == {"git__readme": True}


def test_without_being_asked_nothing_is_denied_and_when_asked_only_what_was_not_called() -> None:
    agent = ada(switches={"desk": True})

    assert find(agent, "desk__refund").agent == agent
    assert find(agent, "desk__refund").unused == {"desk__note": "together"}
    turned_off = find(agent, "desk__refund", turn_off=True)
    assert dict(turned_off.agent.overrides) == {"desk__note": False}
    assert [step.kind for step in turned_off.steps] == ["off"]


def test_a_step_that_would_raise_the_tokens_of_a_deferring_budget_is_not_taken() -> None:
    # The cheap tool that nobody called takes the place of the expensive one, which would come back.
    tools = [
        catalog.Tool(key="cheap", tokens=10),
        catalog.Tool(key="dear", default_on=True, tokens=1000),
        catalog.Tool(key="used", tokens=10),
    ]
    agent = ada(overrides={"cheap": True, "used": True}, budget=agents.Budget(max_tools=2, on_exceed="defer"))
    among = stored(tools=tools, toolkits=[])

    smaller = find(agent, "used", among=among, keep=["dear"])

    assert smaller.agent == agent
    # With the expensive one turned off as well, there is nothing to come back.
    both = find(agent, "used", among=among, turn_off=True)
    assert dict(both.agent.overrides) == {"dear": False, "used": True}


def test_a_toolkit_of_which_the_list_would_cost_more_than_it_saves_stays_on() -> None:
    # Without anything else to load, the agent would need the tools that load tools.
    cheap = [catalog.Tool(key="web__fetch", tokens=1)]
    agent = ada(switches={"web": True})

    assert find(agent, among=stored(tools=cheap, count_tokens=len)).agent == agent
    assert not find(agent, among=stored(tools=cheap)).agent.switches


def test_calls_of_sessions_and_subagents_count() -> None:
    agent = ada(loadout="coder", allowed_toolkits=("desk",), subagent_kinds=("plan",))
    state = sessions.state(sessions.with_change(sessions.NEW, "toolkit", "desk", True, None), None)
    calls = [
        facts("desk__note", has_session=True, state=state),
        facts("load_tools", has_session=True, detail="desk loaded"),
        facts("hub__issue", subagent="plan"),
    ]

    smaller = find(agent, *calls, turn_off=True)

    assert smaller.agent.allowed_toolkits == ("desk",)
    judges = [
        replay.Judge(among, {"ada": one}, agents.KIND_LOADOUTS, NOON)
        for among, one in ((stored(), agent), (_with_own(stored(), smaller), smaller.agent))
    ]
    assert [judge.verdict(call).kind for judge in judges[1:] for call in calls] == [
        judges[0].verdict(call).kind for call in calls
    ]


def test_a_call_whose_facts_are_not_recorded_keeps_its_tool() -> None:
    agent = ada(overrides={"git__log": True, "git__push": True})

    smaller = find(agent, facts("git__log", state=None))

    assert dict(smaller.agent.overrides) == {"git__log": True}


def _with_own(among: catalog.Catalog, smaller: least_privilege.Smaller) -> catalog.Catalog:
    if smaller.loadout is None:
        return among
    return catalog.replace(among, loadouts=[*among.loadouts.values(), smaller.loadout])


@st.composite
def some_calls(draw: st.DrawFn) -> list[replay.Facts]:
    calls = []
    for tool in draw(values.some_of(*values.TOOLS, "load_tools", values.GHOST)):
        has_session = draw(st.booleans())
        state = sessions.state(values.session_of(draw(values.some_changes)), None) if has_session else ""
        calls.append(
            facts(
                tool,
                among=stored(tools=[catalog.Tool(key=key) for key in values.TOOLS]),
                has_session=has_session,
                state=state if state and json.loads(state) else "",
                subagent=draw(st.sampled_from(("", "", "plan"))),
                detail="one loaded" if tool == "load_tools" else "",
            )
        )
    return calls


@pytest.mark.slow
@given(values.catalogs(), values.some_agents, some_calls(), st.booleans())
def test_whatever_is_configured_calls_still_run_and_nothing_more_is_reached_or_denied(
    parts: values.Parts, agent: agents.Agent, calls: list[replay.Facts], turn_off: bool
) -> None:
    among = catalog.compile_(**parts, count_tokens=lambda text: len(text) // 500)
    calls = [
        call._replace(definition=tool_versions.short(tool_versions.version(among.tools[call.tool])))
        if call.tool in among.tools
        else call
        for call in calls
    ]
    evidence = least_privilege.Evidence(calls=calls)

    smaller = least_privilege.find(among, agent, evidence, at=NOON, turn_off=turn_off)

    then = _with_own(among, smaller)
    today = replay.Judge(among, {"ada": agent}, agents.KIND_LOADOUTS, NOON)
    changed = replay.Judge(then, {"ada": smaller.agent}, agents.KIND_LOADOUTS, NOON)
    for call in calls:
        if today.verdict(call).kind == "runs":
            assert changed.verdict(call).kind == "runs"
    before, after = (
        budgets.resolve(resolution.Snapshot(catalog=stored_, agent=one, session=sessions.NEW))
        for stored_, one in ((among, agent), (then, smaller.agent))
    )
    assert after.tools | after.on_request <= before.tools | before.on_request
    assert after.spent.tokens <= before.spent.tokens
    denied, denied_before = (
        {key for key in among.tools if resolved.context.denies(key)} for resolved in (after, before)
    )
    assert denied >= denied_before
    if not turn_off:
        # Where an override had lifted the denial of a risk, that denies again.
        assert denied - denied_before <= agent.overrides.keys() - smaller.agent.overrides.keys()
    again = least_privilege.find(then, smaller.agent, evidence, at=NOON, turn_off=turn_off)
    assert again.after.tokens == smaller.after.tokens
