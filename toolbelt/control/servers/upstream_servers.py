"""Upstream MCP servers: adding them, and recording what they list.

The rules of :func:`record`:

1. A new tool is unseen, so no agent has it; unless the server is trusted, and no tool that is gone had the same texts:
   that may be the same tool renamed, and denied under its old name. One that the plugin's ``reject_tools`` or
   ``reject_all_but`` leave out is rejected when it is first listed.
2. A tool's texts follow the server. Category, default and policy belong to operators.
3. A tool that was seen is held to that version, by the hash of its name, description and input schema. If the server
   lists something else, that is stored beside what was approved, and the tool is unavailable until the difference is
   approved. A name that changes only in case is such a difference: the tool keeps its key. Title, output schema and
   hints are not part of the hash: they follow at once. Details (the whole output schema, icons, ``_meta``) have
   their own hash: until they are approved, the tool is sent without them. A description that differs between the
   server's processes, or that an operator keeps, does not hold a tool (:mod:`toolbelt.core.imported.rewordings`).
4. A tool that the server no longer lists is retired; one that it lists again unchanged is available again.
5. Prompts, resources and templates follow the same rules. Everything that their server lists of them is part of the
   hash.
6. A tool that conflicts or is unusable is skipped, with a message. A server that could not be reached has failed, with
   its error, and keeps its tools.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolbelt.control import writing
from toolbelt.control.catalog import entries
from toolbelt.control.servers import approvals, instructions, rejections, tool_import, tool_writes
from toolbelt.core import belts, catalog, connections, errors, facts, keys, limits
from toolbelt.core.imported import importing, non_tool_importing, rewordings
from toolbelt.store import listings, snapshots, token_counts
from toolbelt.store import plugins as rows

SYSTEM = writing.by("toolbelt", via="system")
REASON = facts.LISTED
MAX_NOTIFIED = 200

ServerListing = importing.ServerListing
Listing = listings.Listing
Review = approvals.Review
Definitions = Sequence[importing.Definition]
review = approvals.review


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One upstream server in a list: its connection, its last answer, and the number of tools to review."""

    plugin: catalog.Plugin
    connection: connections.Connection
    tools: int
    to_review: Mapping[approvals.Kind, int]
    listing: Listing | None
    error: str

    @property
    def state(self) -> listings.State:
        """Return the state of the server."""
        return listings.state(self.plugin, self.listing)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTools:
    """The result of an answer: the tools that are new, changed, held, unseen, rejected in advance and retired, and the
    problems.

    The ``still_available`` have new details or state a higher risk, and the descriptions of the ``differing`` differ
    between processes: they await review without being held.
    """

    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    still_available: tuple[str, ...] = ()
    differing: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()
    problems: tuple[errors.Problem, ...] = ()
    error: str = ""


def servers() -> list[Server]:
    """Return the upstream servers, in stored order."""
    stored, failures, listed = snapshots.catalog(), rows.errors(), listings.load_all()
    return [
        Server(
            plugin=plugin,
            connection=connection,
            tools=sum(
                not stored.tools[key].retired and key not in stored.non_tools
                for key in stored.tools_of_plugin.get(name, ())
            ),
            to_review=collections.Counter(item.kind for item in approvals.to_review(name, stored)),
            listing=listed.get(name),
            error=failures.get(name, ""),
        )
        for name, plugin in stored.plugins.items()
        if plugin.upstream and (connection := connections.read(plugin.upstream)) is not None
    ]


def add(
    write: writing.Write,
    name: str,
    connection: Mapping[str, Any],
    *,
    namespace: str | None = None,
    title: str = "",
    category: str = "",
    trusted: bool = False,
) -> writing.Change:
    """Store a new upstream server; its tools are listed when it is next refreshed.

    ``connection`` is as in a belt: ``{"command": …}`` or ``{"url": …}``. The default namespace is derived from the
    name. Raise errors.Invalid with the path of each problem, or errors.Refused for a name that is taken or a command
    that is set through the web.
    """
    entry = {
        "name": name,
        "namespace": namespace_of(name) if namespace is None else namespace,
        "title": title,
        "category": category,
        "trusted": trusted,
        "upstream": dict(connection),
    }
    return entries.create(write, "plugin", {key: value for key, value in entry.items() if value})


def replace_connection(write: writing.Write, name: str, connection: Mapping[str, Any]) -> writing.Change:
    """Replace the connection of a server; the server keeps its tools with their approvals, and everything else.

    Raise errors.NotFound, or as :func:`add` does.
    """
    approvals.find(name, "upstream")
    return entries.change(write, "plugin", name, {"upstream": dict(connection)})


