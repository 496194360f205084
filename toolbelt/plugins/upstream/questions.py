"""Questions that a server asks the user (MCP's elicitation): bounded and cleaned before a client shows them.

The text of a question is untrusted, and shown to a person by a program that the person trusts. So each question begins
with the title of the server, and only what the specification allows is passed on.
"""

from __future__ import annotations

import ipaddress
import math
import urllib.parse
from collections.abc import Mapping
from typing import Any, Literal

from toolbelt.core.imported import cleaning

Mode = Literal["form", "url"]

MAX_MESSAGE = 2_000
MAX_TITLE = 200
MAX_DESCRIPTION = 1_000
MAX_NAME = 100
MAX_VALUE = 500
MAX_FIELDS = 30
MAX_CHOICES = 200
MAX_URL = 2_000
MAX_ID = 200
# The maximum length of a text in an answer, in characters.
MAX_ANSWER = 20_000

ACTIONS = frozenset({"accept", "decline", "cancel"})

_FORMATS = frozenset({"email", "uri", "date", "date-time"})
_WHOLE_LIMITS = {"string": ("minLength", "maxLength"), "array": ("minItems", "maxItems")}
_NUMERIC_LIMITS = ("minimum", "maximum")


class NotAllowedError(Exception):
    """The question may not be asked. The message explains why, for the server and an operator."""


def mode(params: Mapping[str, Any]) -> Mode:
    """Return the mode of a question. Raise NotAllowedError if it is not in the specification."""
    match params.get("mode", "form"):
        case "form":
            return "form"
        case "url":
            return "url"
    raise NotAllowedError("The mode of a question must be form or url.")


def cleaned(params: Mapping[str, Any], title: str) -> dict[str, Any]:
    """Return the parameters of ``elicitation/create`` as a client may show them.

    ``title`` is what operators call the server; the message begins with it. Raise NotAllowedError.
    """
    message = params.get("message")
    if not isinstance(message, str):
        raise NotAllowedError("A question must have a message.")
    sender = cleaning.line(title, MAX_TITLE) or "A server"
    shown_message = f"{sender} asks: {cleaning.text(message, MAX_MESSAGE)}"
    if mode(params) == "url":
        return {"mode": "url", "message": shown_message, "url": _url(params.get("url")), **_id(params)}
    return {"mode": "form", "message": shown_message, "requestedSchema": _form(params.get("requestedSchema"))}


