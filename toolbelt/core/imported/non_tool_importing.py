"""Conversion of the prompts, resources and templates of resources that upstream servers list.

As with tools (:mod:`toolbelt.core.imported.importing`), everything is untrusted, and an entry that cannot be
imported is left out with a message.
"""

from __future__ import annotations

import collections
import dataclasses
import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from toolbelt.core import catalog, details, errors, keys, strict_json, uri_templates
from toolbelt.core.imported import cleaning, importing
from toolbelt.core.imported import details as listed_details

MAX_URI_LENGTH = 2_000
MAX_MIME_TYPE_LENGTH = 200
MAX_ARGUMENTS = 50
KINDS: tuple[catalog.Kind, ...] = ("prompt", "resource", "template")
# The field of MCP that identifies an entry, by kind.
IDENTIFIED_BY: Mapping[str, str] = {"prompt": "name", "resource": "uri", "template": "uriTemplate"}
_SECTIONS: Mapping[str, str] = {"prompt": "prompts", "resource": "resources", "template": "resourceTemplates"}
# Toolbelt's own resources.
_OWN_SCHEME = "toolbelt:"

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s]+")
_MIME_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+(\s*;.*)?", re.ASCII)


def definitions(
    kind: catalog.Kind,
    listed: Iterable[Mapping[str, Any]],
    namespace: str,
    source: str,
    used_keys: Collection[str] = (),
) -> tuple[list[importing.Definition], list[errors.Problem]]:
    """Return definitions of the listed entries of a kind in their order, and problems.

    ``source`` names the server in messages; ``used_keys`` are the keys of its other entries.
    """
    subject = source[:1].upper() + source[1:]
    section = _SECTIONS[kind]
    read: dict[str, importing.Definition] = {}
    problems: list[errors.Problem] = []
    for position, entry in enumerate(listed):
        converted = definition(kind, entry, namespace)
        if isinstance(converted, str):
            name = entry.get(IDENTIFIED_BY[kind])
            shown_name = cleaning.line(name, importing.MAX_NAME_LENGTH) if isinstance(name, str) else ""
            path = f"{section}.{shown_name}" if shown_name else f"{section}[{position}]"
            problems.append(errors.Problem(path=path, message=f"{converted} It was not imported."))
        elif converted.name in read:
            message = f"{subject} lists it twice: the first one was imported."
            problems.append(errors.Problem(path=f"{section}.{converted.name}", message=message))
        else:
            read[converted.name] = converted
    counts = collections.Counter(keys.fold(converted.key) for converted in read.values())
    used = {keys.fold(key) for key in used_keys}
    unique = [
        with_own_key(converted, namespace)
        if counts[keys.fold(converted.key)] > 1 or keys.fold(converted.key) in used
        else converted
        for converted in read.values()
    ]
    return unique, problems


def versions(
    answer: importing.ServerListing,
    kind: catalog.Kind,
    name: str,
    namespace: str,
    key: str = "",
    description: str | None = None,
) -> tuple[str, ...]:
    """Return the versions of the entry with this identity (see :meth:`importing.Definition.versions`); none if the
    server lists none that can be imported. ``key`` is that of a stored tool. With a ``description``, return those of
    the entry if it had this one.
    """
    if kind == "tool":
        return answer.versions(name, namespace, key, description)

    def listed() -> importing.Definition | str:
        identity = IDENTIFIED_BY[kind]
        named = (entry for entry in answer.non_tools.get(kind, ()) if entry.get(identity) == name)
        return importing.first_usable(definition(kind, entry, namespace) for entry in named)

    return answer.cached_versions((kind, name, namespace), listed, description)


