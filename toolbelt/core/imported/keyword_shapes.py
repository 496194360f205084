"""The shapes of JSON Schema's keywords, and how a value of another shape is read.

One table says for each keyword what its value must be. A reader returns the value itself if it fits; another value if
there is exactly one that can be meant; ABSENT if the value says nothing; or UNUSABLE.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from toolbelt.core.schema import patterns

Schema = dict[str, Any]
Reader = Callable[[Any, Schema], Any]


class _Mark:
    """A result of reading that is no value of JSON."""


ABSENT: Final = _Mark()
UNUSABLE: Final = _Mark()

_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
# Types as other languages spell them, and formats of text that are taken for types.
_SPELLINGS: Mapping[str, str] = {
    **{name: name for name in _TYPES},
    **dict.fromkeys(("int", "int8", "int16", "int32", "int64", "long", "short", "bigint", "byte"), "integer"),
    **dict.fromkeys(("uint", "uint8", "uint16", "uint32", "uint64", "usize"), "integer"),
    **dict.fromkeys(("float", "float32", "float64", "double", "decimal", "numeric", "real"), "number"),
    **dict.fromkeys(("bool",), "boolean"),
    **dict.fromkeys(("str", "text", "char", "varchar"), "string"),
    **dict.fromkeys(("list", "set", "tuple", "vector", "sequence"), "array"),
    **dict.fromkeys(("dict", "dictionary", "map", "hash", "hashmap", "record", "struct"), "object"),
    **dict.fromkeys(("none", "nonetype", "nil"), "null"),
}
_FORMATS: Mapping[str, str] = {
    **{name: name for name in ("date", "date-time", "time", "duration", "email", "uri", "uuid")},
    "datetime": "date-time",
    "url": "uri",
}
# Any value.
_ANY = frozenset({"any", "*", "mixed", "unknown"})
_NUMBER = re.compile(r"-?\d{1,300}(\.\d{1,300})?([eE][+-]?\d{1,2})?")
_ANCHOR = re.compile(r"[A-Za-z_][-A-Za-z0-9._]*")
_WITH_PARTS = re.compile(r"([\w-]+)\s*[<\[(].*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The shape of a keyword's value. ``holds`` says which schemas are in it; ``annotates``: it constrains nothing;
    ``may_be_null``: null is a value of it.
    """

    read: Reader
    holds: Literal["", "schema", "names", "list"] = ""
    annotates: bool = False
    may_be_null: bool = False


def schema(value: Any, _: Schema) -> Any:
    """Return a value as a schema."""
    if isinstance(value, dict | bool):
        return value
    if value == []:
        return {}
    if isinstance(value, str):
        return {"true": True, "false": False}.get(
            value.lower(), {"type": value} if _spelled(value) else UNUSABLE
        )
    return UNUSABLE


def yes_or_no(value: Any, _: Schema) -> Any:
    """Return a value as a boolean."""
    if isinstance(value, bool):
        return value
    word = value.lower() if isinstance(value, str) else value
    return True if word in ("true", 1) else False if word in ("false", 0) else UNUSABLE


def _schema_or_list(value: Any, parent: Schema) -> Any:
    if isinstance(value, list):
        # Beside the newer form of the same, there is no reading.
        return UNUSABLE if value and parent.get("prefixItems") else value or ABSENT
    return schema(value, parent)


def _schemas(value: Any, _: Schema) -> Any:
    listed = _list(value)
    if isinstance(value, dict) and not isinstance(listed, list):
        return [value]
    return UNUSABLE if listed is UNUSABLE else listed or ABSENT


def _mapping(value: Any, _: Schema) -> Any:
    if isinstance(value, dict):
        return value
    # In PHP, an empty object and an empty list are the same.
    return ABSENT if value == [] else UNUSABLE


def _properties(value: Any, parent: Schema) -> Any:
    if isinstance(value, list) and value and all(_is_named(item) for item in value):
        return {item["name"]: {key: item[key] for key in item if key != "name"} for item in value}
    return _mapping(value, parent)


def _is_named(item: Any) -> bool:
    """Return whether a value is a schema beside the name of the property, as in a list of parameters."""
    return isinstance(item, dict) and isinstance(item.get("name"), str)


