"""Plugins whose tools the agent's own program runs: the program declares them, and operators review them.

A declaration follows the rules of `upstream_servers.record`: its texts are as untrusted as those of a server, and it
grants nothing. Unlike a server's list it is stored completely or not at all, because its sender can correct it. Several
programs declare the tools of one plugin, in their own forms and during a deploy in two versions:

1. A tool that only looks different is the tool that is stored.
2. A tool that is not declared is retired only by a declaration that says that it is complete.
3. The approved version stays beside a newer one while programs declare it (`core.declared_versions`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from toolbelt import conf
from toolbelt.control import writing
from toolbelt.control.servers import approvals, upstream_servers
from toolbelt.core import catalog, declared_versions, errors, facts, keys, schema, tool_versions
from toolbelt.core.imported import importing
from toolbelt.plugins.upstream import limits
from toolbelt.store import clock, listings, snapshots
from toolbelt.store import tools as rows

REASON = facts.DECLARED
FIELDS: Mapping[str, str] = {
    "name": "name",
    "title": "title",
    "description": "description",
    "input_schema": "inputSchema",
    "output_schema": "outputSchema",
    "annotations": "annotations",
}

Tools = Sequence[Mapping[str, Any]]
RecordedTools = upstream_servers.RecordedTools


def declare(
    write: writing.Write,
    name: str,
    tools: Tools,
    *,
    agent: str = "",
    was: Tools | None = None,
    complete: bool = False,
) -> RecordedTools:
    """Store the tools that the agent's program runs. If they are ``complete``, retire the plugin's others.

    Each tool has a ``name``, and optionally ``title``, ``description``, ``input_schema``, ``output_schema`` and
    ``annotations``. ``agent`` is the agent whose token declares them; empty for an operator. ``was`` is the list that
    the sender expects to be declared now. The same list again changes nothing.

    Raise errors.NotFound for a plugin that is not the client's or that this agent may not declare, errors.Invalid with
    the path of each problem, and errors.Stale if another list is declared.
    """
    plugin = approvals.find(name, "client", agent=agent)
    definitions = _definitions(plugin, tools)
    deployed: list[_Declared] = []

    def check(stored: catalog.Catalog) -> None:
        approvals.find(name, "client", stored=stored, agent=agent)
        if was is not None and (now := _declared(stored, name)) != [dict(tool) for tool in was]:
            raise errors.Stale(name, [tool["name"] for tool in was], [tool["name"] for tool in now])

    def adapt(
        stored: catalog.Catalog, listed: Sequence[importing.Definition]
    ) -> Sequence[importing.Definition]:
        deployed[:] = [_declared_tool(definition, stored, plugin) for definition in listed]
        return [declared.to_store for declared in deployed]

    def note(problems: Iterable[errors.Problem]) -> None:
        if problems := list(problems):
            raise errors.Invalid(problems)
        _store_versions(deployed)
        listings.record_answer(
            name, protocol="", server=write.actor.name, tools=len(definitions), problems=(), stderr=""
        )

    return upstream_servers.store(
        write.replace(reason=write.reason or REASON),
        plugin,
        definitions,
        (),
        complete={"tool"} if complete else (),
        source=f"the declaration of {name!r}",
        note=note,
        check=check,
        adapt=adapt,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The declared tools of a program: the ``versions`` by name, and the keys that no agent has before an operator's
    decision: those that are ``waiting`` for a review, and those that are ``withdrawn``, because they are rejected or
    blocked. ``show`` is the command that shows why; empty if there are none.
    """

    versions: Mapping[str, str]
    waiting: tuple[str, ...]
    withdrawn: tuple[str, ...]

    show: str = ""


def state_of(name: str, tools: Tools) -> State:
    """Return what has become of the tools that a program just declared."""
    stored = snapshots.catalog()
    plugin = stored.plugins[name]
    versions, waiting, withdrawn = {}, [], []
    for definition in _definitions(plugin, tools):
        now = _find(definition, stored, plugin)
        if now is None:
            continue
        declared = _declared_tool(definition, stored, plugin)
        versions[definition.name] = declared.version
        if now.blocked or tool_versions.is_rejected(now):
            withdrawn.append(now.key)
        elif (
            (not now.seen and not plugin.trusted)
            or declared_versions.schema_of(now, declared.version, clock.now()) is None
            or tool_versions.is_changed(declared_versions.offered(now))
        ):
            waiting.append(now.key)
    show = f"{conf.COMMAND} mcp review {name}" if waiting or withdrawn else ""
    return State(versions=versions, waiting=tuple(waiting), withdrawn=tuple(withdrawn), show=show)


