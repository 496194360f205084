"""Strategies for valid belts, for property tests.

``documents()`` generates valid documents: plugins, tools, toolkits, loadouts that inherit, agents with every field,
sub-apps. ``belts()`` generates the same, loaded. A tool has the same options wherever it is used, so that sources never
conflict.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from toolbelt.core import agents, catalog, keys, loadouts, secret_texts
from toolbelt.core import belts as belts_room
from toolbelt.core.belts import secret_options

Document = dict[str, Any]

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
OBJECT = st.dictionaries(TEXT, JSON, max_size=3)
SCHEMA = st.fixed_dictionaries(
    {"type": st.just("object")},
    optional={
        "properties": st.dictionaries(
            TEXT,
            st.sampled_from([{"type": "string"}, {"type": "integer", "minimum": 0}, {}, True]),
            max_size=3,
        ),
        "required": st.lists(TEXT, max_size=2, unique=True),
        "additionalProperties": st.booleans(),
    },
)
PATTERN = st.sampled_from(["deploy", "git(hub)?", "[0-9]+ files?", "部署", "a|b", "naïve.*"])
ABOUT = {"title": TEXT, "description": TEXT}

_LETTERS = "abcXYZ_"
_NAME = st.text(_LETTERS.replace("_", "") + "09.-", min_size=1, max_size=6).filter(
    lambda name: name.strip(".")
)
_BARE = st.builds(str.__add__, st.sampled_from(_LETTERS[:6]), st.text(_LETTERS[:6] + "09-", max_size=5))


def _unique(names: st.SearchStrategy[str], most: int, least: int = 0) -> st.SearchStrategy[list[str]]:
    return st.lists(names, min_size=least, max_size=most, unique_by=keys.fold)


def _some(names: list[str], most: int = 4) -> st.SearchStrategy[list[str]]:
    """Return some of the names in any order, without duplicates (ignoring case)."""
    return _unique(st.sampled_from(names), most) if names else st.just([])


def _may_be_options(value: dict[str, Any]) -> bool:
    """Return whether options have no secret, and nothing in place of one."""
    return not secret_options.has_secret(value) and secret_texts.WITHHELD not in json.dumps(value)


@st.composite
def documents(draw: st.DrawFn) -> Document:
    """Return a valid document with every section."""
    categories = draw(_unique(_NAME.filter(lambda name: keys.fold(name) not in catalog.CATEGORIES), 2))
    every_category = [*catalog.CATEGORIES, *categories]
    plugins = _plugins(draw, every_category)
    bare = draw(_unique(_BARE, 9, least=2))
    cut = draw(st.integers(1, len(bare)))
    tools = [_tool(draw, name, plugins, every_category) for name in bare[:cut]]
    tool_keys = [tool["key"] for tool in tools]
    options = {key: draw(st.none() | OBJECT.filter(_may_be_options)) for key in tool_keys}
    toolkits = [_toolkit(draw, key, tool_keys, options) for key in bare[cut:]]
    toolkit_keys = [toolkit["key"] for toolkit in toolkits]
    plugin_names = [plugin["name"] for plugin in plugins]
    profiles = _loadouts(draw, plugin_names, tool_keys, every_category)
    names = [*loadouts.BUILT_IN, *(profile["name"] for profile in profiles)]
    agent_keys = draw(_unique(_NAME, 3))
    return {
        "categories": categories,
        "plugins": plugins,
        "tools": tools,
        "toolkits": toolkits,
        "loadouts": profiles,
        "agents": [_agent(draw, key, tool_keys, toolkit_keys, names, options) for key in agent_keys],
        "sub_apps": [
            {
                "key": key,
                **draw(st.fixed_dictionaries({}, optional=ABOUT)),
                "tool_names": draw(_some([tool for tool in tool_keys if not options[tool]])),
                "agents": draw(_some(agent_keys)),
            }
            for key in draw(_unique(_NAME, 2))
        ],
        "gate_rules": [
            {
                "key": key,
                **draw(
                    st.fixed_dictionaries(
                        {"effect": st.sampled_from(catalog.EFFECTS)},
                        optional={
                            "agents": _some(agent_keys),
                            "kinds": _some(list(agents.KINDS)),
                            "tools": _some([*tool_keys, "git*"]),
                            "toolkits": _some(toolkit_keys),
                            "plugins": _some(plugin_names),
                            "risks": _some(list(catalog.DENIED_RISKS)),
                            "when": st.just({"amount": {"minimum": 1.0}}),
                            "unless": st.just({"required": ["to"]}),
                            "labels": _some(["private", "untrusted"]),
                            "without": _some(["private", "checked"]),
                            "reason": st.sampled_from(["", "Ask first."]),
                            "observed": st.booleans(),
                            "ends": st.just("2031-05-04T14:00:00Z"),
                        },
                    )
                ),
            }
            for key in draw(_unique(_NAME, 2))
        ],
    }


def belts() -> st.SearchStrategy[belts_room.Belt]:
    """Return a valid belt with token counts."""
    return documents().map(lambda document: belts_room.load(document, count_tokens=len))


def _plugins(draw: st.DrawFn, categories: list[str]) -> list[Document]:
    names = draw(_unique(_NAME | st.sampled_from(["git", "shell", "docker"]), 3))
    namespaces = draw(_unique(_BARE, len(names)))
    return [
        {
            "name": name,
            **({"namespace": namespaces[place]} if place < len(namespaces) else {}),
            **draw(
                st.fixed_dictionaries(
                    {},
                    optional={
                        **ABOUT,
                        "category": st.sampled_from(categories),
                        "status": st.sampled_from(["ready", "failed"]),
                        "active": st.booleans(),
                        "trusted": st.booleans(),
                        "blocked": st.booleans(),
                    },
                )
            ),
        }
        for place, name in enumerate(names)
    ]


def _tool(draw: st.DrawFn, name: str, plugins: list[Document], categories: list[str]) -> Document:
    plugin = draw(st.sampled_from([None, *plugins]))
    namespace = plugin.get("namespace") if plugin else None
    return {
        "key": f"{namespace}__{name}" if namespace else name,
        **({"plugin": plugin["name"]} if plugin else {}),
        **draw(
            st.fixed_dictionaries(
                {},
                optional={
                    **ABOUT,
                    "category": st.sampled_from(categories),
                    "default_on": st.booleans(),
                    "input_schema": SCHEMA,
                    "output_schema": SCHEMA,
                    "annotations": OBJECT,
                    "policy": TEXT,
                    "blocked": st.booleans(),
                    "retired": st.booleans(),
                    "seen": st.booleans(),
                    "approved": TEXT,
                    "details": st.fixed_dictionaries({}, optional={"outputSchema": SCHEMA, "_meta": OBJECT}),
                    "details_approved": TEXT,
                    "upstream_name": TEXT,
                },
            )
        ),
    }


def _uses(draw: st.DrawFn, tools: list[str], options: dict[str, Any]) -> list[Any]:
    used = draw(_some(tools))
    plain = [key for key in used if not options[key] and draw(st.booleans())]
    return [key if key in plain else {"tool": key, "options": options[key]} for key in used]


def _toolkit(draw: st.DrawFn, key: str, tools: list[str], options: dict[str, Any]) -> Document:
    patterns = st.lists(PATTERN, min_size=1, max_size=2)
    also = {
        "none": st.lists(PATTERN, max_size=2),
        "focus": _some(tools),
        "tool_choice": st.sampled_from(["auto", "required"]),
    }
    trigger = st.fixed_dictionaries(
        {"name": st.just("t"), "any": patterns}, optional=also
    ) | st.fixed_dictionaries(
        {"name": st.just("u"), "all": st.lists(patterns, min_size=1, max_size=2)}, optional=also
    )
    return {
        "key": key,
        "members": _uses(draw, tools, options),
        **draw(
            st.fixed_dictionaries(
                {},
                optional={
                    **ABOUT,
                    "policy": TEXT | st.just("Use {active_tools}."),
                    "policy_when_off": TEXT,
                    "tool_notes": st.dictionaries(st.sampled_from(tools), TEXT, max_size=2),
                    "triggers": st.lists(trigger, max_size=2),
                    "examples": TEXT,
                    "blocked": st.booleans(),
                },
            )
        ),
    }


def _loadouts(draw: st.DrawFn, plugins: list[str], tools: list[str], categories: list[str]) -> list[Document]:
    """Return loadouts. Each may extend a built-in or earlier loadout, and the first may replace a built-in one."""
    reserved = {keys.fold(name) for name in loadouts.BUILT_IN}
    names = draw(_unique(_NAME.filter(lambda name: keys.fold(name) not in reserved), 3))
    made: list[Document] = [{"name": "Minimal"}] if draw(st.booleans()) else []
    parents = [*loadouts.BUILT_IN, "DEVELOPER", *(entry["name"] for entry in made)]
    for name in names:
        brought = draw(_some([*plugins, "think", "WebSearch"]))
        folded = {keys.fold(plugin) for plugin in brought}
        rest = [entry for entry in [*plugins, *tools, "websearch"] if keys.fold(entry) not in folded]
        loadout = {
            "name": name,
            "plugins": brought,
            "categories": draw(_some(categories)),
            "discoverable": draw(_some(["*", "docker*", *plugins, *tools])),
            "disabled": draw(_some(rest, 2)),
            "denied_risks": draw(_some(list(catalog.DENIED_RISKS), 3)),
            **draw(
                st.fixed_dictionaries({}, optional={"description": TEXT, "parent": st.sampled_from(parents)})
            ),
        }
        made.append(loadout)
        parents.append(name)
    return made


def _agent(
    draw: st.DrawFn,
    key: str,
    tools: list[str],
    toolkits: list[str],
    names: list[str],
    options: dict[str, Any],
) -> Document:
    allowed = draw(_some(toolkits))
    budget = {
        "max_tools": st.integers(0, 9),
        "max_tokens": st.integers(0, 900),
        "on_exceed": st.sampled_from(agents.ON_EXCEED),
    }
    return {
        "key": key,
        "tools": _uses(draw, tools, options),
        "allowed_toolkits": allowed,
        "initial_toolkits": draw(_some(allowed, 2)),
        "tools_config": draw(
            st.dictionaries(st.sampled_from([*tools, *toolkits]), st.booleans() | st.none(), max_size=4)
        ),
        **draw(
            st.fixed_dictionaries(
                {},
                optional={
                    **ABOUT,
                    "role": TEXT,
                    "model": TEXT,
                    "kind": st.sampled_from(agents.KINDS),
                    "loadout": st.sampled_from(names),
                    "budget": st.none() | st.fixed_dictionaries({}, optional=budget),
                    "protected": st.booleans(),
                    "session_loadouts": _some(names, 2),
                    "subagent_kinds": _some(list(agents.KINDS), 2),
                    "denied_risks": _some(list(catalog.DENIED_RISKS), 3),
                },
            )
        ),
    }
