"""Export and import of the whole configuration as one document, a belt, in JSON or YAML."""

from __future__ import annotations

import uuid
from typing import Annotated, Any

import ninja
import pydantic
from django.http import HttpRequest, HttpResponse

from toolbelt.api import (
    auth,
    bodies,
    change_results,
    entry_schemas,
    names,
    preconditions,
    problems,
    schemas,
)
from toolbelt.api import proofs as proof_results
from toolbelt.control import past, proofs
from toolbelt.control.catalog import entries
from toolbelt.control.config import belt_decisions, belt_texts, belts
from toolbelt.control.people import rights
from toolbelt.core import errors

router = ninja.Router(tags=["belt"])

JSON, YAML = "application/json", "application/yaml"
_FORMATS: dict[str, belt_texts.Form] = {JSON: "json", YAML: "yaml"}
_JSON_CONTENT = {JSON: {"schema": entry_schemas.belt_schema()}}


class ExportQuery(ninja.Schema):
    """The parameters of an export."""

    decisions: Annotated[
        bool,
        pydantic.Field(
            description="Only what was decided, without the texts and schemas that servers, programs and code state:"
            " `toolbelt belt export --decisions`."
        ),
    ] = False


class ImportQuery(names.ConfirmQuery):
    """The parameters of an import."""

    # Not strict: the documentation of imports writes dry_run=1.
    dry_run: Annotated[
        bool, pydantic.Field(description="Only report what the import would do, without writing anything.")
    ] = False
    prove: names.Prove = None
    draft: names.Draft = None


class EntryDifference(ninja.Schema):
    """An entry that is created (`before` is null) or changed; only the fields that differ."""

    kind: str
    name: str
    before: dict[str, Any] | None
    after: dict[str, Any]


class ImportResult(ninja.Schema):
    """What an import did, or would do."""

    written: Annotated[bool, pydantic.Field(description="False for a dry run.")]
    created: Annotated[int, pydantic.Field(description="The number of entries created.")]
    changed: Annotated[int, pydantic.Field(description="The number of entries changed.")]
    same: Annotated[int, pydantic.Field(description="The number of entries that are already up to date.")]
    ordered: Annotated[list[str], pydantic.Field(description="The kinds of entries whose order changes.")]
    differences: list[EntryDifference]
    warnings: Annotated[
        list[str],
        pydantic.Field(description="Names in the belt's loadouts that match nothing, with their paths."),
    ]
    past: Annotated[
        proof_results.ProofResult | None,
        pydantic.Field(description="For a dry run with `prove`, what the import would have done."),
    ] = None
    draft: Annotated[
        uuid.UUID | None,
        pydantic.Field(description="For a dry run with `draft`, the key of the saved draft."),
    ] = None


@router.get(
    "/belt",
    auth=auth.viewing(*belts.SECTIONS.values()),
    response={200: entry_schemas.Entry, 304: None},
    openapi_extra={"responses": {200: {"content": {**_JSON_CONTENT, YAML: {"schema": {"type": "string"}}}}}},
)
def export_belt(request: HttpRequest, query: ninja.Query[ExportQuery]) -> Any:
    """Export the whole configuration, as JSON, or as YAML if the Accept header prefers it.

    A belt contains no sessions or tokens, and `[withheld]` in place of a secret in options.
    """
    media_type = request.get_preferred_type([JSON, YAML]) or JSON
    read, write = (
        (belt_decisions.export, belt_texts.write_decisions)
        if query.decisions
        else (belts.export, belt_texts.write)
    )
    revision, document = belts.with_revision(read)
    current = _tag(revision, media_type, decisions=query.decisions)
    headers = {"ETag": current, "Cache-Control": preconditions.CACHE_CONTROL, "Vary": "Accept"}
    if preconditions.is_known(request, current):
        return HttpResponse(status=304, headers=headers)
    text = write(document, _FORMATS[media_type])
    return HttpResponse(text, content_type=media_type, headers=headers)


class PastQuery(schemas.Query):
    """The moment of a past configuration."""

    at: Annotated[
        names.Text,
        pydantic.Field(
            description="The id of a change, for the state right after it; or a time, with its zone."
        ),
    ]


class Gap(ninja.Schema):
    """A field of an entry, or a switch or override of an agent, that was not as the audit log has it."""

    kind: str
    name: str
    field: str