def hashes(name: str, tools: Tools) -> dict[str, str]:
    """Return the version of each tool by its key, as :func:`decisions.preapprove` takes it. Stores nothing."""
    plugin, stored = approvals.find(name, "client"), snapshots.catalog()
    declared = [_declared_tool(definition, stored, plugin) for definition in _definitions(plugin, tools)]
    return {tool.key: tool.version for tool in declared}


def end_versions() -> int:
    """Remove the versions that no program declared within their lifetime; return of how many tools."""
    now = clock.now()

    def ended() -> dict[str, str]:
        stored = snapshots.catalog()
        known = {key: declared_versions.read(stored.tools[key]) for key in keys_ if key in stored.tools}
        left = {key: declared_versions.current(versions, now) for key, versions in known.items()}
        return {key: _text(left[key]) for key in left if len(left[key]) < len(known[key])}

    keys_ = rows.with_declared_versions()
    if not keys_ or not ended():
        return 0
    with writing.begin():
        texts = ended()
        rows.put_declared(texts)
    return len(texts)


def declared(name: str, agent: str = "") -> list[dict[str, Any]]:
    """Return the tools that are declared now, by name, as :func:`declare` takes them; raise errors.NotFound."""
    approvals.find(name, "client", agent=agent)
    return _declared(snapshots.catalog(), name)


def declare_from_program(agent: str, plugin: str, tools: Tools) -> dict[str, Any]:
    """Declare the tools of an agent's program in this process; return the result as the API's response has it."""
    recorded = declare(writing.by(f"agent:{agent}", via="system", kind="agent"), plugin, tools, agent=agent)
    return document(recorded, plugin, tools)


def document(recorded: RecordedTools, plugin: str, tools: Tools) -> dict[str, Any]:
    """Return the result of a declaration as JSON, with the key and the version of each declared tool by its name."""
    state = state_of(plugin, tools)
    return {
        "keys": keys_by_name(plugin, tools),
        "versions": dict(state.versions),
        "waiting": list(state.waiting),
        "withdrawn": list(state.withdrawn),
        "show": state.show,
        "created": list(recorded.created),
        "changed": list(recorded.changed),
        "held": list(recorded.held),
        "unseen": list(recorded.unseen),
        "retired": list(recorded.retired),
    }


def keys_by_name(name: str, tools: Tools) -> dict[str, str]:
    """Return the key of each tool that was declared for the plugin, by the name in the declaration."""
    namespace = snapshots.catalog().plugins[name].namespace
    return {tool["name"]: keys.fit(_bare(tool["name"], namespace), namespace) for tool in tools}


def last_declared(name: str) -> datetime | None:
    """Return the time when the plugin's tools were last declared, if ever."""
    listing = listings.find(name)
    return None if listing is None else listing.answered


@dataclass(frozen=True, slots=True, kw_only=True)
class _Declared:
    """A declared tool: the row that it is, the definition to store, and its version, with the schema of that."""

    key: str
    to_store: importing.Definition
    version: str
    input_schema: str
    approved: str = ""


def _declared_tool(
    definition: importing.Definition, stored: catalog.Catalog, plugin: catalog.Plugin
) -> _Declared:
    """Return what a declared tool is, given what is stored: if it is the stored tool in another form, or an older
    version that stays beside the stored one, the stored tool is not to change.
    """
    now = _find(definition, stored, plugin)
    if now is None:
        version = definition.version()
        text = schema.canonical(definition.input_schema)
        return _Declared(key=definition.key, to_store=definition, version=version, input_schema=text)
    definition = dataclasses.replace(definition, key=now.key)
    tool = definition.tool()
    approved = tool_versions.approved_texts(now)
    for known in (now, approved):
        if known is not None and tool_versions.is_same_declaration(known, tool):
            # Its schema in the form that is stored.
            tool = dataclasses.replace(tool, description=known.description, input_schema=known.input_schema)
    version = tool_versions.version(tool)
    lately = declared_versions.current(declared_versions.read(now), clock.now())
    is_beside = version != tool_versions.version(now) and not now.retired
    is_older = is_beside and (
        (version == now.approved and tool_versions.version(now) in lately)
        or (version in lately and lately[version].superseded)
    )
    to_store = dataclasses.replace(
        definition, description=tool.description, input_schema=schema.mapping(tool.input_schema, schema.EMPTY)
    )
    return _Declared(
        key=now.key,
        to_store=_as_stored(definition, now) if is_older else to_store,
        version=version,
        input_schema=tool.input_schema,
        approved=now.approved,
    )


