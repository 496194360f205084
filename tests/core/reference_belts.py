"""Random belts and steps on which the core and the reference are compared.

There are few names, so that they often coincide. What denies a tool to all agents is rare, because it hides everything
else.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from random import Random
from typing import Any

from hypothesis import strategies as st

from tests.core.values import set_to, some_of
from toolbelt.core import agents, tool_versions
from toolbelt.core import belts as core_belts

Document = dict[str, Any]
# The context of a request: agent, session, request ID.
At = tuple[str, str | None, str | None]
# What is done in it, and with what.
Step = tuple[At, tuple[str, Any]]

PLUGIN_OF = {"git__log": "git", "git__push": "git", "web__get": "web", "think__x": "Think"}
TOOLS = (*PLUGIN_OF, "own", "zed", "Docker_ps", "solo")
PLUGINS = ("git", "web", "Think")
KITS = ("ka", "kb", "kc")
MESSAGES = (None, "", "please fix it", "add code now", "fix code later")
TIMES = [datetime(2031, 5, 4, hour, tzinfo=UTC) for hour in (12, 14, 16)]

tool_states: st.SearchStrategy[Document] = st.sampled_from(
    (
        *({},) * 30,
        {"blocked": True},
        {"blocked": True, "block_ends": "2031-05-04T14:00:00+00:00"},
        {"retired": True},
        {"seen": False},
        {"approved": "sha256:0"},
        {"kind": "prompt", "input_schema": {}},
        {"approved": "is"},
        {"approved": "rejected"},
        {"category": "git"},
        {"category": "Web"},
        {"policy": "Mind."},
    )
)
some_hints: st.SearchStrategy[Document] = st.sampled_from(
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
plugin_states: st.SearchStrategy[Document] = st.sampled_from(
    (
        *({},) * 12,
        {"status": "failed"},
        {"active": False},
        {"blocked": True},
        {"trusted": True},
        {"category": "memory"},
        {"in_code": True, "not_running": ["git__log", "web__get"]},
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
    {"on_exceed": st.sampled_from((*agents.ON_EXCEED, "defer", "defer"))},
    optional={"max_tools": st.integers(0, 5), "max_tokens": st.integers(0, 600)},
)
some_ends = st.fixed_dictionaries(
    {"at": st.sampled_from(TIMES).map(datetime.isoformat)}, optional={"then": st.booleans()}
)
some_schemas: st.SearchStrategy[Document] = st.sampled_from(
    (
        {},
        {},
        {"input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}},
        {"input_schema": {"type": "object", "properties": {"n": {"type": "strin"}}}},
    )
)
some_arguments: st.SearchStrategy[Any] = st.sampled_from(({}, {"n": 1}, {"n": "1"}, {"m": 1}, []))


def uses(draw: st.DrawFn, names: Sequence[str]) -> list[Any]:
    options_of = [(name, draw(some_options)) for name in names]
    return [name if options is None else {"tool": name, "options": options} for name, options in options_of]


@st.composite
def an_agent(draw: st.DrawFn, key: str) -> Document:
    allowed = draw(st.permutations(KITS).flatmap(lambda kits: some_of(*kits)))
    initial = draw(some_of(*allowed)) if draw(st.booleans()) else ()
    config = draw(set_to((*(None,) * 14, True, False), *KITS, *TOOLS))
    return {
        "key": key,
        "kind": draw(st.sampled_from(("", "", "explore", "task", "plan", "general"))),
        "loadout": draw(st.sampled_from(("", "", "lx", "LY", "developer", "full", "research", "devops"))),
        "tools": uses(draw, draw(some_of(*TOOLS))[:2]),
        "tools_config": config,
        "ends": {name: draw(some_ends) for name in config if draw(st.integers(0, 3)) == 0},
        "allowed_toolkits": list(allowed),
        "initial_toolkits": list(initial),
        "budget": draw(some_budgets),
        "denied_risks": draw(some_risks),
    }


@st.composite
def belts(draw: st.DrawFn) -> Document:
    belt = {
        "plugins": [{"name": name, **draw(plugin_states)} for name in PLUGINS],
        "tools": [
            {
                "key": key,
                "default_on": draw(st.booleans()),
                **({"plugin": PLUGIN_OF[key]} if key in PLUGIN_OF else {}),
                **draw(some_hints),
                **draw(some_schemas),
                **draw(tool_states),
            }
            for key in TOOLS
        ],
        "toolkits": [
            {
                "key": key,
                "description": draw(st.sampled_from(("", "For {active_tools}"))),
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
    versions = {
        key: tool_versions.version(tool)
        for key, tool in core_belts.load(belt, lenient=True).catalog.tools.items()
    }
    for entry in belt["tools"]:
        if entry.get("approved") in ("is", "rejected"):
            prefix = "rejected:" if entry["approved"] == "rejected" else ""
            entry["approved"] = prefix + versions[entry["key"]]
    return belt


@st.composite
def edits(draw: st.DrawFn) -> Document:
    """Return an operator's change of an agent, of toolkits or of a tool, taken from another belt."""
    other = draw(belts())
    section = draw(st.sampled_from(("agents", "agents", "toolkits", "loadouts")))
    name = "name" if section == "loadouts" else "key"
    return {
        section: [
            {name: entry[name], **{key: entry[key] for key in entry if key != name and draw(st.booleans())}}
            for entry in other[section]
            if draw(st.booleans())
        ]
    }


