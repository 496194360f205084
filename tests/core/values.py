"""Arbitrary values of the core, valid or not, for property tests: unknown names, cycles, conflicts and so on.

There are few names, so that they often coincide; some do not exist, some belong to several things. Values that deny a
tool to all agents are rare, because they would hide all other effects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from toolbelt.core import agents, catalog, sessions
from toolbelt.core.rules import resolution

Parts = dict[str, Any]

TOOLS = ("a", "b", "p__c", "p__d", "q__e", "q")
PLUGINS = ("p", "q")
KITS = ("one", "two", "three")
PROFILES = ("x", "y", "Minimal")
GHOST = "ghost"
REQUESTS = (None, "r1", "r2", "r3")
MESSAGES = (None, "", "please fix it", "go")


def some_of(*names: str) -> st.SearchStrategy[tuple[str, ...]]:
    """Return a random subset of the names."""
    numbers = st.integers(0, 2 ** len(names) - 1)
    return numbers.map(lambda number: tuple(name for place, name in enumerate(names) if number >> place & 1))


def set_to(values: Sequence[Any], *names: str) -> st.SearchStrategy[dict[str, Any]]:
    """Return a mapping of each name to one of the values, without those that are None."""
    drawn = st.tuples(*(st.sampled_from(values) for _ in names))
    return drawn.map(
        lambda chosen: {name: value for name, value in zip(names, chosen, strict=True) if value is not None}
    )


a_profile = st.sampled_from(("", *PROFILES, "X", "full", GHOST))
a_category = st.sampled_from(("", "git", "Git", "web", "nonsense"))
some_options = st.sampled_from((None, None, {}, {"n": 1}, {"n": 2}))
some_triggers = st.sampled_from(
    (
        (),
        (catalog.Trigger(name="t", any=("fix",)),),
        (catalog.Trigger(name="t", any=("(", "go"), none=("it",), tool_choice="required"),),
        (
            catalog.Trigger(name="t"),
            catalog.Trigger(name="u", all=(("fix",), ("it",)), focus=("b", GHOST, "a")),
        ),
        (catalog.Trigger(name="t", any=("fix",), focus=()), catalog.Trigger(name="u", any=("fix",))),
    )
)
tool_states: st.SearchStrategy[Parts] = st.sampled_from(
    (
        *({},) * 15,
        {"blocked": True},
        {"retired": True},
        {"seen": False},
        {"approved": "sha256:0"},
        {"input_schema": "{", "output_schema": "[]", "annotations": "null"},
    )
)
plugin_states: st.SearchStrategy[Parts] = st.sampled_from(
    (*({},) * 8, {"trusted": True}, {"active": False}, {"status": "failed"}, {"blocked": True})
)


@st.composite
def catalogs(draw: st.DrawFn) -> Parts:
    """Return the arguments from which a catalog is compiled."""
    return {
        "plugins": [
            catalog.Plugin(name=name, category=draw(a_category), **draw(plugin_states))
            for name in draw(some_of(*PLUGINS))
        ],
        "tools": [
            catalog.Tool(
                key=key,
                plugin=key.partition("__")[0] if "__" in key else "",
                category=draw(a_category),
                default_on=draw(st.booleans()),
                policy="Mind it.",
                tokens=draw(st.integers(0, 30)),
                **{
                    "annotations": draw(some_hints),
                    "approved_version": draw(some_approved),
                    **draw(tool_states),
                },
            )
            for key in TOOLS
        ],
        "toolkits": [_toolkit(draw, key) for key in KITS],
        "loadouts": [_loadout(draw, name) for name in draw(some_of(*PROFILES))],
        "sub_apps": [
            catalog.SubApp(key="room", tool_names=draw(some_of("a", "q", GHOST)), agents=("ada", GHOST))
        ],
    }


def _toolkit(draw: st.DrawFn, key: str) -> catalog.Toolkit:
    options = draw(some_options)
    return catalog.Toolkit(
        key=key,
        members=tuple(catalog.Member(tool=tool, options=options) for tool in draw(some_of(*TOOLS, GHOST))),
        policy=draw(st.sampled_from(("", "Use {active_tools}."))),
        policy_when_off=draw(st.sampled_from(("", "Off."))),
        tool_notes={"a": "Note.", GHOST: "Boo."},
        triggers=draw(some_triggers),
        blocked=draw(st.sampled_from((False,) * 19 + (True,))),
    )


def _loadout(draw: st.DrawFn, name: str) -> catalog.Loadout:
    return catalog.Loadout(
        name=name,
        parent=draw(a_profile),
        plugins=draw(some_of("p", "Q", GHOST)),
        categories=draw(some_of("git", "Web", "nonsense")),
        discoverable=draw(st.sampled_from(((), ("*",), ("p*", "Q"), ("a", ""), ("P", GHOST)))),
        disabled=draw(st.sampled_from(((), (), (), ("P",), ("b", GHOST)))),
        denied_risks=draw(some_risks),
    )


some_risks: st.SearchStrategy[tuple[catalog.DeniedRisk, ...]] = st.sampled_from(
    ((), (), (), ("writes",), ("destructive", "unstated"), catalog.DENIED_RISKS)
)
some_hints = st.sampled_from(
    ("", '{"readOnlyHint":true}', '{"destructiveHint":false}', '{"destructiveHint":true}')
)
some_approved = some_hints.map(lambda hints: f'{{"annotations":{hints}}}' if hints else "")
some_budgets = st.none() | st.builds(
    agents.Budget,
    max_tools=st.sampled_from((None, 0, 1, 2, 3)),
    max_tokens=st.sampled_from((None, None, 0, 20, 60)),
    on_exceed=st.sampled_from((*agents.ON_EXCEED, "defer")),
)
some_agents = st.builds(
    agents.Agent,
    key=st.just("ada"),
    kind=st.sampled_from(("", *agents.KINDS, GHOST)),
    loadout=a_profile,
    tools=set_to((*(None,) * 8, {}, {"n": 1}), *TOOLS, GHOST).map(
        lambda uses: tuple(agents.AlwaysOn(tool=tool, options=options) for tool, options in uses.items())
    ),
    switches=set_to((*(None,) * 4, True, False), *KITS, GHOST),
    overrides=set_to((*(None,) * 10, True, False), *TOOLS, GHOST),
    allowed_toolkits=st.permutations(KITS).flatmap(lambda kits: some_of(*kits, GHOST)),
    initial_toolkits=st.sampled_from(((), (), ("one",), ("three", "one"), ("two", GHOST))),
    budget=some_budgets,
    denied_risks=some_risks,
)
a_target = st.sampled_from(
    (
        *(("toolkit", name) for name in (*KITS, GHOST)),
        *(("plugin", name) for name in (*PLUGINS, GHOST)),
        *(("tool", name) for name in (*TOOLS, GHOST)),
    )
)
some_changes = st.lists(
    st.tuples(a_target, st.sampled_from((True, True, False)), st.sampled_from(REQUESTS)), max_size=8
)


def session_of(changes: Sequence[Any], loadout: str = "") -> sessions.Session:
    """Return a session with this history."""
    session = sessions.Session(key="s", loadout=loadout)
    for (kind, name), on, request_id in changes:
        session = sessions.with_change(session, kind, name, on, request_id)
    return session


@st.composite
def snapshots(draw: st.DrawFn) -> resolution.Snapshot:
    """Return the input of a request."""
    # Hypothesis varies the values that are drawn first the most.
    session = session_of(draw(some_changes), draw(st.sampled_from(("", "", "", *PROFILES, GHOST))))
    return resolution.Snapshot(
        session=draw(st.sampled_from((session, session, session, None))),
        agent=draw(some_agents),
        request_id=draw(st.sampled_from(REQUESTS)),
        subagent=draw(st.sampled_from((None, None, None, "", "plan", "general", GHOST))),
        catalog=catalog.compile_(**draw(catalogs())),
    )
