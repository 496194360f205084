"""Conversion of the tools that a server lists to entries, given what is stored.

The rules are those of `upstream_servers.record`; this module applies them to one listed tool and its row.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from toolbelt.control.servers import approvals, tool_writes
from toolbelt.core import belts, catalog, errors, keys, risks, schema, tool_versions
from toolbelt.core.imported import importing, rewordings


class ToolImporter:
    """A converter of the tools of one answer to entries, which also finds the stored tools that are missing from it."""

    def __init__(
        self,
        definitions: Iterable[importing.Definition],
        *,
        stored: catalog.Catalog,
        names: belts.NameIndex,
        plugin: catalog.Plugin,
        source: str,
        evidence: rewordings.Evidence,
    ) -> None:
        self._stored, self._names, self._plugin, self._source = stored, names, plugin, source
        self._evidence = evidence
        definitions = list(definitions)
        # Whether the server may ask users is only for operators to set: no listed entry may take its key.
        asking_entry = catalog.elicitation(stored, plugin)
        self._reserved = keys.fold(asking_entry.key) if asking_entry is not None else ""
        self._existing = [
            tool
            for key in stored.tools_of_plugin.get(plugin.name, ())
            if (tool := stored.tools[key]).kind != "elicitation"
        ]
        self._by_name = {
            (tool.kind, catalog.name_at_server(tool, plugin.namespace)): tool for tool in self._existing
        }
        # An existing tool keeps its key, whatever key another tool's name would result in.
        self._names_by_key = {
            now.key: definition.name
            for definition in definitions
            if (now := self._by_name.get(_name(definition))) is not None
        }
        for definition in definitions:
            now = tool_writes.find_ignoring_case(definition.key, plugin.name, stored, names)
            if (
                now is not None
                and _name(definition) not in self._by_name
                and now.key not in self._names_by_key
            ):
                self._by_name[_name(definition)] = now
                self._names_by_key[now.key] = definition.name
        listed = {_name(definition) for definition in definitions}
        self._versions_of_missing = {
            texts: tool.approved or tool_versions.version(tool)
            for tool in self._existing
            if tool.retired or (tool.kind, catalog.name_at_server(tool, plugin.namespace)) not in listed
            for texts in _texts(tool)
        }
        self._offered: set[str] = set()
        self.unseen: list[str] = []
        self.held: list[str] = []
        self.still_available: list[str] = []
        self.differing: list[str] = []
        self.problems: list[errors.Problem] = []

    def entries_for(self, definition: importing.Definition) -> Iterator[dict[str, Any]]:
        """Yield the entry that the tool becomes; nothing if its key is taken by another owner."""
        now = self._by_name.get(_name(definition))
        key = definition.key if now is None else now.key
        if keys.fold(key) == self._reserved:
            message = (
                f"{key!r} is the entry that lets the server ask users: {self._source} does not get this tool."
            )
            self.problems.append(errors.Problem(path=f"tools.{key}", message=message))
            return
        if tool_writes.is_taken(key, self._plugin.name, self._stored, self._names):
            self.problems.append(
                tool_writes.taken_problem("tools", key, self._source, self._stored, self._names)
            )
            return
        owner = self._names_by_key.get(key, definition.name)
        if owner != definition.name:
            message = (
                f"{key!r} is what {self._source} lists as {owner!r}: it does not get {definition.name!r},"
                " which would have the same key."
            )
            self.problems.append(errors.Problem(path=f"tools.{key}", message=message))
            return
        self._offered.add(key)
        if now is None:
            now = self._stored.tools.get(key)
        if now is None:
            yield self._new(definition)
            return
        entry = {
            name: value for name, value in belts.entry("tool", now).items() if name not in approvals.FIELDS
        }
        entry.pop("retired", None)
        entry.pop("kind", None)
        entry.pop("seen", None)
        entry.pop("varies", None)
        if now.upstream_name != definition.name:
            entry.pop("upstream_name", None)
        # The version depends on the key, which an existing tool keeps.
        definition = dataclasses.replace(definition, key=now.key)
        varies = False
        if not self._is_preapproved(definition):
            definition, varies = rewordings.settled(now, self._plugin, definition, self._evidence)
        if varies:
            entry["varies"] = True
        yield entry | _listed_fields(definition) | self._approval(now, definition, varies)

    def gone(self, kinds: Collection[catalog.Kind]) -> list[str]:
        """Return the keys of these kinds that the server no longer has."""
        return [
            tool.key
            for tool in self._existing
            if tool.kind in kinds and tool.key not in self._offered and not tool.retired
        ]

    def _new(self, definition: importing.Definition) -> dict[str, Any]:
        # A new tool with the texts of a missing one may be the same tool, which an operator may have denied.
        texts = (definition.kind, definition.description, schema.canonical(definition.input_schema))
        before = self._versions_of_missing.get(texts)
        approval: dict[str, Any] = {"approved": definition.version()}
        if definition.details and definition.kind == "tool":
            approval["details_approved"] = _details_version(definition)
        if self._is_preapproved(definition):
            # Its hash does not cover the details.
            approval.pop("details_approved", None)
        elif before is not None or not self._plugin.trusted:
            self.unseen.append(definition.key)
            # Trust covers tools that are unseen, but not those that are held to another version.
            approval = {"seen": False} | ({} if before is None else {"approved": before})
        return {"key": definition.key, "plugin": self._plugin.name, **_listed_fields(definition), **approval}

    def _approval(self, now: catalog.Tool, definition: importing.Definition, varies: bool) -> dict[str, Any]:
        """Return the approved version of the tool, and its texts if the server lists something else now."""
        now = tool_versions.renumbered(now)
        stored_version = tool_versions.version(now)
        if tool_versions.is_rejected(now) and definition.version() == stored_version:
            return {"approved": now.approved} | ({} if now.seen else {"seen": False})
        is_preapproved = self._is_preapproved(definition)
        if not now.seen and not is_preapproved:
            return {"seen": False}
        approved = definition.version() if is_preapproved else now.approved or stored_version
        approval: dict[str, Any] = {"approved": approved}
        approved_details = now.details_approved
        if self._plugin.trusted and definition.details and definition.kind == "tool":
            approved_details = _details_version(definition)
        if approved_details:
            approval["details_approved"] = approved_details
        is_held = not tool_versions.is_version(definition.tool(), approved)
        if is_held:
            (self.differing if varies else self.held).append(now.key)
        # If a version is in review already, the approved texts are kept, not those of that version.
        is_in_review = (
            not tool_versions.is_version(now, now.approved or stored_version)
            or bool(now.approved_version)
            or tool_versions.has_undecided_details(now)
        )
        approved_fields = (
            schema.mapping(now.approved_version, {}) if is_in_review else approvals.as_shown(now)
        )
        listed = dataclasses.replace(
            now,
            approved=approved,
            annotations=schema.canonical(definition.annotations) if definition.annotations else "",
            details=definition.details_text,
            details_approved=approved_details,
            approved_version=schema.canonical(approved_fields),
        )
        if not is_held:
            if not tool_versions.has_undecided_details(listed) and not risks.is_raised(listed):
                return approval | {"approved_version": None}
            self.still_available.append(now.key)
        return approval | {"approved_version": dict(approved_fields)}

    def _is_preapproved(self, definition: importing.Definition) -> bool:
        """Return whether an operator approved this version before it was listed."""
        return self._plugin.preapproved.get(definition.key) == definition.version()


def _name(definition: importing.Definition) -> tuple[catalog.Kind, str]:
    return definition.kind, definition.name


def _texts(tool: catalog.Tool) -> Iterator[tuple[str, str, str]]:
    """Yield a tool's texts for models, current and approved; none for a resource, which its URI identifies."""
    if tool.kind != "tool" and not tool.description:
        return
    yield tool.kind, tool.description, tool.input_schema
    if tool.approved_version:
        approved = schema.mapping(tool.approved_version, {})
        yield (
            tool.kind,
            approved.get("description", ""),
            schema.canonical(approved.get("input_schema", schema.EMPTY)),
        )


def _details_version(definition: importing.Definition) -> str:
    return tool_versions.details_version(catalog.Tool(key=definition.key, details=definition.details_text))


def _listed_fields(definition: importing.Definition) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "kind": definition.kind if definition.kind != "tool" else None,
        "title": definition.title,
        "description": definition.description,
        "input_schema": dict(definition.input_schema),
        "output_schema": None if definition.output_schema is None else dict(definition.output_schema),
        "annotations": dict(definition.annotations),
        "upstream_name": definition.upstream_name,
        "details": dict(definition.details) or None,
    }
    return {field: value for field, value in fields.items() if value not in ("", None)}
