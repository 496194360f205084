"""The API reference as plain values, for the HTML page and the Markdown page in docs.

It is derived from the OpenAPI document alone, so the reference always matches what is served.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolbelt.api import application, problems

PREFIX = "/api/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A parameter, or a field of an object. ``location`` is path, query or body."""

    name: str
    type: str
    description: str
    required: bool
    location: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A successful response of an operation: its status, and the type of its document."""

    status: int
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation. ``description`` is a list of paragraphs."""

    name: str
    method: str
    path: str
    description: tuple[str, ...]
    authorization: str
    parameters: tuple[Field, ...]
    body: tuple[Field, ...]
    responses: tuple[Response, ...]
    problems: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Operations on the same kind of object."""

    title: str
    operations: tuple[Operation, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Object:
    """An object in responses."""

    name: str
    description: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """The whole reference."""

    groups: tuple[Group, ...]
    objects: tuple[Object, ...]
    problems: tuple[tuple[str, int, str], ...]


@functools.cache
def read() -> Reference:
    """Return the reference, from the OpenAPI document."""
    document = application.api.get_openapi_schema(path_prefix=PREFIX)
    schemas: Mapping[str, Any] = document["components"]["schemas"]
    authorizations = {
        name: scheme.get("description", "")
        for name, scheme in document["components"].get("securitySchemes", {}).items()
    }
    grouped: dict[str, list[Operation]] = {}
    bodies: set[str] = set()
    for method, path, operation in application.described_operations(document):
        bodies.update(_names(_json_of(operation.get("requestBody", {}))))
        title = (operation.get("tags") or ["others"])[0]
        grouped.setdefault(title, []).append(_operation(method, path, operation, authorizations, schemas))
    return Reference(
        groups=tuple(
            Group(title=title, operations=tuple(operations)) for title, operations in grouped.items()
        ),
        objects=tuple(
            Object(name=name, description=_line(schema.get("description", "")), fields=_fields(schema))
            for name, schema in sorted(schemas.items())
            if name not in bodies and "properties" in schema
        ),
        problems=tuple((code, status, title) for code, (status, title) in problems.CODES.items()),
    )


def _operation(
    method: str,
    path: str,
    described: Mapping[str, Any],
    authorizations: Mapping[str, str],
    schemas: Mapping[str, Any],
) -> Operation:
    statuses = {int(status): _json_of(answer) for status, answer in described["responses"].items()}
    body = _json_of(described.get("requestBody", {}))
    fields = _fields(next((schemas[name] for name in _names(body)), body), "body")
    return Operation(
        name=described["operationId"],
        method=method,
        path=path,
        description=tuple(
            _line(section) for section in described.get("description", "").split("\n\n") if section.strip()
        ),
        authorization=" ".join(authorizations[name] for scheme in described["security"] for name in scheme),
        parameters=tuple(_parameter(section) for section in described["parameters"]),
        body=tuple(sorted(fields, key=lambda field: not field.required)),
        responses=tuple(
            Response(status=status, type=type_name(schema))
            for status, schema in statuses.items()
            if status < 400
        ),
        problems=tuple(status for status in statuses if status >= 400),
    )


def type_name(schema: Mapping[str, Any]) -> str:
    """Return a schema's type in words: ``string``, ``integer or null``, ``array of Tool``."""
    match schema:
        case {"$ref": str(ref)}:
            return ref.rpartition("/")[2]
        case {"const": value}:
            return str(value)
        case {"enum": [*values]}:
            return f"one of {', '.join(str(value) for value in values if value != '')}{_or_empty(values)}"
        case {"anyOf": [*alternatives]} | {"oneOf": [*alternatives]}:
            return " or ".join(dict.fromkeys(type_name(alternative) for alternative in alternatives))
        case {"allOf": [inner_schema]}:
            return type_name(inner_schema)
        case {"type": "array", "prefixItems": [*items]}:
            return f"[{', '.join(map(type_name, items))}]"
        case {"type": "array"}:
            return f"array of {_grouped(schema.get('items', {}))}"
        case {"type": "object", "additionalProperties": dict(value_schema)} if value_schema:
            return f"map of string to {_grouped(value_schema)}"
        case {"type": "string", "format": "date-time"}:
            return "timestamp"
        case {"type": str(name)}:
            return name
    return "any" if schema else "none"


def _or_empty(values: Sequence[Any]) -> str:
    return " or an empty string" if "" in values else ""


def _grouped(schema: Mapping[str, Any]) -> str:
    """Return the type in words, in parentheses if its alternatives could be read as those of the outer type."""
    name = type_name(schema)
    return f"({name})" if " or " in name else name


def _parameter(parameter: Mapping[str, Any]) -> Field:
    return Field(
        name=parameter["name"],
        type=type_name(parameter["schema"]),
        description=_line(parameter.get("description", "")),
        required=parameter["required"],
        location=parameter["in"],
    )


def _fields(schema: Mapping[str, Any], location: str = "") -> tuple[Field, ...]:
    required = schema.get("required", ())
    return tuple(
        Field(
            name=name,
            type=type_name(inner) if inner.keys() - {"title", "description", "default"} else "any",
            description=_line(inner.get("description", "")),
            required=name in required,
            location=location,
        )
        for name, inner in schema.get("properties", {}).items()
    )


def _json_of(content: Mapping[str, Any]) -> Mapping[str, Any]:
    json_schemas: Sequence[Mapping[str, Any]] = [
        media_type["schema"] for media_type in content.get("content", {}).values()
    ]
    return json_schemas[0] if json_schemas else {}


def _names(schema: Mapping[str, Any]) -> Iterator[str]:
    if "$ref" in schema:
        yield schema["$ref"].rpartition("/")[2]


def _line(text: str) -> str:
    return " ".join(text.split())
