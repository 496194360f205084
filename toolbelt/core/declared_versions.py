"""The versions of a tool that agents' programs declare: during a rolling deploy, there are several.

A version that an operator approved stays valid beside a newer one until 24 hours after a program declared it last.
While the newer one awaits review, agents have the approved one. Once the newer one is approved, agents have that, and
programs that still run the older one name it when they have a call admitted.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.core import catalog, schema, tool_versions

LIFETIME = dt.timedelta(hours=24)
# A version that is declared again is stored again only after this time, because each write is a revision.
STORED_AGAIN = dt.timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A declared version: when it was declared last, what the model may send, and whether it was approved before
    another one was.
    """

    at: dt.datetime
    input_schema: str = schema.EMPTY_TEXT
    superseded: bool = False


Versions = Mapping[str, Version]


def read(tool: catalog.Tool) -> Versions:
    """Return the declared versions of a tool by their hash."""
    return _read(tool.declared_versions) if tool.declared_versions else {}


@functools.lru_cache(maxsize=4096)
def _read(text: str) -> Versions:
    versions = ((version, _version(fields)) for version, fields in schema.mapping(text, {}).items())
    return {version: read_version for version, read_version in versions if read_version is not None}


def _version(fields: Any) -> Version | None:
    """Return a stored version; None for what was not written here."""
    try:
        return Version(
            at=dt.datetime.fromisoformat(fields["at"]),
            input_schema=schema.canonical(fields["input_schema"]),
            superseded=bool(fields.get("superseded", False)),
        )
    except (AttributeError, LookupError, TypeError, ValueError):
        return None


def written(versions: Versions) -> dict[str, Any]:
    """Return the versions as JSON, in which they are stored."""
    result: dict[str, Any] = {}
    for version, declared in sorted(versions.items()):
        result[version] = {"at": declared.at.isoformat(), "input_schema": json.loads(declared.input_schema)}
        if declared.superseded:
            result[version]["superseded"] = True
    return result


def declared(
    versions: Versions, version: str, input_schema: str, now: dt.datetime, *, superseded: str = ""
) -> Versions:
    """Return the versions after a program declared one: ``superseded`` is the one that was approved before it."""
    result = {
        name: dataclasses.replace(known, superseded=known.superseded or name == superseded)
        for name, known in current(versions, now).items()
    }
    known = result.get(version)
    if known is None or now - known.at >= STORED_AGAIN:
        is_superseded = known is not None and known.superseded
        result[version] = Version(at=now, input_schema=input_schema, superseded=is_superseded)
    return result


def current(versions: Versions, now: dt.datetime) -> Versions:
    """Return the versions that were declared within their lifetime."""
    return {name: known for name, known in versions.items() if now - known.at < LIFETIME}


def offered(tool: catalog.Tool) -> catalog.Tool:
    """Return the tool as agents have it: as it was approved, while another version awaits review, and programs declare
    the approved one, too, or only the description differs between the processes of its server.
    """
    if not (tool.varies or tool.approved in read(tool)) or not tool_versions.is_changed(tool):
        return tool
    if tool.varies and not tool_versions.is_reworded(tool):
        return tool
    approved = tool_versions.approved_texts(tool)
    return tool if approved is None or tool_versions.is_changed(approved) else approved


def schema_of(tool: catalog.Tool, version: str, now: dt.datetime) -> str | None:
    """Return the input schema of a version that a program runs; None if that version may not be called."""
    shown = offered(tool)
    if tool_versions.is_version(shown, version):
        return shown.input_schema
    known = current(read(tool), now).get(version)
    return known.input_schema if known is not None and known.superseded else None
