"""Repair of the schemas that servers list, so that a flaw that changes no meaning costs no tool.

A schema is repaired in one walk through its parts, by the table of :mod:`toolbelt.core.imported.keyword_shapes`. What
has one reading gets it, what only describes and has the wrong type is left out, and what cannot be used is left out as
a finding: a repaired schema never accepts less than its server wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolbelt.core.imported import keyword_shapes, references, repairs

INPUT, OUTPUT = "inputSchema", "outputSchema"
_DECLARES_CURRENT = "2020-12"
# Keywords of which one schema must fit the same value, and how deep such schemas are followed.
_ALTERNATIVES = ("anyOf", "oneOf")
_MAX_FOLLOWED = 4


def arguments(document: Any) -> tuple[dict[str, Any], repairs.Repairs]:
    """Return a tool's input schema, repaired in place, and the repairs. It always accepts an object."""
    if document is None:
        return {}, (repairs.Repair(path=INPUT, code="missing"),)
    schema = keyword_shapes.schema(document, {})
    if schema is not True and not isinstance(schema, dict):
        return {}, (repairs.Repair(path=INPUT, code="arguments", found=repairs.quoted(document)),)
    repairing = _Repairing(INPUT)
    if schema is not document or schema is True:
        schema = {} if schema is True else schema
        repairing.note("", "form", document, schema)
    index = repairing.repair(schema)
    if not _accepts_objects({"type": schema.get("type", "object")}, index):
        repairing.note("/type", "arguments", schema["type"])
        schema["type"] = "object"
    for keyword in ("$ref", "allOf", "anyOf", "const", "enum", "oneOf"):
        if keyword in schema and not _accepts_objects({keyword: schema[keyword]}, index):
            repairing.note(f"/{keyword}", "arguments", schema.pop(keyword))
    _name_object(schema, repairing)
    return schema, repairing.made


def result(document: dict[str, Any]) -> tuple[dict[str, Any], repairs.Repairs]:
    """Return a tool's output schema, repaired in place, and the repairs."""
    repairing = _Repairing(OUTPUT)
    repairing.repair(document)
    _name_object(document, repairing)
    return document, repairing.made


def _name_object(schema: dict[str, Any], repairing: _Repairing) -> None:
    """Reduce a list of types to ``object``, which arguments and structured results always are."""
    if isinstance(stated := schema.get("type"), list) and "object" in stated:
        schema["type"] = "object"
        repairing.note("/type", "form", stated, "object")


def _accepts_objects(schema: Any, index: references.Index) -> bool:
    """Return whether an object may fit a repaired schema, by its types and alternatives."""
    answers: dict[tuple[int, int], bool] = {}

    def accepts(part: Any, depth: int) -> bool:
        """Return the answer for a part, found once at each depth: many references may lead to it."""
        if not isinstance(part, dict) or depth > _MAX_FOLLOWED:
            return part is not False
        key = (id(part), depth)
        if key not in answers:
            answers[key] = _is_open(part) and applied_accept(part, depth + 1)
        return answers[key]

    def applied_accept(part: dict[str, Any], depth: int) -> bool:
        """Return the answer for the schemas that a part applies to the same value."""
        return (
            ("$ref" not in part or accepts(index.target(part["$ref"]), depth))
            and all(accepts(branch, depth) for branch in part.get("allOf", ()))
            and all(
                any(accepts(branch, depth) for branch in part[word]) for word in _ALTERNATIVES if word in part
            )
        )

    return accepts(schema, 0)


def _is_open(schema: dict[str, Any]) -> bool:
    """Return whether a schema's types and listed values admit an object."""
    stated = schema.get("type", "object")
    values = [schema["const"]] if "const" in schema else schema.get("enum", [{}])
    return "object" in (stated if isinstance(stated, list) else [stated]) and any(
        isinstance(value, dict) for value in values
    )