def namespace_of(name: str) -> str:
    """Return a namespace for a server's name."""
    fitted = keys.fit(name)[: keys.MAX_LENGTH - len(keys.SEPARATOR) - 1]
    while keys.SEPARATOR in fitted:
        fitted = fitted.replace(keys.SEPARATOR, "_")
    return fitted


def record(write: writing.Write, name: str, listed: ServerListing) -> RecordedTools:
    """Update the rows with the server's answer, by the rules above; raise errors.NotFound.

    The slow steps precede the transaction: texts are cleaned and schemas checked first.
    """
    plugin = approvals.find(name, "upstream")
    if listed.error:
        return _failed(write, plugin, listed)
    source = f"the server {name!r}"
    definitions, problems = _definitions(listed, plugin, source)

    again: dict[tuple[catalog.Kind, str], tuple[importing.Definition, ...]] = {}
    for other in listed.again:
        for definition in _definitions(other, plugin, source)[0]:
            place = definition.kind, definition.name
            again[place] = (*again.get(place, ()), definition)

    @functools.cache
    def is_same_server() -> bool:
        return listings.is_same_server(name, listed.server)

    def note(all_problems: Iterable[errors.Problem]) -> None:
        instructions.record(write, plugin, listed.instructions, is_same_server=is_same_server)
        listings.record_answer(
            name,
            protocol=listed.protocol,
            server=listed.server,
            tools=len(listed.tools),
            problems=_limited([*all_problems, *_notes(definitions)]),
            stderr=listed.stderr,
        )

    return store(
        write.replace(reason=write.reason or REASON),
        plugin,
        definitions,
        problems,
        complete=_complete(listed),
        source=source,
        note=note,
        evidence=rewordings.Evidence(again=again, is_same_server=is_same_server),
    )


def _definitions(
    listed: ServerListing, plugin: catalog.Plugin, source: str
) -> tuple[list[importing.Definition], list[errors.Problem]]:
    """Return the definitions of everything that a server lists, and the problems."""
    definitions, problems = importing.definitions(listed.tools, plugin.namespace, source)
    problems = [*listed.problems, *problems]
    for kind, entries_of_kind in listed.non_tools.items():
        taken_keys = [definition.key for definition in definitions]
        entry_definitions, left_out = non_tool_importing.definitions(
            kind, entries_of_kind, plugin.namespace, source, taken_keys
        )
        definitions += entry_definitions
        problems += left_out
        if kind == "resource":
            problems += _listed_by_others(entry_definitions, plugin.name)
    return definitions, problems


def store(
    write: writing.Write,
    plugin: catalog.Plugin,
    definitions: Sequence[importing.Definition],
    problems: Sequence[errors.Problem],
    *,
    complete: Collection[catalog.Kind],
    source: str,
    note: Callable[[Iterable[errors.Problem]], None],
    evidence: rewordings.Evidence | None = None,
    check: Callable[[catalog.Catalog], None] = lambda stored: None,
    adapt: Callable[[catalog.Catalog, Definitions], Definitions] = lambda stored, listed: listed,
) -> RecordedTools:
    """Update the rows with what the source of a plugin's tools offers, by the rules above.

    Of the ``complete`` kinds, tools that it does not offer are retired. ``note`` stores the answer with its problems,
    and ``check`` raises if the tools may not be stored; ``adapt`` returns the definitions to store, given what is
    stored. All of these run within the transaction. Tokens are counted before it. ``evidence`` is what else is known of
    a server.
    """
    counts = {(text := _model_json(definition)): token_counts.count(text) for definition in definitions}
    with writing.begin():
        stored, names = snapshots.catalog(), entries.name_index()
        now = approvals.find(plugin.name, *approvals.HELD, stored=stored)
        if (now.namespace, now.runner) != (plugin.namespace, plugin.runner):
            message = f"{plugin.name} changed while its tools were listed: try again."
            raise errors.Refused(message)
        check(stored)
        definitions = adapt(stored, definitions)
        write = write.observed_by(plugin.name, "server" if now.runner == "upstream" else "program").in_batch()
        if now.status == "failed":
            entries.change(write, "plugin", plugin.name, {"status": None})
        importer = tool_import.ToolImporter(
            definitions,
            stored=stored,
            names=names,
            plugin=now,
            source=source,
            evidence=evidence or rewordings.Evidence(),
        )
        to_write = [entry for definition in definitions for entry in importer.entries_for(definition)]
        gone = importer.gone(complete)
        to_write += [{**belts.entry("tool", stored.tools[key]), "retired": True} for key in gone]
        written = tool_writes.store_tools(
            write, to_write, source=source, stored=stored, names=names, counts=counts
        )
        rejected = rejections.reject_listed(write, now, written.created)
        all_problems = [*problems, *importer.problems, *written.problems]
        note(all_problems)
    created = frozenset(written.created)
    return RecordedTools(
        created=written.created,
        changed=tuple(key for key in written.changed if key not in gone),
        held=tuple(key for key in importer.held if key in written.changed),
        still_available=tuple(key for key in importer.still_available if key in written.changed),
        differing=tuple(key for key in importer.differing if key in written.changed),
        unseen=tuple(key for key in importer.unseen if key in created and key not in rejected),
        rejected=rejected,
        retired=tuple(gone),
        problems=tuple(all_problems),
    )