def _by_pattern(value: Any, parent: Schema) -> Any:
    if not isinstance(value, dict) or not any(map(patterns.is_broken, value)):
        return _mapping(value, parent)
    for keyword in ("additionalProperties", "unevaluatedProperties"):
        # It would refuse the properties whose names the pattern was to allow.
        if keyword in parent:
            parent[keyword] = True
    return UNUSABLE


def _list(value: Any) -> Any:
    """Return a value as a list, also one whose positions are written out, as PHP does if one is missing."""
    if isinstance(value, list):
        return value
    if isinstance(value, dict) and all(name.isdecimal() for name in value):
        return [*value.values()]
    return UNUSABLE


def _names(value: Any, parent: Schema) -> Any:
    if isinstance(value, bool):
        # Up to draft 3, a property said of itself whether it is required; here, that is no property.
        return UNUSABLE if value else ABSENT
    properties = parent.get("properties")
    if isinstance(value, str) and isinstance(properties, dict) and value in properties:
        return [value]
    listed = _list(value)
    if listed is UNUSABLE:
        return ABSENT if value == "" else UNUSABLE
    return _same_or(value, [*dict.fromkeys(name for name in listed if isinstance(name, str))])


def _names_by_name(value: Any, parent: Schema) -> Any:
    mapping = _mapping(value, parent)
    if not isinstance(mapping, dict):
        return mapping
    read = {
        name: _names([names] if isinstance(names, str) else names, parent) for name, names in mapping.items()
    }
    return _same_or(value, {name: names for name, names in read.items() if isinstance(names, list)})


def _dependencies(value: Any, parent: Schema) -> Any:
    mapping = _mapping(value, parent)
    if not isinstance(mapping, dict):
        return mapping
    of_names = {name: names for name, names in mapping.items() if not isinstance(names, dict | bool)}
    read = {**mapping, **_names_by_name(of_names, parent)}
    return _same_or(
        value, {name: read[name] for name in read if name not in of_names or isinstance(read[name], list)}
    )


def _choices(value: Any, _: Schema) -> Any:
    return _list(value) or UNUSABLE


def _examples(value: Any, _: Schema) -> Any:
    return value if isinstance(value, list) else UNUSABLE


def _number(value: Any, _: Schema) -> Any:
    if value == "":
        return ABSENT
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        number = float(value)
        return int(value) if value.strip().lstrip("-").isdecimal() else number
    return value if isinstance(value, int | float) and not isinstance(value, bool) else UNUSABLE


def _bound(value: Any, parent: Schema) -> Any:
    # In draft 4, the exclusive bounds are booleans.
    if isinstance(value, bool):
        return value
    number = _number(value, parent)
    return number if number is not UNUSABLE else yes_or_no(value, parent)


def _positive(value: Any, parent: Schema) -> Any:
    number = _number(value, parent)
    return number if isinstance(number, _Mark) or number > 0 else UNUSABLE


def _count(value: Any, parent: Schema) -> Any:
    number = _number(value, parent)
    if isinstance(number, _Mark):
        return number
    if number < 0 or number != int(number):
        return UNUSABLE
    return number if isinstance(number, int) else int(number)


def _text(value: Any, _: Schema) -> Any:
    return value if isinstance(value, str) else UNUSABLE


def _pattern(value: Any, _: Schema) -> Any:
    return value if isinstance(value, str) and not patterns.is_broken(value) else UNUSABLE


def _anchor(value: Any, _: Schema) -> Any:
    return value if isinstance(value, str) and _ANCHOR.fullmatch(value) else UNUSABLE


def _vocabulary(value: Any, _: Schema) -> Any:
    fits = isinstance(value, dict) and all(isinstance(is_needed, bool) for is_needed in value.values())
    return value if fits else UNUSABLE


def _anything(value: Any, _: Schema) -> Any:
    return value


