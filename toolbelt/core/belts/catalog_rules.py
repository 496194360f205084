"""Checks of categories, plugins, tools, toolkits and sub-apps against what exists.

Rules read only the fields whose shape fits: a field that does not fit has been reported already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from toolbelt.core import chosen_fields, connections, details, directives, keys, schema
from toolbelt.core.belts import fields, findings, gate_rule_checks, name_index, vocabulary


def _block(
    entry: vocabulary.Plugin | vocabulary.Tool | vocabulary.Toolkit,
) -> Iterator[findings.Finding]:
    if entry.block_ends and not entry.blocked:
        message = "It is not blocked, so no block can end: set 'blocked' as well, or remove the end."
        yield findings.Finding(("block_ends",), message)


def plugin(entry: vocabulary.Plugin, index: name_index.NameIndex) -> Iterator[findings.Finding]:
    """Check a plugin: its own namespace, that status and active agree, its connection, and who runs its tools."""
    yield from _block(entry)
    name = entry.name or ""
    if namespace := entry.namespace:
        owner = index.namespaces.get(keys.fold(namespace), name)
        if problem := keys.namespace_problem(namespace):
            yield findings.Finding(("namespace",), problem)
        elif owner != name:
            message = f"The namespace {namespace!r} is taken by the plugin {owner!r}: choose another one."
            yield findings.Finding(("namespace",), message)
    if entry.status == "disabled" and entry.active is True:
        message = "A plugin whose status is 'disabled' is not active: leave out one of the two."
        yield findings.Finding(("active",), message)
    for at, message in connections.problems(entry.upstream.given()) if entry.upstream else ():
        yield findings.Finding(("upstream", *at), message)
    yield from _runner(entry)


def _runner(entry: vocabulary.Plugin) -> Iterator[findings.Finding]:
    """Check who runs the plugin's tools, and that agents are named only where their program runs them."""
    is_upstream = entry.upstream is not None and bool(entry.upstream.given())
    if entry.in_code and is_upstream:
        message = "A plugin with an upstream server is not in code: leave out one of the two."
        yield findings.Finding(("in_code",), message)
    if entry.declared_by and (entry.in_code or is_upstream):
        owner = "installed code" if entry.in_code else "an upstream server"
        message = f"The tools of this plugin come from {owner}: only those that the agent's program runs are declared."
        yield findings.Finding(("declared_by",), message)
    if entry.keep_descriptions and not is_upstream:
        message = "Only an upstream server lists other descriptions than the approved ones: leave it out."
        yield findings.Finding(("keep_descriptions",), message)
    for field in ("reject_tools", "reject_all_but"):
        if getattr(entry, field) and not is_upstream:
            yield findings.Finding((field,), "Only the tools that an upstream server lists: leave it out.")
    if entry.not_running and not entry.in_code:
        message = "Only the tools of a plugin in code run in Toolbelt's processes: leave it out."
        yield findings.Finding(("not_running",), message)
    # An agent that does not exist is allowed: a belt may bring the plugin first.
    for position, agent in enumerate(entry.declared_by or ()):
        if agent is not None and (problem := keys.name_problem(agent)):
            yield findings.Finding(("declared_by", position), problem)


def namespace_of_tools(entry: vocabulary.Plugin, index: name_index.NameIndex) -> Iterator[findings.Finding]:
    """Check that a plugin's existing tools are in its namespace, when the plugin is written alone."""
    namespace = entry.namespace
    tools = index.stored.tools_of_plugin.get(entry.name, ())
    outside = [key for key in tools if namespace and not keys.in_namespace(key, namespace)]
    if outside:
        tool_names = ", ".join(outside[:3]) + (" and more" if len(outside) > 3 else "")
        message = f"Tools of this plugin are outside the namespace {namespace!r}: {tool_names}. Restore its namespace."
        yield findings.Finding(("namespace",), message)