class _Repairing:
    """The repair of one schema, part by part; a part is named by its JSON Pointer."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._found: list[repairs.Repair] = []
        self._waiting: list[tuple[dict[str, Any], str, references.Resource]] = []
        self._visited: set[int] = set()
        self._has_older_form = False
        # The schemas that declare the current draft.
        self._declaring: list[tuple[dict[str, Any], str]] = []

    @property
    def made(self) -> repairs.Repairs:
        """Return what was repaired so far."""
        return tuple(self._found)

    def note(self, pointer: str, code: repairs.Code, found: Any, read: Any = keyword_shapes.ABSENT) -> None:
        """Note a repair of what is at this pointer."""
        words = repairs.ANYTHING if code == "type" else repairs.NOTHING
        self._found.append(
            repairs.Repair(
                path=repairs.path(self._name, *references.names(pointer)),
                code=code,
                found=repairs.quoted(found),
                read=words if read is keyword_shapes.ABSENT else repairs.quoted(read),
            )
        )

    def repair(self, root: dict[str, Any]) -> references.Index:
        """Repair a schema in place; return what can be referred to in it."""
        index = references.Index(root)
        self._waiting.append((root, "", index.whole))
        while self._waiting:
            while self._waiting:
                schema, pointer, within = self._waiting.pop()
                if id(schema) not in self._visited:
                    self._visited.add(id(schema))
                    inner = self._part(schema, pointer)
                    resource = index.add(schema, pointer, within)
                    self._waiting += [(part, place, resource) for part, place in inner]
            # What a reference leads to may be where no keyword has a schema, as in OpenAPI's components.
            self._waiting += [(*found, index.whole) for found in index.unvisited(self._visited)]
        for declaring, pointer in self._declaring if self._has_older_form else ():
            self.note(f"{pointer}/$schema", "draft", declaring.pop("$schema"))
        for change in index.resolved():
            self.note(change.pointer, change.code, change.found, change.read)
        return index

    def _part(self, schema: dict[str, Any], pointer: str) -> list[tuple[dict[str, Any], str]]:
        """Repair one schema's own keywords, and return the schemas in it with their pointers."""
        parts: list[tuple[dict[str, Any], str]] = []
        for keyword, value in [*schema.items()]:
            shape = keyword_shapes.SHAPES.get(keyword)
            if shape is None:
                continue
            place = f"{pointer}/{references.escaped(keyword)}"
            read = self._read(shape, keyword, value, schema, place)
            self._has_older_form |= keyword == "items" and isinstance(read, list)
            self._has_older_form |= keyword.startswith("exclusive") and isinstance(read, bool)
            if shape.holds and isinstance(read, dict | list):
                parts += self._inner(shape, keyword, read, place)
        if _DECLARES_CURRENT in str(schema.get("$schema", "")):
            self._declaring.append((schema, pointer))
        self._lift_required(schema, pointer)
        return parts

    def _read(
        self, shape: keyword_shapes.Shape, keyword: str, value: Any, schema: dict[str, Any], place: str
    ) -> Any:
        """Return the value of a keyword in its shape, after writing it into the schema."""
        if value is None and not shape.may_be_null:
            read: Any = keyword_shapes.ABSENT
        else:
            read = shape.read(value, schema)
        if read is value:
            return value
        if read is keyword_shapes.UNUSABLE or read is keyword_shapes.ABSENT:
            del schema[keyword]
        else:
            schema[keyword] = read
        if read is keyword_shapes.UNUSABLE:
            self.note(place, "annotation" if shape.annotates else "unusable", value)
        elif keyword == "type" and keyword_shapes.is_misspelled(value):
            self.note(place, "type", value, read)
        else:
            self.note(place, "form", value, read)
        return read

    def _inner(
        self, shape: keyword_shapes.Shape, keyword: str, value: dict[str, Any] | list[Any], place: str
    ) -> Iterator[tuple[dict[str, Any], str]]:
        """Yield the schemas in the value of a keyword, with their pointers; what is no schema is replaced first."""
        if shape.holds == "schema" and isinstance(value, dict):
            yield value, place
            return
        inner = [*value.items()] if isinstance(value, dict) else [*enumerate(value)]
        for name, schema in inner:
            if keyword == "dependencies" and isinstance(schema, list):
                continue
            position: Any = name
            below = f"{place}/{references.escaped(str(name))}"
            read = keyword_shapes.schema(schema, {})
            if schema is None:
                read = {"type": "null"} if keyword in ("anyOf", "oneOf") else {}
            if read is keyword_shapes.UNUSABLE:
                self.note(below, "unusable", schema)
                read = {}
            elif read is not schema and isinstance(read, dict) and "type" in read and schema is not None:
                self.note(below, "type", schema, read)
            elif read is not schema:
                self.note(below, "form", schema, read)
            value[position] = read
            if isinstance(read, dict):
                yield read, below

    def _lift_required(self, schema: dict[str, Any], pointer: str) -> None:
        """Move ``required: true`` of properties, as up to draft 3, to the schema of their object."""
        properties = schema.get("properties")
        if not isinstance(properties, dict):
            return
        lifted = []
        for name, inner in properties.items():
            if not isinstance(inner, Mapping) or not isinstance(inner.get("required"), bool | str):
                continue
            stated = inner["required"]
            is_required = keyword_shapes.yes_or_no(stated, {})
            named = inner.get("properties")
            if not isinstance(is_required, bool) or (isinstance(named, dict) and stated in named):
                continue
            place = f"{pointer}/properties/{references.escaped(name)}/required"
            del properties[name]["required"]
            if is_required:
                lifted.append(name)
            self.note(place, "form", stated, {"required": [name]} if is_required else keyword_shapes.ABSENT)
        if lifted:
            schema["required"] = [*dict.fromkeys([*schema.get("required", ()), *lifted])]
