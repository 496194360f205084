"""What does the API document say, for people to read? Plain values, for the page and for the reference in docs.

Made from the OpenAPI document and nothing else, so that what is read is what is served.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolbelt.api import application, problems

PREFIX = "/api/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One parameter, or one key of a shape: its name, its kind in words, what it is, and whether it has to be there."""

    name: str
    kind: str
    about: str
    required: bool
    where: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One status that an operation answers, and the shape of it."""

    status: int
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation: how it is asked, by whom, and what it answers. ``about`` is in paragraphs, the first in short."""

    name: str
    method: str
    path: str
    about: tuple[str, ...]
    door: str
    parameters: tuple[Field, ...]
    body: tuple[Field, ...]
    answers: tuple[Answer, ...]
    problems: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Operations that belong together."""

    title: str
    operations: tuple[Operation, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What an answer, or a part of one, consists of."""

    name: str
    about: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """All there is to read."""

    groups: tuple[Group, ...]
    shapes: tuple[Shape, ...]
    problems: tuple[tuple[str, int, str], ...]


def read() -> Reference:
    """Read the OpenAPI document."""
    document = application.api.get_openapi_schema(path_prefix=PREFIX)
    schemas: Mapping[str, Any] = document["components"]["schemas"]
    doors = {
        name: scheme.get("description", "")
        for name, scheme in document["components"].get("securitySchemes", {}).items()
    }
    grouped: dict[str, list[Operation]] = {}
    bodies: set[str] = set()
    for method, path, described in application.described_operations(document):
        bodies.update(_names(_json_of(described.get("requestBody", {}))))
        title = (described.get("tags") or ["others"])[0]
        grouped.setdefault(title, []).append(_operation(method, path, described, doors, schemas))
    return Reference(
        groups=tuple(Group(title=title, operations=tuple(all_)) for title, all_ in grouped.items()),
        shapes=tuple(
            Shape(name=name, about=_line(schema.get("description", "")), fields=_fields(schema))
            for name, schema in sorted(schemas.items())
            if name not in bodies and "properties" in schema
        ),
        problems=tuple((code, status, title) for code, (status, title) in problems.CODES.items()),
    )


def _operation(
    method: str,
    path: str,
    described: Mapping[str, Any],
    doors: Mapping[str, str],
    schemas: Mapping[str, Any],
) -> Operation:
    statuses = {int(status): _json_of(answer) for status, answer in described["responses"].items()}
    body = _json_of(described.get("requestBody", {}))
    return Operation(
        name=described["operationId"],
        method=method,
        path=path,
        about=tuple(_line(one) for one in described.get("description", "").split("\n\n") if one.strip()),
        door=" ".join(doors[name] for scheme in described["security"] for name in scheme),
        parameters=tuple(_parameter(one) for one in described["parameters"]),
        body=_fields(next((schemas[name] for name in _names(body)), body), "body"),
        answers=tuple(
            Answer(status=status, kind=kind(schema)) for status, schema in statuses.items() if status < 400
        ),
        problems=tuple(status for status in statuses if status >= 400),
    )


def kind(schema: Mapping[str, Any]) -> str:
    """Say in words what a schema takes: ``text``, ``whole number or null``, ``list of Tool``."""
    match schema:
        case {"$ref": str(ref)}:
            return ref.rpartition("/")[2]
        case {"const": one}:
            return str(one)
        case {"enum": [*words]}:
            return f"one of {', '.join(map(str, words))}"
        case {"anyOf": [*ways]} | {"oneOf": [*ways]}:
            return " or ".join(dict.fromkeys(kind(way) for way in ways))
        case {"allOf": [one]}:
            return kind(one)
        case {"type": "array"}:
            return f"list of {kind(schema.get('items', {}))}"
        case {"type": "object", "additionalProperties": dict(inner)} if inner:
            return f"object of {kind(inner)}"
        case {"type": "string", "format": "date-time"}:
            return "time"
        case {"type": str(word)}:
            return _WORDS.get(word, word)
    return "anything" if schema else "nothing"


_WORDS = {"string": "text", "integer": "whole number", "boolean": "true or false"}


def _parameter(parameter: Mapping[str, Any]) -> Field:
    return Field(
        name=parameter["name"],
        kind=kind(parameter["schema"]),
        about=_line(parameter.get("description", "")),
        required=parameter["required"],
        where=parameter["in"],
    )


def _fields(schema: Mapping[str, Any], where: str = "") -> tuple[Field, ...]:
    required = schema.get("required", ())
    return tuple(
        Field(
            name=name,
            kind=kind(inner) if inner.keys() - {"title", "description", "default"} else "anything",
            about=_line(inner.get("description", "")),
            required=name in required,
            where=where,
        )
        for name, inner in schema.get("properties", {}).items()
    )


def _json_of(content: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Sequence[Mapping[str, Any]] = [one["schema"] for one in content.get("content", {}).values()]
    return found[0] if found else {}


def _names(schema: Mapping[str, Any]) -> Iterator[str]:
    if "$ref" in schema:
        yield schema["$ref"].rpartition("/")[2]


def _line(text: str) -> str:
    return " ".join(text.split())