def answer(response: Any, question: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a client's answer that the question asked for; a cancellation if the answer is not valid."""
    if not isinstance(response, Mapping) or response.get("action") not in ACTIONS:
        return {"action": "cancel"}
    action = response["action"]
    content = response.get("content")
    if action != "accept" or question["mode"] != "form":
        return {"action": action}
    fields = question["requestedSchema"]["properties"]
    if not isinstance(content, Mapping) or not all(
        _is_value(content[name]) for name in fields if name in content
    ):
        return {"action": "cancel"}
    return {"action": action, "content": {name: content[name] for name in fields if name in content}}


def for_revision(question: Mapping[str, Any], revision: str) -> dict[str, Any] | None:
    """Return the question in the form of the client's revision of MCP; None if that has no such questions."""
    if revision > "2025-11-25":
        return {name: value for name, value in question.items() if name != "elicitationId"}
    if revision == "2025-11-25":
        return dict(question)
    if question["mode"] != "form":
        return None
    schema = question["requestedSchema"]
    fields = {name: _in_2025_06_18(field) for name, field in schema["properties"].items()}
    if None in fields.values():
        return None
    return {"message": question["message"], "requestedSchema": {**schema, "properties": fields}}


def _in_2025_06_18(field: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a field in the form of 2025-06-18, which has no lists, and separate titles of choices."""
    if field["type"] == "array":
        return None
    converted = {name: value for name, value in field.items() if name != "oneOf"}
    if field["type"] != "boolean":
        converted.pop("default", None)
    if choices := field.get("oneOf"):
        converted["enum"] = [choice["const"] for choice in choices]
        converted["enumNames"] = [choice["title"] for choice in choices]
    return converted


def _form(schema: Any) -> dict[str, Any]:
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if (
        not isinstance(schema, Mapping)
        or schema.get("type") != "object"
        or not isinstance(properties, Mapping)
    ):
        raise NotAllowedError("A form must be a JSON Schema of an object with properties.")
    if len(properties) > MAX_FIELDS:
        raise NotAllowedError(f"A form may have {MAX_FIELDS} fields; this one has {len(properties)}.")
    fields = {_name(name): _field(name, field) for name, field in properties.items()}
    required = schema.get("required")
    form: dict[str, Any] = {"type": "object", "properties": fields}
    if isinstance(required, list) and (names := [name for name in fields if name in required]):
        form["required"] = names
    return form


def _name(name: Any) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME or cleaning.has_hidden(name):
        raise NotAllowedError(f"The name of a field must have 1 to {MAX_NAME} visible characters.")
    return name


def _field(name: str, schema: Any) -> dict[str, Any]:
    """Return a field of a form, with only what is in the specification."""
    schema = _not_null(schema)
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    if not isinstance(schema, Mapping) or kind not in ("string", "number", "integer", "boolean", "array"):
        raise NotAllowedError(f"The field {name} must be a text, a number, a boolean or a choice.")
    field: dict[str, Any] = {"type": kind}
    for key, longest in (("title", MAX_TITLE), ("description", MAX_DESCRIPTION)):
        if isinstance(schema.get(key), str):
            field[key] = cleaning.text(schema[key], longest)
    limits = _WHOLE_LIMITS.get(kind, ())
    field |= {key: schema[key] for key in limits if _is_whole(schema.get(key))}
    if kind in ("number", "integer"):
        field |= {key: schema[key] for key in _NUMERIC_LIMITS if _is_number(schema.get(key))}
    if kind == "array":
        field["items"] = _items(name, schema.get("items"))
    if kind == "string":
        field |= _choices(name, schema, "oneOf")
        if "enum" in field and isinstance(names := schema.get("enumNames"), list):
            field |= _names(name, names, len(field["enum"]))
        if schema.get("format") in _FORMATS:
            field["format"] = schema["format"]
    if "default" in schema and _is_default(kind, schema["default"]):
        field["default"] = schema["default"]
    return field


def _not_null(schema: Any) -> Any:
    """Return the field without the alternative ``null``, which libraries add to optional fields, unlike MCP."""
    kinds = schema.get("anyOf") if isinstance(schema, Mapping) and "type" not in schema else None
    if not isinstance(kinds, list) or len(kinds) != 2 or {"type": "null"} not in kinds:
        return schema
    (kind,) = (kind for kind in kinds if kind != {"type": "null"}) if kinds[0] != kinds[1] else ({},)
    return {**schema, **kind} if isinstance(kind, Mapping) else schema


def _items(name: str, schema: Any) -> dict[str, Any]:
    choices = _choices(name, schema, "anyOf") if isinstance(schema, Mapping) else {}
    if not choices:
        raise NotAllowedError(f"The list {name} must have choices.")
    return {"type": "string", **choices} if "enum" in choices else choices


def _choices(name: str, schema: Mapping[str, Any], titled: str) -> dict[str, Any]:
    """Return the choices of a field, with titles (under ``titled``) or without; empty if it has none."""
    if titled in schema:
        listed = schema[titled]
        _check_choices(name, listed)
        if not all(isinstance(choice, Mapping) and _is_text(choice.get("const")) for choice in listed):
            raise NotAllowedError(f"Each choice of {name} must have a text as its const.")
        return {
            titled: [
                {"const": choice["const"], "title": _title(choice.get("title"), choice["const"])}
                for choice in listed
            ]
        }
    if "enum" in schema:
        listed = schema["enum"]
        _check_choices(name, listed)
        if not all(map(_is_text, listed)):
            raise NotAllowedError(
                f"The choices of {name} must be texts of at most {MAX_VALUE} visible characters."
            )
        return {"enum": list(listed)}
    return {}


def _check_choices(name: str, listed: Any) -> None:
    if not isinstance(listed, list) or not 0 < len(listed) <= MAX_CHOICES:
        raise NotAllowedError(f"The field {name} must have 1 to {MAX_CHOICES} choices.")


def _names(name: str, names: list[Any], count: int) -> dict[str, Any]:
    if len(names) != count or not all(isinstance(title, str) for title in names):
        raise NotAllowedError(f"The choices of {name} and their names do not match.")
    return {"enumNames": [cleaning.line(title, MAX_TITLE) for title in names]}


def _title(title: Any, value: str) -> str:
    return (cleaning.line(title, MAX_TITLE) if isinstance(title, str) else "") or value


def _url(url: Any) -> str:
    """Return the address of a page to open, if it is allowed."""
    if not isinstance(url, str) or not 0 < len(url) <= MAX_URL or not url.isascii() or not url.isprintable():
        raise NotAllowedError(f"The address must have 1 to {MAX_URL} visible ASCII characters.")
    try:
        read = urllib.parse.urlsplit(url)
        host, _ = read.hostname, read.port
    except ValueError as error:
        raise NotAllowedError("The address is not a valid URL.") from error
    if " " in url or "\\" in url or not host or "@" in read.netloc:
        raise NotAllowedError("The address must name a host, without a user or password.")
    if read.scheme != "https" and not (read.scheme == "http" and _is_loopback(host)):
        raise NotAllowedError("The address of a page must begin with https.")
    return url


def _id(params: Mapping[str, Any]) -> dict[str, str]:
    id_ = params.get("elicitationId")
    if id_ is None:
        return {}
    if not isinstance(id_, str) or len(id_) > MAX_ID or cleaning.has_hidden(id_):
        raise NotAllowedError(f"The id of a question may have {MAX_ID} visible characters.")
    return {"elicitationId": id_}


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_VALUE and not cleaning.has_hidden(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_number(value: Any) -> bool:
    # Unlike math.isfinite, comparing accepts integers of any size.
    return isinstance(value, int | float) and not isinstance(value, bool) and -math.inf < value < math.inf


def _is_default(kind: str, value: Any) -> bool:
    match kind:
        case "string":
            return _is_text(value)
        case "boolean":
            return isinstance(value, bool)
        case "array":
            return isinstance(value, list) and len(value) <= MAX_CHOICES and all(map(_is_text, value))
    return _is_number(value)


def _is_value(value: Any) -> bool:
    """Return whether MCP allows the value in an answer to a form."""
    if isinstance(value, str):
        return len(value) <= MAX_ANSWER
    if isinstance(value, list):
        return len(value) <= MAX_CHOICES and all(
            isinstance(item, str) and len(item) <= MAX_ANSWER for item in value
        )
    return value is None or isinstance(value, bool) or _is_number(value)
