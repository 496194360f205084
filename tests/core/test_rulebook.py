"""Compares the core with the rules as rulebook.py and rulebook_loading.py state them, as plainly as possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.core import rulebook, rulebook_loading
from tests.core.values import set_to, some_of
from toolbelt.core import agents, calls, scenarios

PLUGIN_OF = {"git__log": "git", "git__push": "git", "web__get": "web", "think__x": "Think"}
TOOLS = (*PLUGIN_OF, "own", "zed", "Docker_ps", "solo")
PLUGINS = ("git", "web", "Think")
KITS = ("ka", "kb", "kc")
MESSAGES = (None, "", "please fix it", "add code now", "fix code later")

closing_a_tool: st.SearchStrategy[rulebook.Entry] = st.sampled_from(
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
of_a_plugin: st.SearchStrategy[rulebook.Entry] = st.sampled_from(
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
    found = [(name, draw(some_options)) for name in names]
    return [name if options is None else {"tool": name, "options": options} for name, options in found]


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
    }


@st.composite
def belts(draw: st.DrawFn) -> rulebook.Entry:
    return {
        "plugins": [{"name": name, **draw(of_a_plugin)} for name in PLUGINS],
        "tools": [
            {
                "key": key,
                "default_on": draw(st.booleans()),
                **({"plugin": PLUGIN_OF[key]} if key in PLUGIN_OF else {}),
                **draw(closing_a_tool),
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
            }
            for name in draw(some_of("Lx", "ly", "minimal"))
        ],
        "agents": [draw(an_agent("ada")), draw(an_agent("bob"))],
        "sub_apps": [
            {"key": "room", "tool_names": list(draw(some_of("own", "git__log"))), "agents": ["ada"]}
        ],
    }


places = st.tuples(
    st.sampled_from(("ada", "ada", "ada", "bob")),
    st.sampled_from(("s", "s", "s", "s", "t", None)),
    st.sampled_from(("r1", "r1", "r2", None)),
)
acts = st.tuples(
    st.sampled_from(("load_tools", "load_tools", "unload_tools")),
    st.sampled_from((*KITS, *TOOLS, *PLUGINS, "nothing")),
)
questions = st.tuples(st.sampled_from((None, None, None, "task", "plan")), st.sampled_from(MESSAGES))


def answered(world: scenarios.CoreWorld, at: rulebook.At, act: str, name: str) -> Any:
    answer = world.call(*at, act, {"toolkit": name}, None)
    return answer.get("status", answer.get("code"))


def due(rules: rulebook_loading.Loading, at: rulebook.At, act: str, name: str) -> str:
    if not rules.has_meta_tools(at):
        return "unknown-tool"
    return rules.load(at, name) if act == "load_tools" else rules.unload(at, name)


def check(world: scenarios.CoreWorld, rules: rulebook.Rulebook, at: rulebook.At, question: Any) -> None:
    subagent, message = question
    found = world.surface(*at, message, subagent)
    everything = rules.everything(at, subagent)
    assert {key: (d.state, d.code) for key, d in found.resolution.all_decisions().items()} == everything
    assert bool(found.meta_tools) is rules.has_meta_tools(at, subagent)
    content = found.content()
    assert [{k: s[k] for k in s if k != "text"} for s in content["policy"]["sections"]] == rules.policy(
        at, subagent
    )
    directive = content["directive"]
    assert (directive and {k: directive[k] for k in ("active_tools", "tool_choice")}) == rules.directive(
        at, message, subagent
    )
    # What is listed is what may be called: nothing hidden answers, nothing shown is refused.
    listed = {tool.name for tool in found.tools}
    for key, (state, _) in everything.items():
        refused = calls.admit(found.resolution, key, {})
        assert (key in listed) is (state == "active") is not isinstance(refused, calls.Refusal)


@given(belts(), st.lists(st.tuples(places, st.one_of(acts, questions)), min_size=6, max_size=14))
def test_the_core_answers_as_the_rules_say(belt: rulebook.Entry, steps: Sequence[Any]) -> None:
    world, rules = scenarios.CoreWorld(), rulebook_loading.Loading(belt)
    world.load(belt, lenient=True)
    for at, what in steps:
        if what[0] in ("load_tools", "unload_tools"):
            assert answered(world, at, *what) == due(rules, at, *what)
        else:
            check(world, rules, at, what)
    for request_id in ("r1", "later"):
        check(world, rules, ("ada", "s", request_id), (None, "fix code"))
