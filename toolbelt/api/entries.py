"""The operations on configuration entries: agents, sub-apps, toolkits, tools, loadouts, plugins and categories.

Every kind has the same operations, so they are generated for each kind; `control.catalog.entries` validates the
entries. Tools and plugins cannot be removed: retire a tool, or deactivate a plugin, instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar
from urllib import parse

import ninja
import pydantic
from django.http import HttpRequest, HttpResponse

from toolbelt.api import (
    auth,
    change_results,
    entry_schemas,
    list_filters,
    names,
    paging,
    preconditions,
    problems,
)
from toolbelt.control import writing
from toolbelt.control.catalog import blocking, entries, lists
from toolbelt.control.people import rights
from toolbelt.core import belts

# A category has only a name.
UNCHANGING = frozenset({"category"})

_Operation = TypeVar("_Operation", bound=Callable[..., Any])


class EntryUpdate(names.TryBody):
    """The changes to an entry."""

    changes: entry_schemas.Entry
    was: Annotated[
        dict[str, Any] | None,
        pydantic.Field(
            description="The current values that you expect for these fields (null if absent)."
            " If one differs, nothing is changed (409 `stale`)."
        ),
    ] = None
    reason: names.Reason = ""
    confirm: names.Confirm = False


def _router(kind: belts.KindName) -> ninja.Router:
    """Return the router of the operations on entries of one kind."""
    kind_info = belts.KINDS[kind]
    section = kind_info.section.replace("_", "-")
    collection_path, entry_path = f"/{section}", f"/{section}/{{name}}"
    noun = f"{'an' if kind_info.word[0] in 'aeiou' else 'a'} {kind_info.word}"
    entry = entry_schemas.entry_model(kind)
    router = ninja.Router(tags=[section])

    @router.get(
        collection_path,
        auth=auth.viewing(kind),
        response=paging.list_of(entry),
        description=f"List {section}, in stored order. Filters narrow the list.",
    )
    @_named(f"list_{kind_info.section}", query=ninja.Query[list_filters.BY_KIND[kind]])  # type: ignore[misc,valid-type]
    def list_entries(request: HttpRequest, query: list_filters.ListQuery) -> Any:
        """List the matching entries."""
        page = lists.page(kind, text=query.q, filters=query.filters(), offset=query.offset, limit=query.limit)
        return paging.page(request, query, page.entries, page.total)

    @router.get(
        entry_path,
        auth=auth.viewing(kind),
        response={200: entry, 304: None},
        description=f"Retrieve {noun}, as in a belt: fields with their default value are omitted.",
    )
    @_named(f"read_{kind}")
    def read_entry(request: HttpRequest, name: names.Name, response: HttpResponse) -> Any:
        """Return an entry."""
        return preconditions.conditional_response(request, response, entries.read(kind, name))

    @router.post(
        collection_path,
        auth=auth.writing(rights.permission("add", kind)),
        response={
            200: change_results.ChangeResult,
            201: change_results.ChangeResult,
            **problems.documented(409),
        },
        description=f"Create {noun}. The Location header has its address. A dry run returns 200. Returns 409 `refused`"
        " if the name is taken.",
    )
    @_named(f"create_{kind}", body=entry)
    def create_entry(
        request: HttpRequest,
        body: entry_schemas.Entry,
        query: ninja.Query[names.DryRunQuery],
        response: HttpResponse,
    ) -> Any:
        """Create an entry."""
        auth.require_permissions(request, *rights.permissions_to_set(kind, body.root))
        change, report = change_results.make(
            request,
            auth.write(request, reason=query.reason, confirm=query.confirm),
            lambda write: entries.create(write, kind, body.root),
            query,
        )
        if not query.dry_run:
            name = str(change.after[entries.name_field(kind)])
            response["Location"] = f"{request.path}/{parse.quote(name)}"
            response["ETag"] = preconditions.tag(change.result)
        return ninja.Status(200 if query.dry_run else 201, {**report, "before": None})

    def change_entry(
        request: HttpRequest, name: names.Name, body: EntryUpdate, response: HttpResponse
    ) -> Any:
        """Change fields of an entry."""
        auth.require_permissions(request, *rights.permissions_to_set(kind, body.changes.root))
        with preconditions.checked(request, entries.read(kind, name)) as current:
            whole = {} if current is None else {field: current.get(field) for field in kind_info.fields}

            def act(write: writing.Write) -> writing.Change:
                seen = {**whole, **(body.was or {})}
                if kind in blocking.KINDS and not blocking.FIELDS.isdisjoint(body.changes.root):
                    return blocking.change(write, kind, name, body.changes.root, was=seen)
                return entries.change(write, kind, name, body.changes.root, was=seen)

            change, report = change_results.make(
                request,
                auth.write(request, reason=body.reason, confirm=body.confirm),
                act,
                body,
                agent=name if kind == "agent" else "",
            )
        if not body.dry_run:
            response["ETag"] = preconditions.tag(change.result)
        return report

    def remove_entry(request: HttpRequest, name: names.Name, query: ninja.Query[names.TryQuery]) -> Any:
        """Remove an entry."""
        with preconditions.checked(request, entries.read(kind, name)) as current:
            return change_results.make(
                request,
                auth.write(request, reason=query.reason),
                lambda write: entries.remove(write, kind, name, was=current),
                query,
            )[1]

    responses = {200: change_results.ChangeResult, **problems.documented(409, 412)}
    if kind not in UNCHANGING:
        authorization = auth.writing(rights.permission("change", kind))
        _named(f"change_{kind}", body=_change(kind))(change_entry)
        description = (
            f"Change {noun}: the fields in `changes`, all of them or none."
            " Null resets a field to its default."
        )
        router.patch(entry_path, auth=authorization, response=responses, description=description)(
            change_entry
        )
    if kind not in entries.RETIRED_NOT_REMOVED:
        authorization = auth.writing(rights.permission("delete", kind))
        _named(f"remove_{kind}")(remove_entry)
        description = (
            f"Remove {noun}. The audit log keeps its values."
            " Returns 409 `refused` if another entry refers to it."
        )
        router.delete(entry_path, auth=authorization, response=responses, description=description)(
            remove_entry
        )
    return router


def _named(name: str, **annotations: Any) -> Callable[[_Operation], _Operation]:
    """Set the name of a generated operation, which is its id in the OpenAPI document, and the models it uses."""

    def decorate(operation: _Operation) -> _Operation:
        operation.__name__ = name
        operation.__annotations__.update(annotations)
        return operation

    return decorate


def _change(kind: belts.KindName) -> type[EntryUpdate]:
    changes = entry_schemas.changes_model(kind)
    return pydantic.create_model(
        changes.__name__.removesuffix("s"),
        __base__=EntryUpdate,
        __doc__=EntryUpdate.__doc__,
        changes=(changes, ...),
    )


routers = tuple(_router(kind) for kind in belts.KINDS)