def _find(
    definition: importing.Definition, stored: catalog.Catalog, plugin: catalog.Plugin
) -> catalog.Tool | None:
    tool = stored.tools.get(definition.key)
    return tool if tool is not None and tool.plugin == plugin.name else None


def _as_stored(definition: importing.Definition, now: catalog.Tool) -> importing.Definition:
    return dataclasses.replace(
        definition,
        title=now.title,
        description=now.description,
        input_schema=schema.mapping(now.input_schema, schema.EMPTY),
        output_schema=schema.mapping(now.output_schema, None),
        annotations=schema.mapping(now.annotations, {}),
        details=schema.mapping(now.details, {}),
    )


def _store_versions(deployed: Sequence[_Declared]) -> None:
    """Note which versions the programs have, within the transaction of a declaration."""
    stored, now = snapshots.catalog(), clock.now()
    texts = {}
    for declared in deployed:
        tool = stored.tools.get(declared.key)
        if tool is None:
            continue
        before = declared_versions.read(tool)
        superseded = declared.approved if tool.approved != declared.approved else ""
        after = declared_versions.declared(
            before, declared.version, declared.input_schema, now, superseded=superseded
        )
        if after != before:
            texts[declared.key] = _text(after)
    rows.put_declared(texts)


def supersede(approved_before: Mapping[str, str]) -> None:
    """Note which versions were approved before others of the same tools were, within the transaction of that."""
    stored = snapshots.catalog()
    texts = {}
    for key, version in approved_before.items():
        known = dict(declared_versions.read(stored.tools[key]))
        if version in known and version != stored.tools[key].approved:
            known[version] = dataclasses.replace(known[version], superseded=True)
            texts[key] = _text(known)
    rows.put_declared(texts)


def _text(versions: declared_versions.Versions) -> str:
    return schema.canonical(declared_versions.written(versions)) if versions else ""


def _declared(stored: catalog.Catalog, name: str) -> list[dict[str, Any]]:
    namespace = stored.plugins[name].namespace
    tools = [stored.tools[key] for key in sorted(stored.tools_of_plugin.get(name, ()))]
    return [_written(tool, namespace) for tool in tools if not tool.retired]


def _written(tool: catalog.Tool, namespace: str) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "name": catalog.name_at_server(tool, namespace),
        "title": tool.title,
        "description": tool.description,
        "input_schema": schema.mapping(tool.input_schema, dict(schema.EMPTY)),
        "output_schema": schema.mapping(tool.output_schema, None),
        "annotations": schema.mapping(tool.annotations, {}),
    }
    return {field: value for field, value in fields.items() if value}


def _definitions(plugin: catalog.Plugin, tools: Tools) -> list[importing.Definition]:
    maximum = limits.Limits().tools
    if len(tools) > maximum:
        message = f"A declaration has at most {maximum} tools; this one has {len(tools)}."
        raise errors.Invalid([errors.Problem(path="tools", message=message)])
    listed = [_listed(tool, plugin.namespace) for tool in tools]
    definitions, problems = importing.definitions(
        listed, plugin.namespace, f"{plugin.name!r}", repairs_schemas=False
    )
    problems = [*(problem for tool in tools for problem in _unknown_fields(tool)), *problems]
    for definition in definitions:
        if definition.upstream_name:
            # The program would look for the tool under another name than the model calls it by.
            message = (
                f"{definition.name!r} cannot be the name of a tool. Call it {definition.key!r}, for example."
            )
            problems.append(errors.Problem(path=f"tools.{definition.name}", message=message))
    if problems:
        raise errors.Invalid(problems)
    return definitions


def _unknown_fields(tool: Mapping[str, Any]) -> Iterator[errors.Problem]:
    for field in tool:
        if field not in FIELDS:
            near = errors.nearest(field, FIELDS)
            hint = f"Did you mean {near[0]!r}?" if near else f"Known fields: {', '.join(FIELDS)}."
            path = f"tools.{tool.get('name')}.{field}"
            yield errors.Problem(path=path, message=f"The field {field!r} is not known here. {hint}")


def _listed(tool: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    """Return a declared tool as an MCP server would list it, without the plugin's namespace in its name."""
    listed = {FIELDS[field]: value for field, value in tool.items() if field in FIELDS and value is not None}
    listed.setdefault("inputSchema", dict(schema.EMPTY))
    name = listed.get("name")
    if isinstance(name, str):
        listed["name"] = _bare(name, namespace)
    return listed


def _bare(name: str, namespace: str) -> str:
    return name.removeprefix(namespace + keys.SEPARATOR) if namespace else name