contexts = st.tuples(
    st.sampled_from(("ada", "ada", "ada", "bob")),
    st.sampled_from(("s", "s", "s", "s", "t", None)),
    st.sampled_from(("r1", "r1", "r2", None)),
)
surface_requests = st.tuples(st.sampled_from((None, None, None, "task", "plan")), st.sampled_from(MESSAGES))


some_names = st.sampled_from((*KITS, *TOOLS, *PLUGINS, "nothing"))
steps = st.tuples(
    contexts,
    st.one_of(
        st.tuples(st.just("load_tools"), some_names),
        st.tuples(st.just("load_tools"), st.sampled_from(KITS)),
        st.tuples(st.just("unload_tools"), some_names),
        st.tuples(st.just("last_again"), st.sampled_from(("load_tools", "unload_tools"))),
        st.tuples(st.just("call"), st.tuples(st.sampled_from((*TOOLS, "nothing")), some_arguments)),
        st.tuples(st.just("list_toolkits"), st.none()),
        st.tuples(st.just("equip"), st.sampled_from(("", "lx", "full", "minimal", "nothing"))),
        st.tuples(st.just("time"), st.sampled_from(TIMES)),
        st.tuples(st.just("edit"), edits()),
        st.tuples(st.just("surface"), surface_requests),
        st.tuples(st.just("surface"), surface_requests),
    ),
)


def recombined(
    pool: Sequence[tuple[Document, Sequence[Step]]], random: Random
) -> tuple[Document, list[Step]]:
    """Return another belt and steps, of which each part is that of a belt in the pool: this is fast.

    In every second belt, nothing is denied or unavailable, toolkits are allowed, and a budget defers, because loads and
    budgets rarely matter otherwise.
    """
    belt = {
        section: [random.choice(pool)[0][section][place] for place in range(len(entries))]
        for section, entries in pool[0][0].items()
        if section != "loadouts"
    }
    belt["loadouts"] = random.choice(pool)[0]["loadouts"]
    taken = [step for _ in range(3) for step in random.choice(pool)[1]]
    if random.random() < 0.5:
        kept = ("key", "plugin", "category", "default_on")
        belt["tools"] = [{key: tool[key] for key in kept if key in tool} for tool in belt["tools"]]
        belt["loadouts"] = [{**it, "denied_risks": [], "disabled": []} for it in belt["loadouts"]]
        belt["toolkits"] = [{**it, "blocked": False} for it in belt["toolkits"]]
        belt["plugins"] = [{"name": name} for name in PLUGINS]
        limits = (
            {"max_tools": random.randint(1, 5)}
            if random.random() < 0.6
            else {"max_tokens": random.randint(100, 700)}
        )
        belt["agents"] = [
            {
                **it,
                "denied_risks": [],
                "tools": [],
                "loadout": random.choice(("", "", it["loadout"])),
                "allowed_toolkits": random.sample(KITS, 3),
                "initial_toolkits": random.sample(KITS, random.randint(0, 2)),
                "budget": {**limits, "on_exceed": "defer"},
            }
            for it in belt["agents"]
        ]
        loads = [
            (("ada", "s", f"r{place}"), ("load_tools", random.choice(KITS + TOOLS))) for place in range(4)
        ]
        shown = [(("ada", "s", f"r{place}"), ("surface", (None, None))) for place in range(1, 5)]
        between = zip(loads, shown, strict=True)
        taken = [step for pair in between for step in pair] + random.sample(taken, min(len(taken), 6))
        return belt, taken
    return belt, random.sample(taken, min(len(taken), 14))
