"""How does the whole configuration go out, and come in, as one document? As JSON or YAML, whichever is asked for."""

from __future__ import annotations

from typing import Annotated, Any

import ninja
import pydantic
from django.http import HttpRequest, HttpResponse

from toolbelt.api import auth, bodies, entry_schemas, names, preconditions, problems
from toolbelt.control import belt_texts, belts, entries, rights
from toolbelt.core import errors

router = ninja.Router(tags=["belt"])

JSON, YAML = "application/json", "application/yaml"
_FORMS: dict[str, belt_texts.Form] = {JSON: "json", YAML: "yaml"}
_IN_BOTH = {JSON: {"schema": entry_schemas.belt()}, YAML: {"schema": {"type": "string"}}}


class Import(names.Act):
    """What goes with an import."""

    # Not strict: the documentation of imports writes dry_run=1.
    dry_run: Annotated[bool, pydantic.Field(description="Say what would be done, and write nothing.")] = False


class Difference(ninja.Schema):
    """An entry that is created (``before`` is null) or changed, by the keys that differ."""

    kind: str
    name: str
    before: dict[str, Any] | None
    after: dict[str, Any]


class Imported(ninja.Schema):
    """What an import did, or would do: ``written`` says which. ``ordered`` names kinds that stand in another order."""

    written: bool
    created: int
    changed: int
    same: int
    ordered: list[str]
    differences: list[Difference]


@router.get(
    "/belt",
    auth=auth.looking(*belts.SECTIONS.values()),
    response={200: entry_schemas.Entry, 304: None},
    openapi_extra={"responses": {200: {"content": _IN_BOTH}}},
)
def export_belt(request: HttpRequest) -> Any:
    """Give the whole configuration; it holds no secret, no session and no token. YAML, if Accept prefers it."""
    media_type = request.get_preferred_type([JSON, YAML]) or JSON
    revision, document = belts.exported()
    current = _tag(revision, media_type)
    headers = {"ETag": current, "Cache-Control": preconditions.KEPT, "Vary": "Accept"}
    if preconditions.is_known(request, current):
        return HttpResponse(status=304, headers=headers)
    text = belt_texts.write(document, _FORMS[media_type])
    return HttpResponse(text, content_type=media_type, headers=headers)


@router.put(
    "/belt",
    auth=auth.writing(),
    response={200: Imported, **problems.answers(409, 412)},
    openapi_extra={"requestBody": {"required": True, "content": _IN_BOTH}},
)
def import_belt(request: HttpRequest, asked: ninja.Query[Import]) -> Any:
    """Bring every entry of the belt about, or nothing; what it does not name stays as it is.

    It takes the permissions to add and to change what its sections hold. 422 names every problem with its path.
    """
    document = _read(request)
    auth.demand(request, *rights.to_import(document))
    if asked.dry_run:
        return {"written": False, **_told(belts.preview(auth.actor(request), document))}
    revision = belts.revision()
    tags = [_tag(revision, media_type) for media_type in _FORMS]
    with preconditions.held(request, revision, *tags) as was:
        done = belts.import_(auth.actor(request), document, was=was, reason=asked.reason)
    return {"written": True, **_told(done)}


def _tag(revision: int, media_type: str) -> str:
    return f'"{revision}-{_FORMS[media_type]}"'


def _read(request: HttpRequest) -> dict[str, Any]:
    media_type = (request.content_type or "").lower() or JSON
    if media_type not in _FORMS:
        raise problems.HttpProblem(
            "unsupported-media-type", f"The body is {media_type}: send a belt as {JSON} or {YAML}."
        )
    found = bodies.read(request.body) if media_type == JSON else _read_yaml(request.body)
    if not isinstance(found, dict):
        sections = ", ".join(belts.SECTIONS)
        raise errors.Invalid([errors.Problem(path="", message=f"A belt is a mapping of {sections}.")])
    return found


def _read_yaml(body: bytes) -> Any:
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise errors.Invalid([errors.Problem(path="", message="This is not UTF-8.")]) from error
    return belt_texts.read(text, strictly=True)


def _told(done: belts.Imported) -> dict[str, Any]:
    return {
        "created": done.created,
        "changed": done.changed,
        "same": done.same,
        "ordered": list(done.ordered),
        "differences": [_difference(one) for one in done.differences],
    }


def _difference(one: belts.Difference) -> dict[str, Any]:
    before, after = entries.differences(one.before, one.after)
    return {"kind": one.kind, "name": one.name, "before": before if one.before else None, "after": after}