def with_all_new(name: str, recorded: RecordedTools) -> RecordedTools:
    """Return the result for a server that was just added: all its tools are new, even if they are already recorded."""
    if recorded.error or recorded.created:
        return recorded
    stored = snapshots.catalog()
    keys_ = tuple(key for key in stored.tools_of_plugin.get(name, ()) if not stored.tools[key].retired)
    return dataclasses.replace(
        recorded, created=keys_, unseen=tuple(key for key in keys_ if not stored.tools[key].seen)
    )


def record_unsolicited(name: str, listed: ServerListing) -> None:
    """Record what a server sent to a process without being asked.

    If a call could not reach the server, that is only noted: the server does not count as failed, and the next call
    tries again.
    """
    if listed.error:
        with writing.begin():
            _record_failure(name, listed)
        return
    try:
        record(SYSTEM, name, listed)
    except errors.NotFound:
        # The server was removed meanwhile.
        return


def _failed(write: writing.Write, plugin: catalog.Plugin, listed: ServerListing) -> RecordedTools:
    with writing.begin():
        now = snapshots.catalog().plugins.get(plugin.name)
        # Without a sign-in, it has not failed: its tools stay as they are, and calls are answered with the reason.
        if now is not None and now.status != "failed" and not listed.sign_in_needed:
            write = write.observed_by(plugin.name, "server")
            write = write.replace(reason=listed.error[: limits.REASON_LENGTH])
            entries.change(write, "plugin", plugin.name, {"status": "failed"})
        if not listed.sign_in_needed:
            rows.set_error(plugin.name, listed.error)
        _record_failure(plugin.name, listed)
    return RecordedTools(error=listed.error)


def _record_failure(name: str, listed: ServerListing) -> None:
    listings.record_failure(
        name, error=listed.error, sign_in_needed=listed.sign_in_needed, stderr=listed.stderr
    )


def _notes(definitions: Iterable[importing.Definition]) -> list[errors.Problem]:
    """Return a note for each change that was made to the listed tools to store them."""
    return [
        errors.Problem(path=f"tools.{definition.key}", message=note)
        for definition in definitions
        for note in definition.changes
    ]


def _limited(problems: list[errors.Problem]) -> list[errors.Problem]:
    """Return at most as many problems as an operator can read; the rest is counted."""
    if len(problems) <= MAX_NOTIFIED:
        return problems
    more = errors.Problem(path="", message=f"And {len(problems) - MAX_NOTIFIED} more.")
    return [*problems[:MAX_NOTIFIED], more]


def _listed_by_others(resources: Iterable[importing.Definition], name: str) -> Iterator[errors.Problem]:
    """Yield a problem for each resource that another server lists too: the first server in stored order answers."""
    stored = snapshots.catalog()
    owners = {
        tool.upstream_name: tool.plugin
        for tool in stored.tools.values()
        if tool.kind == "resource" and tool.plugin != name and not tool.retired
    }
    for resource in resources:
        if owner := owners.get(resource.name):
            message = (
                f"The server {owner!r} lists {resource.name}, too: if an agent has both, the server that comes first in"
                " the list of plugins answers."
            )
            yield errors.Problem(path=f"resources.{resource.name}", message=message)


def _complete(listed: ServerListing) -> set[catalog.Kind]:
    """Return the kinds that the answer lists completely."""
    tools: set[catalog.Kind] = {"tool"} if listed.is_complete else set()
    return tools | (listed.non_tools.keys() - listed.truncated_kinds)


def _model_json(definition: importing.Definition) -> str:
    return catalog.model_json(definition.key, definition.description, definition.input_schema)