def definition(kind: catalog.Kind, listed: Mapping[str, Any], namespace: str) -> importing.Definition | str:
    """Return the definition of a listed entry, or a sentence that explains why it cannot be imported."""
    identity = listed.get(IDENTIFIED_BY[kind])
    if not isinstance(identity, str) or not identity.strip():
        return f"It has no {IDENTIFIED_BY[kind]}."
    if problem := _identity_problem(kind, identity):
        return problem
    name = cleaning.line(_text(listed.get("name")), importing.MAX_NAME_LENGTH)
    key = _key(kind, name or identity, namespace)
    if problem := keys.tool_key_problem(key):
        return problem
    extra, changes = listed_details.read(listed, None, None)
    if kind == "prompt":
        arguments = _arguments(listed.get("arguments"))
        if isinstance(arguments, str):
            return arguments
        if arguments:
            extra[details.ARGUMENTS] = arguments
    else:
        if name and name != identity:
            extra[details.NAME] = name
        mime_type = listed.get("mimeType")
        if (
            isinstance(mime_type, str)
            and len(mime_type) <= MAX_MIME_TYPE_LENGTH
            and _MIME_TYPE.fullmatch(mime_type)
        ):
            extra[details.MIME_TYPE] = mime_type
        if annotations := _annotations(listed.get("annotations")):
            extra[details.ANNOTATIONS] = annotations
    return importing.Definition(
        key=key,
        kind=kind,
        name=identity,
        title=cleaning.line(_text(listed.get("title")), importing.MAX_TITLE_LENGTH),
        description=cleaning.text(_text(listed.get("description")), importing.MAX_DESCRIPTION_LENGTH),
        details=extra,
        changes=tuple(changes),
    )


def _identity_problem(kind: str, identity: str) -> str | None:
    field = IDENTIFIED_BY[kind]
    longest = importing.MAX_NAME_LENGTH if kind == "prompt" else MAX_URI_LENGTH
    if len(identity) > longest:
        return f"Its {field} has {len(identity)} characters; at most {longest} are allowed."
    if cleaning.has_hidden(identity):
        return f"Its {field} contains invisible characters."
    if kind == "prompt":
        return None
    if identity.lower().startswith(_OWN_SCHEME):
        return f"Its {field} begins with {_OWN_SCHEME}, which is Toolbelt's own."
    if kind == "template":
        return uri_templates.problem(identity)
    return None if _URI.fullmatch(identity) else f"Its {field} is not a URI."


def _key(kind: str, name: str, namespace: str) -> str:
    if not namespace:
        # Its key is not its name, so nothing of it may look like a namespace.
        name = re.sub("__+", "_", name)
    return keys.fit(f"{kind}_{name}", namespace)


def with_own_key(definition: importing.Definition, namespace: str) -> importing.Definition:
    """Return the definition with a unique key, for one of several entries with the same name."""
    mark = hashlib.sha256(definition.name.encode(errors="replace")).hexdigest()[:6]
    name = str(definition.details.get(details.NAME, "")) or definition.name
    return dataclasses.replace(
        definition, key=_key(definition.kind, f"{name[: keys.MAX_LENGTH // 3]}_{mark}", namespace)
    )


def _arguments(stated: Any) -> list[dict[str, Any]] | str:
    """Return the arguments of a prompt, cleaned, or a sentence that explains why they cannot be used."""
    if stated is None:
        return []
    document = strict_json.copied_object({"arguments": stated})
    arguments = document["arguments"] if document is not None else None
    if not isinstance(arguments, list) or len(arguments) > MAX_ARGUMENTS:
        return f"Its arguments are not a list of at most {MAX_ARGUMENTS}."
    cleaned = []
    for stated_argument in arguments:
        name = stated_argument.get("name") if isinstance(stated_argument, Mapping) else None
        if (
            not isinstance(name, str)
            or not name
            or len(name) > importing.MAX_NAME_LENGTH
            or cleaning.has_hidden(name)
        ):
            return "One of its arguments has no name that can be used."
        argument: dict[str, Any] = {"name": name}
        if title := cleaning.line(_text(stated_argument.get("title")), importing.MAX_TITLE_LENGTH):
            argument["title"] = title
        if description := cleaning.text(
            _text(stated_argument.get("description")), importing.MAX_IN_SCHEMA_LENGTH
        ):
            argument["description"] = description
        if isinstance(stated_argument.get("required"), bool):
            argument["required"] = stated_argument["required"]
        cleaned.append(argument)
    return cleaned


def _annotations(stated: Any) -> dict[str, Any]:
    if not isinstance(stated, Mapping):
        return {}
    annotations = {name: stated[name] for name in ("audience", "priority") if stated.get(name) is not None}
    return annotations if details.is_annotations(annotations) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
