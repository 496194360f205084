"""Conversion of the tools that a server lists to entries, given what is stored.

The rules are those of `upstream_servers.record`; this module applies them to one listed tool and its row.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from toolbelt.control.servers import approvals, tool_writes
from toolbelt.core import belts, catalog, errors, keys, risks, schema, tool_versions
from toolbelt.core.imported import importing, non_tool_importing, rejections, repairs, rewordings


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
        self._existing = [
            tool
            for key in stored.tools_of_plugin.get(plugin.name, ())
            if (tool := stored.tools[key]).kind != "elicitation"
        ]
        self._by_name = {
            (tool.kind, catalog.name_at_server(tool, plugin.namespace)): tool for tool in self._existing
        }
        listed = {_name(definition) for definition in definitions}
        # An existing tool keeps its key, whatever key another tool's name would result in.
        self._owners = {keys.fold(now.key): name for name, now in self._by_name.items() if name in listed}
        # Whether the server may ask users is only for operators to set: no listed entry may take its key.
        if (asking_entry := catalog.elicitation(stored, plugin)) is not None:
            self._owners[keys.fold(asking_entry.key)] = ("elicitation", asking_entry.key)
        for definition in definitions:
            now = tool_writes.find_ignoring_case(definition.key, plugin.name, stored, names)
            if (
                now is not None
                and _name(definition) not in self._by_name
                and keys.fold(now.key) not in self._owners
            ):
                self._by_name[_name(definition)] = now
                self._owners[keys.fold(now.key)] = _name(definition)
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
        name = _name(definition)
        now = self._by_name.get(name)
        if now is None and self._owners.get(keys.fold(definition.key), name) != name:
            own_key = importing.with_own_key if definition.kind == "tool" else non_tool_importing.with_own_key
            definition = own_key(definition, self._plugin.namespace)
        key = definition.key if now is None else now.key
        if tool_writes.is_taken(key, self._plugin.name, self._stored, self._names):
            self.problems.append(
                tool_writes.taken_problem("tools", key, self._source, self._stored, self._names)
            )
            return
        if (owner := self._owners.setdefault(keys.fold(key), name)) != name:
            message = (
                f"{key!r} is what {self._source} lists as {owner[1]!r}: it does not get {definition.name!r},"
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
        entry.pop("repairs", None)
        if now.upstream_name != definition.name:
            entry.pop("upstream_name", None)
        # The version depends on the key, which an existing tool keeps.
        definition = dataclasses.replace(definition, key=now.key)
        now, varies = tool_versions.renumbered(now), False
        if not self._is_preapproved(definition):
            definition, varies = rewordings.settled(now, self._plugin, definition, self._evidence)
        if varies:
            entry["varies"] = True
            # Agents keep the approved version, so it has to be that of the listing as it is read now.
            approved = tool_versions.approved_description(now)
            now = _as_read_now(now, dataclasses.replace(definition, description=approved))
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
        before = next(filter(None, map(self._versions_of_missing.get, _texts_of(definition))), None)
        approval: dict[str, Any] = {"approved": definition.version()}
        if definition.details and definition.kind == "tool":
            approval["details_approved"] = _details_version(definition)
        if self._is_preapproved(definition):
            # Its hash does not cover the details.
            approval.pop("details_approved", None)
        elif (
            before is not None
            or not self._plugin.trusted
            or rejections.is_rejected(self._plugin, definition.name)
        ):
            self.unseen.append(definition.key)
            # Trust covers tools that are unseen, but not those that are held to another version.
            approval = {"seen": False} | ({} if before is None else {"approved": before})
        return {"key": definition.key, "plugin": self._plugin.name, **_listed_fields(definition), **approval}

    def _approval(self, now: catalog.Tool, definition: importing.Definition, varies: bool) -> dict[str, Any]:
        """Return the approved version of the tool, and its texts if the server lists something else now."""
        now = _as_read_now(now, definition)
        stored_version = tool_versions.version(now)
        rejected = now.approved.removeprefix(tool_versions.REJECTED)
        if rejected != now.approved and tool_versions.is_version(definition.tool(), rejected):
            return {"approved": now.approved} | ({} if now.seen else {"seen": False})
        is_preapproved = self._is_preapproved(definition)
        if tool_versions.is_only_named(now) and now.seen and now.approved and not is_preapproved:
            return self._named_approval(now, definition)
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
            if not tool_versions.has_undecided_details(listed) and not risks.is_restated(listed):
                return approval | {"approved_version": None}
            self.still_available.append(now.key)
        return approval | {"approved_version": dict(approved_fields)}

    def _named_approval(self, now: catalog.Tool, definition: importing.Definition) -> dict[str, Any]:
        """Return the approval of a tool that a belt named, with the version that is approved and without its texts."""
        approval: dict[str, Any] = {"approved": now.approved}
        if now.details_approved:
            approval["details_approved"] = now.details_approved
        if not tool_versions.is_version(definition.tool(), now.approved):
            self.held.append(now.key)
            # It awaits review, although no text is known to compare with.
            approval["approved_version"] = {}
        return approval

    def _is_preapproved(self, definition: importing.Definition) -> bool:
        """Return whether an operator approved this version before it was listed."""
        return self._plugin.preapproved.get(definition.key) in definition.versions()


def _texts_of(definition: importing.Definition) -> Iterator[tuple[str, str, str]]:
    """Yield a definition's texts for models, as :func:`_texts` those of a tool, as they are and unrepaired."""
    for tool in (definition.tool(), definition.unrepaired()):
        if tool is not None:
            yield tool.kind, tool.description, tool.input_schema


def _name(definition: importing.Definition) -> tuple[catalog.Kind, str]:
    return definition.kind, definition.name


def _as_read_now(now: catalog.Tool, definition: importing.Definition) -> catalog.Tool:
    """Return the stored tool with what it shares with the listing as that is read now, in case it was read before
    schemas were repaired: nothing that an operator decided about this listing is to be decided again.
    """
    unrepaired = definition.unrepaired()
    if unrepaired is None:
        return now
    prefix = tool_versions.REJECTED if now.approved.startswith(tool_versions.REJECTED) else ""
    if tool_versions.is_version(unrepaired, now.approved.removeprefix(prefix)):
        now = dataclasses.replace(now, approved=prefix + definition.version())
    if tool_versions.version(unrepaired) == tool_versions.version(now):
        now = dataclasses.replace(now, input_schema=schema.canonical(definition.input_schema))
    return now


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
        "repairs": repairs.written(definition.repairs) or None,
    }
    return {field: value for field, value in fields.items() if value not in ("", None)}
