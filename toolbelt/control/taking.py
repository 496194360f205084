"""What does each tool that a server lists become, beside what there is of it already?

The rules are those of :func:`toolbelt.control.upstreams.record`; here a listed tool and its row become an entry.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

from toolbelt.control import provided, reviews
from toolbelt.core import belts, catalog, errors, schema
from toolbelt.plugins.upstream import importing


class Taking:
    """The tools of one answer being taken in: what each becomes, and which of those there were are not among them."""

    def __init__(
        self,
        definitions: Iterable[importing.Definition],
        *,
        stored: catalog.Catalog,
        known: belts.Known,
        plugin: catalog.Plugin,
        source: str,
    ) -> None:
        self._stored, self._known, self._plugin, self._source = stored, known, plugin, source
        definitions = list(definitions)
        self._there = [stored.tools[key] for key in stored.tools_of_plugin.get(plugin.name, ())]
        self._by_name = {catalog.name_at_server(tool, plugin.namespace): tool for tool in self._there}
        # A tool that is there keeps its key, whatever another one's name would become.
        self._kept = {
            now.key: made.name for made in definitions if (now := self._by_name.get(made.name)) is not None
        }
        for made in definitions:
            now = provided.in_another_case(made.key, plugin.name, stored, known)
            if now is not None and made.name not in self._by_name and now.key not in self._kept:
                self._by_name[made.name] = now
                self._kept[now.key] = made.name
        listed = {made.name for made in definitions}
        self._said_before = {
            said: tool.approved or catalog.version(tool)
            for tool in self._there
            if tool.retired or catalog.name_at_server(tool, plugin.namespace) not in listed
            for said in _texts(tool)
        }
        self._offered: set[str] = set()
        self.unseen: list[str] = []
        self.held: list[str] = []
        self.problems: list[errors.Problem] = []

    def taken(self, made: importing.Definition) -> Iterator[dict[str, Any]]:
        """Give the entry that the tool becomes; none if its key is somebody else's."""
        now = self._by_name.get(made.name)
        key = made.key if now is None else now.key
        if provided.is_taken(key, self._plugin.name, self._stored, self._known):
            self.problems.append(provided.taken("tools", key, self._source, self._stored, self._known))
            return
        owner = self._kept.get(key, made.name)
        if owner != made.name:
            message = (
                f"{key!r} is what {self._source} lists as {owner!r}: it goes without {made.name!r},"
                " which would be called so, too."
            )
            self.problems.append(errors.Problem(path=f"tools.{key}", message=message))
            return
        self._offered.add(key)
        if now is None:
            now = self._stored.tools.get(key)
        if now is None:
            yield self._new(made)
            return
        entry = {
            name: value for name, value in belts.entry("tool", now).items() if name not in reviews.FIELDS
        }
        entry.pop("retired", None)
        if now.upstream_name != made.name:
            entry.pop("upstream_name", None)
        # What it is called beside its key, and so its version, goes by the key that it keeps.
        made = dataclasses.replace(made, key=now.key)
        yield entry | _said(made) | self._holding(now, made)

    def gone(self) -> list[str]:
        """Name the tools that the server has no more."""
        return [tool.key for tool in self._there if tool.key not in self._offered and not tool.retired]

    def _new(self, made: importing.Definition) -> dict[str, Any]:
        # What says what a tool said that is gone may be that tool, which somebody may have denied.
        said = (made.description, schema.canonical(made.input_schema))
        before = self._said_before.get(said)
        held: dict[str, Any] = {"approved": made.version()}
        if before is not None or not self._plugin.trusted:
            self.unseen.append(made.key)
            # Trust passes over what is unseen, not over what is held to another version.
            held = {"seen": False} | ({} if before is None else {"approved": before})
        return {"key": made.key, "plugin": self._plugin.name, **_said(made), **held}

    def _holding(self, now: catalog.Tool, made: importing.Definition) -> dict[str, Any]:
        """Say which version the tool is held to, and what that said, if the server says something else now."""
        if not now.seen:
            return {}
        was = catalog.version(now)
        approved = now.approved or was
        listed = made.version()
        if listed == approved:
            return {"approved": approved, "approved_version": None}
        self.held.append(now.key)
        # Held already, it is what was approved that counts, and not what was held first.
        kept = reviews.as_shown(now) if was == approved else schema.mapping(now.approved_version, {})
        return {"approved": approved, "approved_version": dict(kept)}


def _texts(tool: catalog.Tool) -> Iterator[tuple[str, str]]:
    """Give what a tool says to models, now and as it was approved."""
    yield tool.description, tool.input_schema
    if tool.approved_version:
        approved = schema.mapping(tool.approved_version, {})
        yield approved.get("description", ""), schema.canonical(approved.get("input_schema", schema.EMPTY))


def _said(made: importing.Definition) -> dict[str, Any]:
    said: dict[str, Any] = {
        "title": made.title,
        "description": made.description,
        "input_schema": dict(made.input_schema),
        "output_schema": None if made.output_schema is None else dict(made.output_schema),
        "annotations": dict(made.annotations),
        "upstream_name": made.upstream_name,
    }
    return {field: value for field, value in said.items() if value not in ("", None)}
