"""What a model knows that reads only what its provider was sent, and whether that is true.

This is no code of Toolbelt's: tools are known by the provider's rules (the fakes), and by the words that were said.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from toolbelt import formats
from toolbelt.core import conversations, keys, meta_tools, surface
from toolbelt.formats.appending import lines

_SECTION = re.compile(r'<(toolkit|tool) name="([^"]+)">\n(.*?)\n</\1>', re.DOTALL)
_ENDED = re.compile(r"The earlier text about the (\w+ \S+) no longer applies\.")
_LOADABLE = re.compile(r"^- (\S+?)(?::.*)?$", re.MULTILINE)
_MORE = re.compile(r"^Available from now on(?: through call_tool)?: ([^.]+)\.", re.MULTILINE)
_LESS = re.compile(r"^No longer available: ([^.]+)\.", re.MULTILINE)
_CHANGED = re.compile(r"^Changed: ([^.]+)\.", re.MULTILINE)
_UNLOADABLE = re.compile(r"^Toolkits that you may no longer load: ([^.]+)\.", re.MULTILINE)
_LISTS = ("<loadable_toolkits>", "Toolkits that you may load from now on:")


@dataclasses.dataclass
class Reading:
    """What was said last: the tools that may be called, those whose definition changed, the policy, what may be loaded.

    ``listed`` are all names that were ever said.
    """

    tools: set[str]
    changed: set[str] = dataclasses.field(default_factory=set)
    sections: dict[str, str] = dataclasses.field(default_factory=dict)
    loadable: dict[str, str] = dataclasses.field(default_factory=dict)
    listed: set[str] = dataclasses.field(default_factory=set)


def read(entry: Mapping[str, Any]) -> Reading:
    """Return what a model knows after a request, of which a fake's log has this entry."""
    # A compaction keeps the changes of Claude's tools, but not the words about them.
    known = Reading(tools={*(entry["shown"] if entry.get("compacted") else entry["declared"])})
    for text in entry["texts"]:
        known.tools |= _names(_MORE, text, known)
        known.tools -= _names(_LESS, text, known)
        known.changed |= _names(_CHANGED, text, known)
        for kind, name, section in _SECTION.findall(text):
            known.sections[f"{kind} {name}"] = section
        for name in _ENDED.findall(text):
            known.sections.pop(name, None)
        for start in _LISTS:
            _, found, listed = text.rpartition(start)
            end = min((listed.find(mark) for mark in ("</", "\nToolkits ") if mark in listed), default=None)
            for line in _LOADABLE.finditer(listed[:end] if found else ""):
                known.loadable[line[1]] = line[0]
        for name in _names(_UNLOADABLE, text, known):
            known.loadable.pop(name, None)
    return known


def names(entry: Mapping[str, Any]) -> set[str]:
    """Return all that a request names, with its kind: ``tool p__a``, ``toolkit desk``."""
    known = read(entry)
    tools = {*entry["declared"], *entry.get("in_reserve", ()), *entry["defined"], *known.listed}
    return {
        *(f"tool {name}" for name in tools),
        *known.sections,
        *(f"toolkit {key}" for key in known.loadable),
    }


def _names(pattern: re.Pattern[str], text: str, known: Reading) -> set[str]:
    names = {name for found in pattern.findall(text) for name in found.split(", ")}
    known.listed |= names
    return names


def check(entry: Mapping[str, Any], shown: surface.Surface, line: lines.Line) -> None:
    """Check every property that one accepted request shows. ``entry`` is that of the fake's log."""
    the_model_knows_which_tools_it_may_call(entry, shown)
    the_model_sees_no_other_tools(entry, shown, line)
    the_model_has_the_current_definitions(entry, shown, line)
    the_policy_that_was_said_last_is_the_current_one(entry, shown)
    the_toolkits_that_were_said_last_are_those_to_load(entry, shown)
    nothing_from_outside_is_said_in_the_operators_name(entry)


def the_model_knows_which_tools_it_may_call(entry: Mapping[str, Any], shown: surface.Surface) -> None:
    own = {*meta_tools.DISPATCHING}
    known, true = read(entry).tools - own, active(shown) - own
    assert known == true, f"known too much: {sorted(known - true)}, too little: {sorted(true - known)}"


def the_model_sees_no_other_tools(entry: Mapping[str, Any], shown: surface.Surface, line: lines.Line) -> None:
    """By the provider's rules: what is withdrawn is not offered, or may not be chosen."""
    own = {*meta_tools.DISPATCHING} if line.dispatches else set()
    may_be_called, offered = active(shown) | own, {*entry["shown"]}
    by_name = read(entry).tools - offered
    assert may_be_called <= offered | by_name
    # What cannot be defined later is called through call_tool.
    assert not by_name or own
    if line.means.remove == "withdraw":
        assert offered <= may_be_called
    if line.form == "gemini" or (
        line.means.remove == "restrict" and not {*entry["shown"]} - {*entry["declared"]}
    ):
        assert {*entry["allowed"]} <= may_be_called


def the_model_has_the_current_definitions(
    entry: Mapping[str, Any], shown: surface.Surface, line: lines.Line
) -> None:
    """Where a definition cannot be replaced, the model was told that it changed."""
    current = _definitions(
        formats.render(line.form, shown.content() | {"directive": None}, profile=line.profile)
    )
    said = set() if line.means.replace else read(entry).changed
    for name in active(shown) & entry["defined"].keys() - {*meta_tools.DISPATCHING}:
        given = {key: value for key, value in entry["defined"][name].items() if key != "defer_loading"}
        assert given == current[name] or name in said, name


def the_policy_that_was_said_last_is_the_current_one(
    entry: Mapping[str, Any], shown: surface.Surface
) -> None:
    current = {conversations.section_key(section): section.text for section in shown.policy.sections}
    assert read(entry).sections == current


def the_toolkits_that_were_said_last_are_those_to_load(
    entry: Mapping[str, Any], shown: surface.Surface
) -> None:
    assert read(entry).loadable == dict(shown.policy.loadable_lines)


def nothing_from_outside_is_said_in_the_operators_name(entry: Mapping[str, Any]) -> None:
    """Descriptions may come from an upstream server: they are in definitions only. A name is a key."""
    said = "\n".join(entry["texts"])
    assert "Does p__" not in said
    for name in read(entry).listed:
        assert name in keys.RESERVED or keys.tool_key_problem(name) is None, name


def active(shown: surface.Surface) -> set[str]:
    """Return the names of all tools that may be called."""
    return {tool.name for tool in (*shown.tools, *shown.meta_tools)}


def _definitions(rendered: Mapping[str, Any]) -> dict[str, Any]:
    """Return the definitions of a rendered surface, by name."""
    tools = rendered.get("tools", ())
    if tools and "function_declarations" in tools[0]:
        return {
            each["name"]: {
                "name": each["name"],
                **({"description": each["description"]} if "description" in each else {}),
                "parametersJsonSchema": each["parameters_json_schema"],
            }
            for each in tools[0]["function_declarations"]
        }
    return {tool.get("function", tool)["name"]: tool for tool in tools}
