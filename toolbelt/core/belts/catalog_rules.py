"""Is this category, plugin, tool, toolkit or sub-app sound, beside what is known?

Rules read an entry's fields that fit; that a field does not fit, its shape has said.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from typing import Any

from toolbelt.core import connections, directives, keys, schema
from toolbelt.core.belts import findings, known, vocabulary

Given = Mapping[str, Any]


def category(given: str, there: known.Known) -> Iterator[findings.Found]:
    """Check the name of a category beyond the thirteen."""
    yield from naming("category", given, there, keys.name_problem)


def plugin(given: Given, there: known.Known) -> Iterator[findings.Found]:
    """Check a plugin: its name, a namespace of its own, its category, one word on whether it is active."""
    name = given.get("name", "")
    yield from naming("plugin", name, there, keys.name_problem)
    if namespace := given.get("namespace"):
        owner = there.namespaces.get(keys.fold(namespace), name)
        if problem := keys.namespace_problem(namespace):
            yield findings.Found(("namespace",), problem)
        elif owner != name:
            message = f"The namespace {namespace!r} is taken by the plugin {owner!r}: choose another one."
            yield findings.Found(("namespace",), message)
    yield from _stated_category(given, there)
    if given.get("status") == "disabled" and given.get("active") is True:
        message = "A plugin whose status is 'disabled' is not active: leave out one of the two."
        yield findings.Found(("active",), message)
    for place, message in connections.problems(given["upstream"]) if "upstream" in given else ():
        yield findings.Found(("upstream", *place), message)


def leaves_outside(given: Given, there: known.Known) -> Iterator[findings.Found]:
    """Check a plugin that is written alone: the tools that it has already must lie in its namespace."""
    namespace = given.get("namespace", "")
    of_plugin = there.stored.tools_of_plugin.get(given.get("name", ""), ())
    outside = [key for key in of_plugin if namespace and not keys.in_namespace(key, namespace)]
    if outside:
        named = ", ".join(outside[:3]) + (" and more" if len(outside) > 3 else "")
        message = (
            f"Tools of this plugin lie outside the namespace {namespace!r}: {named}. Leave it as it was."
        )
        yield findings.Found(("namespace",), message)


def tool(given: Given, there: known.Known) -> Iterator[findings.Found]:
    """Check a tool: its key, in its plugin's namespace where that has one, its plugin, category and schemas."""
    key, plugin_name = given.get("key", ""), given.get("plugin", "")
    yield from naming("tool", key, there, keys.tool_key_problem)
    owner = there.stored.plugins.get(plugin_name)
    if owner is not None and owner.namespace and key and not keys.in_namespace(key, owner.namespace):
        fitting = keys.fit(key, owner.namespace)
        message = f"{key!r} lies outside the namespace of its plugin {plugin_name!r}: call it {fitting!r}."
        yield findings.Found(("key",), message)
    if plugin_name and owner is None:
        yield findings.missing(("plugin",), "plugin", plugin_name, there.stored.plugins)
    yield from _stated_category(given, there)
    for field in ("input_schema", "output_schema"):
        if field in given and (problem := _schema_problem(schema.canonical(given[field]))):
            yield findings.Found((field,), f"A tool cannot have this schema: {problem}.")


def toolkit(given: Given, there: known.Known) -> Iterator[findings.Found]:
    """Check a toolkit: its key, its owner, its members, the tools that notes and triggers speak of, its patterns."""
    yield from naming("toolkit", given.get("key", ""), there, keys.toolkit_key_problem)
    if (owner := given.get("plugin")) and owner not in there.stored.plugins:
        yield findings.missing(("plugin",), "plugin", owner, there.stored.plugins)
    members = [use and use["tool"] for use in given.get("members", ())]
    yield from unknown("members", members, "tool", there.stored.tools)
    yield from repeated("members", members)
    for key in given.get("tool_notes", {}):
        if key not in there.stored.tools:
            yield findings.missing(("tool_notes", key), "tool", key, there.stored.tools)
    for position, trigger in enumerate(given.get("triggers", ())):
        for found in _trigger(trigger, there) if trigger is not None else ():
            yield found._replace(at=("triggers", position, *found.at))


def sub_app(given: Given, there: known.Known) -> Iterator[findings.Found]:
    """Check a sub-app: its key, the tools that it binds, the agents that it embeds."""
    yield from naming("sub_app", given.get("key", ""), there, keys.name_problem)
    for field, what, among in (("tool_names", "tool", there.stored.tools), ("agents", "agent", there.agents)):
        names = given.get(field, ())
        yield from unknown(field, names, what, among)
        yield from repeated(field, names)


def _trigger(given: Given, there: known.Known) -> Iterator[findings.Found]:
    if not given.get("any") and not given.get("all"):
        yield findings.Found((), "A trigger needs patterns that must match: give it 'any' or 'all'.")
    for field in ("any", "none"):
        yield from _patterns((field,), given.get(field, ()))
    for position, group in enumerate(given.get("all", ())):
        if group == []:
            message = "A group without patterns never matches: fill it, or take it out."
            yield findings.Found(("all", position), message)
        yield from _patterns(("all", position), group or ())
    yield from unknown("focus", given.get("focus", ()), "tool", there.stored.tools)


def _patterns(at: findings.Place, patterns: Iterable[str | None]) -> Iterator[findings.Found]:
    for position, pattern in enumerate(patterns):
        if pattern is not None and (problem := directives.pattern_problem(pattern)):
            yield findings.Found((*at, position), problem)


def _stated_category(given: Given, there: known.Known) -> Iterator[findings.Found]:
    name = given.get("category", "")
    if name and not there.has_category(name):
        yield findings.missing(("category",), "category", name, there.categories())


@functools.lru_cache(maxsize=4096)
def _schema_problem(text: str) -> str | None:
    """Say what is wrong with a schema; kept, because the meta-schema takes milliseconds and belts come again."""
    return schema.problem(json.loads(text))


def naming(
    kind: vocabulary.KindName, name: str, there: known.Known, problem_of: Callable[[str], str | None]
) -> Iterator[findings.Found]:
    """Check a name that is given: well-formed, and not another's."""
    at = vocabulary.KINDS[kind].place()
    if not name.strip() and at:
        return
    if problem := problem_of(name):
        yield findings.Found(at, problem)
    owner = there.owner(kind, name)
    if owner is None or owner == (kind, name):
        return
    theirs = f"the {owner[0].replace('_', '-')} {owner[1]!r}"
    if owner[1] == name:
        yield findings.Found(at, f"{name!r} is taken by {theirs}: choose another name.")
    else:
        yield findings.Found(at, f"{name!r} differs from {theirs} in case alone: choose another name.")


def unknown(
    field: str, names: Iterable[str | None], what: str, among: Collection[str]
) -> Iterator[findings.Found]:
    """Find the items of a list that name nothing."""
    for position, name in enumerate(names):
        if name is not None and name not in among:
            yield findings.missing((field, position), what, name, among)


def repeated(
    field: str, names: Iterable[str | None], alike: Callable[[str], Hashable] = str
) -> Iterator[findings.Found]:
    """Find the items of a list that stand in it before, where ``alike`` says the same of both."""
    first: dict[Hashable, int] = {}
    for position, name in enumerate(names):
        if name is None:
            continue
        earlier = first.setdefault(alike(name), position)
        if earlier != position:
            message = f"{name!r} stands twice: it is {field}[{earlier}] already. Take one out."
            yield findings.Found((field, position), message)