def _type(value: Any, parent: Schema) -> Any:
    """Return the types, as a text or a list; a format that was taken for a type is added to the schema."""
    if value in ("", []):
        return ABSENT
    stated = value if isinstance(value, list) else [value]
    spelled = [
        _spelled("null" if name is None else name) if isinstance(name, str | None) else () for name in stated
    ]
    if not all(spelled):
        return UNUSABLE
    types = [*dict.fromkeys(name for names in spelled for name in names)]
    if any(name in _ANY for name in types):
        return ABSENT
    for name in types:
        if name in _FORMATS:
            parent.setdefault("format", _FORMATS[name])
    types = [*dict.fromkeys("string" if name in _FORMATS else name for name in types)]
    return _same_or(value, types if isinstance(value, list) or len(types) > 1 else types[0])


def _spelled(word: str) -> tuple[str, ...]:
    """Return the types that a word means, or the word for any value or for a format; empty if it is unknown."""
    if word in _TYPES:
        return (word,)
    parts = word.strip().lower().split("|")
    if len(parts) > 1:
        read = [_spelled(part) for part in parts]
        return tuple(name for names in read for name in names) if all(read) else ()
    name = parts[0].strip()
    if name.endswith("?"):
        return (*inner, "null") if (inner := _spelled(name[:-1])) else ()
    if name.endswith("[]"):
        return ("array",)
    if match := _WITH_PARTS.fullmatch(name):
        name = match[1]
    if name in _ANY or name in _FORMATS:
        return (name,)
    return (_SPELLINGS[name],) if name in _SPELLINGS else ()


def _same_or(value: Any, read: Any) -> Any:
    return value if value == read else read


def _each(names: str, **shape: Any) -> dict[str, Shape]:
    return dict.fromkeys(names.split(), Shape(**shape))


SHAPES: Mapping[str, Shape] = {
    **_each("properties", read=_properties, holds="names"),
    **_each("patternProperties", read=_by_pattern, holds="names"),
    **_each("$defs definitions dependentSchemas", read=_mapping, holds="names"),
    **_each(
        "additionalItems additionalProperties contains contentSchema else if not propertyNames then unevaluatedItems"
        " unevaluatedProperties",
        read=schema,
        holds="schema",
    ),
    **_each("items", read=_schema_or_list, holds="schema"),
    **_each("allOf anyOf oneOf prefixItems", read=_schemas, holds="list"),
    **_each("required", read=_names),
    **_each("dependentRequired", read=_names_by_name),
    **_each("dependencies", read=_dependencies, holds="names"),
    **_each("maximum minimum", read=_number),
    **_each("exclusiveMaximum exclusiveMinimum", read=_bound),
    **_each("multipleOf", read=_positive),
    **_each(
        "maxContains maxItems maxLength maxProperties minContains minItems minLength minProperties",
        read=_count,
    ),
    **_each("uniqueItems", read=yes_or_no),
    **_each("type", read=_type),
    **_each("enum", read=_choices),
    **_each("const", read=_anything, may_be_null=True),
    **_each("$dynamicRef $recursiveRef $ref", read=_text),
    **_each("pattern", read=_pattern),
    **_each("$anchor $dynamicAnchor $recursiveAnchor", read=_anchor, annotates=True),
    **_each("$vocabulary", read=_vocabulary, annotates=True),
    **_each(
        "$comment $id $schema contentEncoding contentMediaType description format title",
        read=_text,
        annotates=True,
    ),
    **_each("deprecated readOnly writeOnly", read=yes_or_no, annotates=True),
    **_each("examples", read=_examples, annotates=True),
    **_each("default", read=_anything, annotates=True, may_be_null=True),
}


# Keywords whose schemas apply to the same value as theirs.
_IN_PLACE = ("allOf", "anyOf", "dependentSchemas", "else", "if", "not", "oneOf", "then")


def in_place(schema: Schema) -> Iterator[Any]:
    """Yield the schemas in a schema that apply to the same value, without those that it refers to."""
    for keyword in _IN_PLACE:
        value = schema.get(keyword)
        if isinstance(value, list):
            yield from value
        elif keyword == "dependentSchemas" and isinstance(value, dict):
            yield from value.values()
        else:
            yield value


def is_misspelled(value: Any) -> bool:
    """Return whether a type is not spelled as in JSON Schema, so that its reading is more than another form."""
    stated: Iterable[Any] = value if isinstance(value, list) else [value]
    return any(isinstance(name, str) and name and name not in _TYPES for name in stated)