class PastBelt(ninja.Schema):
    """The configuration as it was, and what of it is uncertain."""

    change: Annotated[
        int, pydantic.Field(description="The id of the last change by then; 0 if there was none.")
    ]
    belt: Annotated[dict[str, Any], pydantic.Field(description="As an export has it.")]
    gaps: list[Gap]
    uncertain_catalog: Annotated[
        bool,
        pydantic.Field(description="Whether anything but agents was changed without the audit log since."),
    ]
    uncertain_agents: Annotated[
        list[str], pydantic.Field(description="The agents that were changed without the audit log since.")
    ]


@router.get("/belt/past", auth=auth.viewing(*belts.SECTIONS.values()), response=PastBelt)
def read_past_belt(request: HttpRequest, query: ninja.Query[PastQuery]) -> Any:
    """Retrieve the whole configuration as it was, rebuilt from the audit log."""
    was = past.at(past.parse(query.at, "at"))
    return {
        "change": was.place.entry,
        "belt": was.export(),
        "gaps": [gap._asdict() for gap in was.history.gaps],
        "uncertain_catalog": was.history.is_catalog_uncertain,
        "uncertain_agents": was.history.uncertain_agents,
    }


@router.put(
    "/belt",
    auth=auth.writing(),
    response={200: ImportResult, **problems.documented(409, 412)},
    # Generators of clients know no YAML, and some leave out the operation, so the description names it.
    openapi_extra={"requestBody": {"required": True, "content": _JSON_CONTENT}},
)
def import_belt(request: HttpRequest, query: ninja.Query[ImportQuery]) -> Any:
    """Import a belt: create and change its entries, all of them or none. Other entries stay as they are.

    The body is JSON, or YAML with the Content-Type `application/yaml`.

    An entry replaces the stored entry completely; fields that it leaves out are reset.

    Requires the permissions to add and to change the kinds of entries in the belt. A 422 response lists every problem
    with its path. Send the ETag of an export as If-Match to import only if the configuration has not changed since.
    """
    document = _read(request)
    auth.require_permissions(request, *rights.permissions_to_import(document))
    if query.dry_run:
        report = _result(belts.preview(auth.write(request), document))
        past = _past(request, document, query.prove)
        draft = change_results.save_draft(
            auth.write(request, reason=query.reason),
            lambda write: belts.import_(write, document),
            query.draft,
        )
        return {"written": False, **report, "past": past, "draft": draft}
    change_results.refuse_without_dry_run(query)
    revision = belts.revision()
    tags = [_tag(revision, form, decisions=decisions) for form in _FORMATS for decisions in (False, True)]
    with preconditions.checked(request, revision, *tags) as expected_revision:
        write = auth.write(request, reason=query.reason, confirm=query.confirm)
        result = belts.import_(write, document, was=expected_revision)
    return {"written": True, **_result(result)}


def _past(request: HttpRequest, document: dict[str, Any], days: int | None) -> dict[str, Any] | None:
    """Return what importing the belt would have done to the calls of so many days."""
    if days is None:
        return None
    auth.require_viewing(request, "call_record")
    return proofs.document(proofs.of_belt(auth.write(request), document, days=days))


def _tag(revision: int, media_type: str, *, decisions: bool) -> str:
    return f'"{revision}-{_FORMATS[media_type]}{"-decisions" if decisions else ""}"'


def _read(request: HttpRequest) -> dict[str, Any]:
    media_type = (request.content_type or "").lower() or JSON
    if media_type not in _FORMATS:
        raise problems.HttpProblem(
            "unsupported-media-type", f"The body is {media_type}. Send a belt as {JSON} or {YAML}."
        )
    belt = bodies.read(request.body) if media_type == JSON else _read_yaml(request.body)
    if not isinstance(belt, dict):
        sections = ", ".join(belts.SECTIONS)
        raise errors.Invalid.of(f"A belt must be a mapping of {sections}.")
    return belt


def _read_yaml(body: bytes) -> Any:
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise errors.Invalid.of("The body is not UTF-8. Encode it as UTF-8.") from error
    return belt_texts.read(text, strictly=True)


def _result(result: belts.Imported) -> dict[str, Any]:
    return {
        "created": result.created,
        "changed": result.changed,
        "same": result.same,
        "ordered": list(result.ordered),
        "warnings": [str(warning) for warning in result.warnings],
        "differences": [_difference(difference) for difference in result.differences],
    }


def _difference(difference: belts.Difference) -> dict[str, Any]:
    before, after = entries.differences(difference.before, difference.after)
    return {
        "kind": difference.kind,
        "name": difference.name,
        "before": before if difference.before else None,
        "after": after,
    }
