"""Plugins whose tools the agent's own program runs: the program declares them, and operators review them.

A declaration lists all tools of a plugin, and follows the rules of `upstream_servers.record`: its texts are as
untrusted as those of a server, and it grants nothing. Unlike a server's list it is taken whole or not at all, because
its sender can correct it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from toolbelt.control import writing
from toolbelt.control.servers import upstream_servers
from toolbelt.core import catalog, errors, facts, keys, schema
from toolbelt.plugins.upstream import importing, limits
from toolbelt.store import listings, snapshots

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
    write: writing.Write, name: str, tools: Tools, *, agent: str = "", was: Tools | None = None
) -> RecordedTools:
    """Store the tools that the agent's program runs, as the complete list of a plugin.

    Each tool has a ``name``, and optionally ``title``, ``description``, ``input_schema``, ``output_schema`` and
    ``annotations``. ``agent`` is the agent whose token declares them; empty for an operator. ``was`` is the list that
    the sender expects to be declared now. The same list again changes nothing.

    Raise errors.NotFound for a plugin that is not the client's or that this agent may not declare, errors.Invalid with
    the path of each problem, and errors.Stale if another list is declared.
    """
    plugin = find(name, agent)
    definitions = _definitions(plugin, tools)

    def check(stored: catalog.Catalog) -> None:
        _check(stored, name, agent)
        if was is not None and (now := _declared(stored, name)) != [dict(tool) for tool in was]:
            raise errors.Stale(name, [tool["name"] for tool in was], [tool["name"] for tool in now])

    def note(problems: Iterable[errors.Problem]) -> None:
        if problems := list(problems):
            raise errors.Invalid(problems)
        listings.record_answer(
            name, protocol="", server=write.actor.name, tools=len(definitions), problems=(), stderr=""
        )

    return upstream_servers.store(
        write.replace(reason=write.reason or REASON),
        plugin,
        definitions,
        (),
        complete={"tool"},
        source=f"the declaration of {name!r}",
        note=note,
        check=check,
    )


def find(name: str, agent: str = "") -> catalog.Plugin:
    """Return the plugin if its tools are declared, and if this agent may; raise errors.NotFound."""
    return _check(snapshots.catalog(), name, agent)


def declared(name: str, agent: str = "") -> list[dict[str, Any]]:
    """Return the tools that are declared now, by name, as :func:`declare` takes them; raise errors.NotFound."""
    find(name, agent)
    return _declared(snapshots.catalog(), name)


def declare_from_program(agent: str, plugin: str, tools: Tools) -> dict[str, Any]:
    """Declare the tools of an agent's program in this process; return the result as the API's response has it."""
    recorded = declare(writing.by(f"agent:{agent}", via="system", kind="agent"), plugin, tools, agent=agent)
    return document(recorded, keys_by_name(plugin, tools))


def document(recorded: RecordedTools, keys_of: Mapping[str, str]) -> dict[str, Any]:
    """Return the result of a declaration as JSON, with the key of each declared tool by its name."""
    return {
        "keys": dict(keys_of),
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


def _check(stored: catalog.Catalog, name: str, agent: str) -> catalog.Plugin:
    plugin = stored.plugins.get(name)
    if plugin is None or plugin.runner != "client" or (agent and agent not in plugin.declared_by):
        names = [
            other.name
            for other in stored.plugins.values()
            if other.runner == "client" and (not agent or agent in other.declared_by)
        ]
        raise errors.NotFound("client plugin", name, names)
    return plugin


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
    definitions, problems = importing.definitions(listed, plugin.namespace, f"{plugin.name!r}")
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
