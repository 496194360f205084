"""References within a schema that a server lists: to its own ``$id``, to anchors, and to nothing.

Nothing is ever fetched. What a reference means is a place in the same document, or it is left out.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from toolbelt.core.imported import keyword_shapes, repairs

_REFERENCES = ("$ref", "$dynamicRef")
# Where definitions are kept, by the names that references end with.
_DEFINITIONS = ("/$defs", "/definitions", "/components/schemas")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A repair of what is at this pointer."""

    pointer: str
    code: repairs.Code
    found: Any
    read: Any = keyword_shapes.ABSENT


@dataclass(frozen=True, slots=True)
class Resource:
    """A schema with an ``$id``, or the whole document: its address and its pointer."""

    uri: str
    pointer: str


@dataclass(slots=True)
class _Use:
    """A reference in a schema at a pointer, and what resource it is in."""

    schema: dict[str, Any]
    keyword: str
    pointer: str
    within: Resource


def escaped(name: str) -> str:
    """Return a name as a part of a JSON Pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def names(pointer: str) -> list[str]:
    """Return the names in a JSON Pointer."""
    return [name.replace("~1", "/").replace("~0", "~") for name in pointer.split("/")[1:]]


class Index:
    """What can be referred to in a document, and its references."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self.whole = Resource("", "")
        self._resources: dict[str, Resource] = {}
        # The schemas with an ``$id`` within the document.
        self._nested: list[tuple[dict[str, Any], Resource]] = []
        self._anchors: dict[str, str] = {}
        self._uses: list[_Use] = []
        self._followed = 0
        self._changes: list[Change] = []
        self._has_dynamic = False

    def add(self, schema: dict[str, Any], pointer: str, within: Resource) -> Resource:
        """Add a schema in a resource, whose keywords have their shapes. Return the resource of the schemas in it."""
        within = self._identify(schema, pointer, within)
        for keyword in ("$anchor", "$dynamicAnchor"):
            if keyword in schema:
                self._anchors.setdefault(schema[keyword], pointer)
        self._has_dynamic |= "$dynamicRef" in schema
        self._uses += [_Use(schema, keyword, pointer, within) for keyword in _REFERENCES if keyword in schema]
        return within

    def unvisited(self, visited: set[int]) -> Iterator[tuple[dict[str, Any], str]]:
        """Yield the schemas that references lead to and that were not visited, with their pointers. Each reference is
        followed once.
        """
        uses, self._followed = self._uses[self._followed :], len(self._uses)
        for use in uses:
            pointer = self._target(use)
            if pointer is None:
                pointer = self._by_name(use.schema[use.keyword])
            if (
                pointer is not None
                and isinstance(target := self._at(pointer), dict)
                and id(target) not in visited
            ):
                yield target, pointer

    def resolved(self) -> list[Change]:
        """Write each reference as a path in the document, or leave it out, and return what was changed."""
        is_flat = bool(self._nested) and not self._has_dynamic
        for use in self._uses:
            self._resolve(use, is_flat)
        if is_flat:
            for schema, resource in self._nested:
                place = f"{resource.pointer}/$id"
                self._changes.append(Change(pointer=place, code="form", found=schema.pop("$id")))
        self._end_circles()
        return self._changes

    def _identify(self, schema: dict[str, Any], pointer: str, within: Resource) -> Resource:
        """Note what a schema is called, and return the resource that it is in. An ``$id`` that is only a fragment is an
        anchor, as up to draft 7.
        """
        stated = schema.get("$id", schema.get("id"))
        if not isinstance(stated, str):
            return within
        if stated.startswith("#") or not _is_address(stated):
            if stated.startswith("#"):
                self._anchors.setdefault(stated[1:], pointer)
            if schema.get("$id") == stated and (pointer or stated != "#"):
                self._changes.append(Change(pointer=f"{pointer}/$id", code="form", found=schema.pop("$id")))
            return within
        resource = Resource(_address(urllib.parse.urljoin(within.uri, stated)), pointer)
        self._resources.setdefault(resource.uri, resource)
        self._resources.setdefault(_address(stated), resource)
        if not pointer:
            self.whole = resource
        elif "$id" in schema:
            self._nested.append((schema, resource))
        else:
            return within
        return resource

    def _target(self, use: _Use) -> str | None:
        """Return the pointer of the place that a reference leads to; None if there is none in the document."""
        reference = use.schema[use.keyword]
        resource = use.within
        if reference and not reference.startswith("#"):
            try:
                uri, _, fragment = urllib.parse.urljoin(use.within.uri, reference).partition("#")
            except ValueError:
                return None
            known = self._resources.get(_address(uri)) or self._resources.get(
                _address(reference.partition("#")[0])
            )
            if known is None:
                return None
            resource = known
        else:
            fragment = reference[1:]
        if fragment and not fragment.startswith("/"):
            return self._anchors.get(urllib.parse.unquote(fragment))
        pointer = resource.pointer + urllib.parse.unquote(fragment)
        return pointer if isinstance(self._at(pointer), dict | bool) else None

    def _at(self, pointer: str) -> Any:
        """Return the schema at a pointer; None if there is something else."""
        value: Any = self._root
        # What the value is: a schema, schemas by name or in a list, or what no keyword describes.
        holds = "schema"
        for name in names(pointer):
            if isinstance(value, dict) and name in value:
                shape = keyword_shapes.SHAPES.get(name) if holds == "schema" else None
                if shape is not None and not shape.holds:
                    return None
                holds = "schema" if holds in ("names", "list") else shape.holds if shape else "unknown"
                value = value[name]
            elif isinstance(value, list) and name.isdecimal() and len(name) < 6 and int(name) < len(value):
                value, holds = value[int(name)], "schema" if holds != "unknown" else holds
            else:
                return None
        return value if holds in ("schema", "unknown") and isinstance(value, dict | bool) else None

    def _resolve(self, use: _Use, is_flat: bool) -> None:
        reference, pointer = use.schema[use.keyword], self._target(use)
        place = f"{use.pointer}/{use.keyword}"
        if pointer is None:
            code: repairs.Code = "name"
            pointer = self._by_name(reference)
        elif reference.startswith("#") and not (is_flat and use.within.pointer):
            return
        else:
            code = "reference"
        if pointer is None:
            is_external = not reference.startswith("#") and ":" in reference
            self._leave_out(use, "external" if is_external else "dangling")
            return
        use.schema[use.keyword] = "#" + urllib.parse.quote(pointer, safe="/~$")
        read = use.schema[use.keyword]
        self._changes.append(Change(pointer=place, code=code, found=reference, read=read))

    def _by_name(self, reference: str) -> str | None:
        """Return the pointer of the one definition that has the name at the reference's end."""
        if ":" in reference:
            return None
        name = escaped(names("/" + urllib.parse.unquote(reference).lstrip("#/"))[-1])
        found = [place for folder in _DEFINITIONS if self._at(place := f"{folder}/{name}") is not None]
        return found[0] if len(found) == 1 and name else None

    def _leave_out(self, use: _Use, code: repairs.Code) -> None:
        if use.keyword in use.schema:
            found = use.schema.pop(use.keyword)
            self._changes.append(Change(pointer=f"{use.pointer}/{use.keyword}", code=code, found=found))

    def target(self, reference: str) -> Any:
        """Return the schema that a resolved reference leads to; None if there is none."""
        pointer = self._target(_Use({"$ref": reference}, "$ref", "", self.whole))
        return None if pointer is None else self._at(pointer)

    def _end_circles(self) -> None:
        """Leave out a reference of each circle of schemas that apply to the same value."""
        uses: dict[int, list[_Use]] = {}
        for use in self._uses:
            if use.keyword in use.schema:
                uses.setdefault(id(use.schema), []).append(use)

        def applied(schema: dict[str, Any]) -> Iterator[tuple[Any, _Use | None]]:
            """Yield the schemas that a schema applies to the same value, each with the reference that leads there."""
            for use in uses.get(id(schema), ()):
                if use.keyword in schema:
                    yield self.target(schema[use.keyword]), use
            for part in keyword_shapes.in_place(schema):
                yield part, None

        opened: set[int] = set()
        ended: set[int] = set()
        for start in self._uses:
            path: list[tuple[int, _Use | None, Iterator[tuple[Any, _Use | None]]]] = []
            entered: tuple[Any, _Use | None] | None = (start.schema, None)
            while entered is not None or path:
                if entered is not None and id(entered[0]) in opened:
                    # A part is within its schema, so each circle has a reference: the last one on the path to here.
                    closing = entered[1] or next(via for _, via, _ in reversed(path) if via is not None)
                    self._leave_out(closing, "circular")
                elif entered is not None and isinstance(entered[0], dict) and id(entered[0]) not in ended:
                    opened.add(id(entered[0]))
                    path.append((id(entered[0]), entered[1], applied(entered[0])))
                if not path:
                    break
                entered = next(path[-1][2], None)
                if entered is None:
                    left = path.pop()[0]
                    opened.discard(left)
                    ended.add(left)


def _address(uri: str) -> str:
    return uri.partition("#")[0]


def _is_address(stated: str) -> bool:
    """Return whether an ``$id`` can be the address of a schema."""
    try:
        return urllib.parse.urlsplit(stated) is not None and "#" not in stated.rstrip("#")
    except ValueError:
        return False
