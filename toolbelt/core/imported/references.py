"""References within a schema that a server lists: to its own ``$id``, to anchors, and to nothing.

Nothing is ever fetched. What a reference means is a place in the same document, or it is left out.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterator, Mapping
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
class _Resource:
    """A schema with an ``$id``, or the whole document: its address and its pointer."""

    uri: str
    pointer: str


@dataclass(slots=True)
class _Use:
    """A reference in a schema at a pointer, and what resource it is in."""

    schema: dict[str, Any]
    keyword: str
    pointer: str
    within: _Resource


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
        self._whole = _Resource("", "")
        self._resources: dict[str, _Resource] = {}
        # The schemas with an ``$id`` within the document, outermost first.
        self._nested: list[tuple[dict[str, Any], _Resource]] = []
        self._anchors: dict[str, str] = {}
        self._uses: list[_Use] = []
        self._changes: list[Change] = []
        self._has_dynamic = False

    def add(self, schema: dict[str, Any], pointer: str) -> None:
        """Add a schema whose keywords have their shapes."""
        self._identify(schema, pointer)
        for keyword in ("$anchor", "$dynamicAnchor"):
            if keyword in schema:
                self._anchors.setdefault(schema[keyword], pointer)
        self._has_dynamic |= "$dynamicRef" in schema
        self._uses += [
            _Use(schema, keyword, pointer, self._within(pointer))
            for keyword in _REFERENCES
            if keyword in schema
        ]

    def unvisited(self, visited: set[int]) -> Iterator[tuple[dict[str, Any], str]]:
        """Yield the schemas that references lead to and that were not visited, with their pointers."""
        for use in self._uses:
            pointer = self._target(use)
            target = self._at(pointer) if pointer is not None else None
            if isinstance(target, dict) and id(target) not in visited and pointer is not None:
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
        for use in self._uses:
            if self._is_circular(use.schema):
                self._leave_out(use, "circular")
        return self._changes

    def _identify(self, schema: dict[str, Any], pointer: str) -> None:
        """Note what a schema is called. An ``$id`` that is only a fragment is an anchor, as up to draft 7."""
        stated = schema.get("$id", schema.get("id"))
        if not isinstance(stated, str):
            return
        if stated.startswith("#") or not _is_address(stated):
            if stated.startswith("#"):
                self._anchors.setdefault(stated[1:], pointer)
            if schema.get("$id") == stated and (pointer or stated != "#"):
                self._changes.append(Change(pointer=f"{pointer}/$id", code="form", found=schema.pop("$id")))
            return
        base = self._within(pointer).uri
        resource = _Resource(_address(urllib.parse.urljoin(base, stated)), pointer)
        self._resources.setdefault(resource.uri, resource)
        self._resources.setdefault(_address(stated), resource)
        if not pointer:
            self._whole = resource
        elif "$id" in schema:
            self._nested.append((schema, resource))

    def _within(self, pointer: str) -> _Resource:
        """Return the innermost resource that a place is in."""
        found = self._whole
        for _, resource in self._nested:
            if f"{pointer}/".startswith(f"{resource.pointer}/") and len(resource.pointer) > len(
                found.pointer
            ):
                found = resource
        return found

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
            pointer = self._by_name(reference)
            if pointer is None:
                is_external = not reference.startswith("#") and ":" in reference
                self._leave_out(use, "external" if is_external else "dangling")
                return
            read = "#" + urllib.parse.quote(pointer, safe="/~$")
            self._changes.append(Change(pointer=place, code="name", found=reference, read=read))
        elif reference.startswith("#") and not (is_flat and use.within.pointer):
            return
        else:
            read = "#" + urllib.parse.quote(pointer, safe="/~$")
            self._changes.append(Change(pointer=place, code="reference", found=reference, read=read))
        use.schema[use.keyword] = read

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
        pointer = self._target(_Use({"$ref": reference}, "$ref", "", self._whole))
        return None if pointer is None else self._at(pointer)

    def _is_circular(self, schema: Mapping[str, Any]) -> bool:
        """Return whether a schema's reference leads back to it through nothing but references."""
        followed: set[int] = set()
        target: Any = schema
        while isinstance(target, dict) and isinstance(target.get("$ref"), str) and id(target) not in followed:
            followed.add(id(target))
            target = self.target(target["$ref"])
            if target is schema:
                return True
        return False


def _address(uri: str) -> str:
    return uri.partition("#")[0]


def _is_address(stated: str) -> bool:
    """Return whether an ``$id`` can be the address of a schema."""
    try:
        return urllib.parse.urlsplit(stated) is not None and "#" not in stated.rstrip("#")
    except ValueError:
        return False