def tool(entry: vocabulary.Tool, index: name_index.NameIndex) -> Iterator[findings.Finding]:
    """Check a tool: that its key is in its plugin's namespace, its schemas and its details."""
    yield from _block(entry)
    key, plugin_name = entry.key or "", entry.plugin or ""
    owner = index.stored.plugins.get(plugin_name)
    if owner is not None and owner.namespace and key and not keys.in_namespace(key, owner.namespace):
        suggestion = keys.fit(key, owner.namespace)
        message = f"{key!r} is outside the namespace of its plugin {plugin_name!r}: call it {suggestion!r}."
        yield findings.Finding(("key",), message)
    if entry.keep_description and (not plugin_name or (owner is not None and not owner.upstream)):
        message = "Only an upstream server lists other descriptions than the approved one: leave it out."
        yield findings.Finding(("keep_description",), message)
    for field, written in (("input_schema", entry.input_schema), ("output_schema", entry.output_schema)):
        if written is not None and (problem := schema.problem_of_text(schema.canonical(written))):
            yield findings.Finding((field,), f"This schema is invalid: {problem}.")
    yield from gate_rule_checks.labels("brings", entry.brings)
    for message in chosen_fields.problems(entry.recorded_fields or ()):
        yield findings.Finding(("recorded_fields",), message)
    if entry.kind in ("resource", "template") and not entry.upstream_name:
        yield findings.Finding(("upstream_name",), f"A {entry.kind} needs its URI here.")
    if entry.details is not None and (problem := details.problem(entry.kind or "tool", entry.details)):
        yield findings.Finding(("details",), f"These details are invalid: {problem}.")


def toolkit(entry: vocabulary.Toolkit, index: name_index.NameIndex) -> Iterator[findings.Finding]:
    """Check the triggers of a toolkit."""
    yield from _block(entry)
    yield from gate_rule_checks.labels("brings", entry.brings)
    for position, trigger in enumerate(entry.triggers or ()):
        for finding in _trigger(trigger, index) if trigger is not None else ():
            yield finding._replace(at=("triggers", position, *finding.at))


def _trigger(trigger: vocabulary.Trigger, index: name_index.NameIndex) -> Iterator[findings.Finding]:
    if not trigger.any and not trigger.all:
        yield findings.Finding((), "A trigger needs patterns that must match: set 'any' or 'all'.")
    yield from _patterns(("any",), trigger.any)
    yield from _patterns(("none",), trigger.none)
    for position, group in enumerate(trigger.all or ()):
        if group == []:
            message = "A group without patterns never matches: add patterns, or remove the group."
            yield findings.Finding(("all", position), message)
        yield from _patterns(("all", position), group)
    yield from references(trigger, index)


def _patterns(at: findings.Path, patterns: Iterable[str | None] | None) -> Iterator[findings.Finding]:
    for position, pattern in enumerate(patterns or ()):
        if pattern is not None and (problem := directives.pattern_problem(pattern)):
            yield findings.Finding((*at, position), problem)


def naming(kind: vocabulary.KindName, entry: Any, index: name_index.NameIndex) -> Iterator[findings.Finding]:
    """Check that an entry's name is well-formed and not taken."""
    spec = vocabulary.KINDS[kind]
    at, name = spec.name_path(), getattr(entry, spec.named_by) if spec.named_by else entry
    if at and not name:
        return
    if problem := spec.name_problem(name):
        yield findings.Finding(at, problem)
    owner = index.owner(kind, name)
    if owner is None or owner == (kind, name):
        return
    other = f"the {owner[0].replace('_', '-')} {owner[1]!r}"
    if owner[1] == name:
        yield findings.Finding(at, f"{name!r} is taken by {other}: choose another name.")
    else:
        yield findings.Finding(at, f"{name!r} differs from {other} in case alone: choose another name.")


def references(entry: Any, index: name_index.NameIndex) -> Iterator[findings.Finding]:
    """Check that what the fields of an entry name exists, and that each list names it once."""
    for field, names in vocabulary.naming(entry.__class__).items():
        written = getattr(entry, field)
        places: dict[findings.Path, str | None] = {}
        if isinstance(written, str):
            places = {(field,): written or None}
        elif isinstance(written, dict):
            places = {(field, key): key for key in written}
        elif written is not None:
            texts = [item.tool if isinstance(item, fields.ToolUse) else item for item in written]
            places = {(field, position): text for position, text in enumerate(texts)}
            if names.alike is not None:
                yield from _repeated(field, texts, names.alike)
        missing = [
            (at, name)
            for at, name in places.items()
            if names.kind and name is not None and not index.has(names.kind, name)
        ]
        among = index.named(names.kind) if missing else ()
        yield from (findings.missing(at, names.kind, name, among) for at, name in missing)


def _repeated(
    field: str, names: Iterable[str | None], alike: Callable[[str], str]
) -> Iterator[findings.Finding]:
    first: dict[str, int] = {}
    for position, name in enumerate(names):
        if name is None:
            continue
        earlier = first.setdefault(alike(name), position)
        if earlier != position:
            message = f"{name!r} is listed twice: {field}[{earlier}] is the same. Remove one of them."
            yield findings.Finding((field, position), message)
