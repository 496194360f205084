"""Tests that the core agrees with the plain implementation of its rules in rulebook.py and rulebook_loading.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.core import rulebook, rulebook_loading
from tests.core.values import set_to, some_of
from toolbelt.core import admitting, agents, scenarios
from toolbelt.core.request_key import RequestKey

PLUGIN_OF = {"git__log": "git", "git__push": "git", "web__get": "web", "think__x": "Think"}
TOOLS = (*PLUGIN_OF, "own", "zed", "Docker_ps", "solo")
PLUGINS = ("git", "web", "Think")
KITS = ("ka", "kb", "kc")
MESSAGES = (None, "", "please fix it", "add code now", "fix code later")

tool_states: st.SearchStrategy[rulebook.Entry] = st.sampled_from(
    (
        *({},) * 30,
        {"blocked": True},
        {"retired": True},
        {"seen": False},
        {"approved": "sha256:0"},
        {"category": "git"},
        {"category": "Web"},
        {"policy": "Mind."},
    )
)
some_hints: st.SearchStrategy[rulebook.Entry] = st.sampled_from(
    (
        {},
        {"annotations": {"readOnlyHint": True}},
        {"annotations": {"destructiveHint": False}},
        {"annotations": {"destructiveHint": True, "readOnlyHint": False}},
        {
            "annotations": {"readOnlyHint": True},
            "approved_version": {"annotations": {"destructiveHint": True}},
        },
        {"annotations": {"destructiveHint": False}, "approved_version": {"description": "x"}},
    )
)
some_risks = st.sampled_from(
    ([], [], [], [], ["writes"], ["destructive", "unstated"], ["unstated", "writes", "destructive"])
)
plugin_states: st.SearchStrategy[rulebook.Entry] = st.sampled_from(
    (
        *({},) * 12,
        {"status": "failed"},
        {"active": False},
        {"blocked": True},
        {"trusted": True},
        {"category": "memory"},
    )
)
some_triggers = st.sampled_from(
    (
        [],
        [{"name": "t", "any": ["fix"]}],
        [
            {
                "name": "t",
                "all": [["fix", "add"], ["code"]],
                "none": ["later"],
                "tool_choice": "required",
                "focus": ["own"],
            },
            {"name": "u", "any": ["code"], "focus": ["zed", "web__get"]},
        ],
    )
)
some_options: st.SearchStrategy[Any] = st.sampled_from((None, None, None, {"n": 1}, {"n": 2}, {}))
some_budgets = st.none() | st.fixed_dictionaries(
    {"max_tools": st.integers(0, 5), "on_exceed": st.sampled_from((*agents.ON_EXCEED, "defer", "defer"))}
)


def uses(draw: st.DrawFn, names: Sequence[str]) -> list[Any]:
    options_of = [(name, draw(some_options)) for name in names]
    return [name if options is None else {"tool": name, "options": options} for name, options in options_of]


@st.composite
def an_agent(draw: st.DrawFn, key: str) -> rulebook.Entry:
    allowed = draw(st.permutations(KITS).flatmap(lambda kits: some_of(*kits)))
    initial = draw(some_of(*allowed)) if draw(st.booleans()) else ()
    return {
        "key": key,
        "kind": draw(st.sampled_from(("", "", "explore", "task", "plan", "general"))),
        "loadout": draw(st.sampled_from(("", "", "lx", "LY", "developer", "full", "research", "devops"))),
        "tools": uses(draw, draw(some_of(*TOOLS))[:2]),
        "tools_config": draw(set_to((*(None,) * 14, True, False), *KITS, *TOOLS)),
        "allowed_toolkits": list(allowed),
        "initial_toolkits": list(initial),
        "budget": draw(some_budgets),
        "denied_risks": draw(some_risks),
    }


@st.composite
def belts(draw: st.DrawFn) -> rulebook.Entry:
    return {
        "plugins": [{"name": name, **draw(plugin_states)} for name in PLUGINS],
        "tools": [
            {
                "key": key,
                "default_on": draw(st.booleans()),
                **({"plugin": PLUGIN_OF[key]} if key in PLUGIN_OF else {}),
                **draw(tool_states),
                **draw(some_hints),
            }
            for key in TOOLS
        ],
        "toolkits": [
            {
                "key": key,
                "members": uses(draw, draw(some_of(*TOOLS))),
                "policy": draw(st.sampled_from(("", "Use {active_tools}."))),
                "policy_when_off": draw(st.sampled_from(("", "Off."))),
                "tool_notes": draw(st.sampled_from(({}, {"own": "Note."}))),
                "triggers": draw(some_triggers),
                "blocked": draw(st.integers(0, 30)) == 0,
            }
            for key in KITS
        ],
        "loadouts": [
            {
                "name": name,
                "parent": draw(st.sampled_from(("", "full", "research", "lX", "LY", "minimal"))),
                "plugins": list(draw(some_of("GIT", "think"))),
                "categories": list(draw(some_of("Git", "web", "analysis"))),
                "discoverable": draw(
                    st.sampled_from(([], ["*"], ["docker*"], ["git", "ZED"], ["W*", "think__*"]))
                ),
                "disabled": draw(st.sampled_from(([], [], [], ["web"], ["Own"], ["THINK__X"]))),
                "denied_risks": draw(some_risks),
            }
            for name in draw(some_of("Lx", "ly", "minimal"))
        ],
        "agents": [draw(an_agent("ada")), draw(an_agent("bob"))],
        "sub_apps": [
            {"key": "room", "tool_names": list(draw(some_of("own", "git__log"))), "agents": ["ada"]}
        ],
    }


contexts = st.tuples(
    st.sampled_from(("ada", "ada", "ada", "bob")),
    st.sampled_from(("s", "s", "s", "s", "t", None)),
    st.sampled_from(("r1", "r1", "r2", None)),
)
calls_to_load = st.tuples(
    st.sampled_from(("load_tools", "load_tools", "unload_tools")),
    st.sampled_from((*KITS, *TOOLS, *PLUGINS, "nothing")),
)
surface_requests = st.tuples(st.sampled_from((None, None, None, "task", "plan")), st.sampled_from(MESSAGES))


def actual_answer(world: scenarios.CoreWorld, at: rulebook.At, tool: str, name: str) -> Any:
    answer = world.call(RequestKey(*at), tool, {"toolkit": name})
    return answer.get("status", answer.get("code"))


def expected_answer(rules: rulebook_loading.Loading, at: rulebook.At, tool: str, name: str) -> str:
    if not rules.answers_meta_tools(at):
        return "unknown-tool"
    return rules.load(at, name) if tool == "load_tools" else rules.unload(at, name)


def check(world: scenarios.CoreWorld, rules: rulebook_loading.Loading, at: rulebook.At, request: Any) -> None:
    subagent, message = request
    answer = world.surface(RequestKey(*at, subagent), message)
    decisions = rules.all_decisions(at, subagent)
    assert {key: (d.state, d.code) for key, d in answer.resolution.all_decisions().items()} == decisions
    assert bool(answer.meta_tools) is rules.has_meta_tools(at, subagent)
    content = answer.content()
    assert [{k: s[k] for k in s if k != "text"} for s in content["policy"]["sections"]] == rules.policy(
        at, subagent
    )
    directive = content["directive"]
    assert (directive and {k: directive[k] for k in ("active_tools", "tool_choice")}) == rules.directive(
        at, message, subagent
    )
    # The model can call exactly the tools that are listed.
    listed = {tool.name for tool in answer.tools}
    for key, (state, _) in decisions.items():
        refused = admitting.admit(answer.resolution, key, {})
        assert (key in listed) is (state == "active") is not isinstance(refused, admitting.Refusal)


@given(
    belts(),
    st.lists(st.tuples(contexts, st.one_of(calls_to_load, surface_requests)), min_size=6, max_size=14),
)
def test_the_core_agrees_with_the_rulebook(belt: rulebook.Entry, steps: Sequence[Any]) -> None:
    world, rules = scenarios.CoreWorld(), rulebook_loading.Loading(belt)
    world.load(belt, lenient=True)
    for at, step in steps:
        if step[0] in ("load_tools", "unload_tools"):
            assert actual_answer(world, at, *step) == expected_answer(rules, at, *step)
        else:
            check(world, rules, at, step)
    for request_id in ("r1", "later"):
        check(world, rules, ("ada", "s", request_id), (None, "fix code"))
