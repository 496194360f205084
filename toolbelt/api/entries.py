"""How are agents, sub-apps, toolkits, tools, loadouts, plugins and categories listed, read, made, changed, removed?

The operations of all kinds are the same, so they are made once for each; what is in an entry is the door's to judge.
Tools and plugins are never removed: a tool is retired, and a plugin made inactive, by a change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar
from urllib import parse

import ninja
import pydantic
from django.http import HttpRequest, HttpResponse

from toolbelt.api import auth, changed, entry_schemas, names, paging, preconditions, problems, schemas, sought
from toolbelt.control import entries, lists, rights
from toolbelt.core import belts

# A category is its name and nothing else.
UNCHANGING = frozenset({"category"})

_Operation = TypeVar("_Operation", bound=Callable[..., Any])


class EntryChange(schemas.Body):
    """What is to be changed in one entry."""

    changes: entry_schemas.Entry
    was: Annotated[
        dict[str, Any] | None,
        pydantic.Field(
            description="What you saw of these keys (null: absent); if one is not so now, nothing is changed."
        ),
    ] = None
    reason: names.Reason = ""
    confirm: names.Confirm = False


def _router(kind: belts.KindName) -> ninja.Router:
    """Make the operations of one kind."""
    spoken = belts.KINDS[kind]
    words = spoken.section.replace("_", "-")
    every, one = f"/{words}", f"/{words}/{{name}}"
    a = f"{'an' if spoken.word[0] in 'aeiou' else 'a'} {spoken.word}"
    entry = entry_schemas.whole(kind)
    made = ninja.Router(tags=[words])

    @made.get(
        every,
        auth=auth.looking(kind),
        response=paging.Page[entry],  # type: ignore[valid-type]
        description=f"List the {words} that match, in stored order, each as a belt holds it.",
    )
    @_of_kind(f"list_{spoken.section}", asked=ninja.Query[sought.BY_KIND[kind]])  # type: ignore[misc,valid-type]
    def listing(request: HttpRequest, asked: sought.Asked) -> Any:
        """List those that match."""
        found = lists.page(kind, text=asked.q, wanted=asked.wanted(), offset=asked.offset, limit=asked.limit)
        return paging.page(request, asked, found.entries, found.total)

    @made.get(
        one,
        auth=auth.looking(kind),
        response={200: entry, 304: None},
        description=f"Give {a} as a belt holds it: what has its default is left out.",
    )
    @_of_kind(f"read_{kind}")
    def reading(request: HttpRequest, name: names.Name, response: HttpResponse) -> Any:
        """Give one."""
        return preconditions.answered(request, response, entries.read(kind, name))

    @made.post(
        every,
        auth=auth.writing(rights.to("add", kind)),
        response={201: changed.Changed, **problems.answers(409)},
        description=f"Create {a}; Location says where it is. 409 `refused`: there is one of this name already.",
    )
    @_of_kind(f"create_{kind}", body=entry)
    def creating(
        request: HttpRequest,
        body: entry_schemas.Entry,
        asked: ninja.Query[names.Act],
        response: HttpResponse,
    ) -> Any:
        """Create one."""
        done = entries.create(auth.actor(request), kind, body.root, reason=asked.reason)
        name = str(done.after[entries.naming(kind)])
        response["Location"] = f"{request.path}/{parse.quote(name)}"
        response["ETag"] = preconditions.tag(done.whole)
        return ninja.Status(201, {**changed.told(done), "before": None})

    def changing(request: HttpRequest, name: names.Name, body: EntryChange, response: HttpResponse) -> Any:
        """Change some keys of one."""
        with preconditions.held(request, entries.read(kind, name)) as seen:
            whole = {} if seen is None else {field: seen.get(field) for field in spoken.fields}
            done = entries.change(
                auth.actor(request),
                kind,
                name,
                body.changes.root,
                was={**whole, **(body.was or {})},
                reason=body.reason,
                confirm=body.confirm,
            )
        response["ETag"] = preconditions.tag(done.whole)
        return changed.told(done)

    def removing(request: HttpRequest, name: names.Name, asked: ninja.Query[names.Act]) -> Any:
        """Remove one."""
        with preconditions.held(request, entries.read(kind, name)) as seen:
            done = entries.remove(auth.actor(request), kind, name, was=seen, reason=asked.reason)
        return changed.told(done)

    answers = {200: changed.Changed, **problems.answers(409, 412)}
    if kind not in UNCHANGING:
        may = auth.writing(rights.to("change", kind))
        _of_kind(f"change_{kind}", body=_change(kind))(changing)
        said = f"Change {a}: only the keys that `changes` names, all of them or none."
        made.patch(one, auth=may, response=answers, description=said)(changing)
    if kind not in entries.RETIRED_NOT_REMOVED:
        may = auth.writing(rights.to("delete", kind))
        _of_kind(f"remove_{kind}")(removing)
        said = f"Remove {a}; the log of changes keeps it whole. 409 `refused`: something refers to it."
        made.delete(one, auth=may, response=answers, description=said)(removing)
    return made


def _of_kind(name: str, **annotations: Any) -> Callable[[_Operation], _Operation]:
    """Make an operation that of one kind: its name, by which the OpenAPI document calls it, and its models."""

    def make_it(operation: _Operation) -> _Operation:
        operation.__name__ = name
        operation.__annotations__.update(annotations)
        return operation

    return make_it


def _change(kind: belts.KindName) -> type[EntryChange]:
    changes = entry_schemas.changes(kind)
    return pydantic.create_model(
        changes.__name__.removesuffix("s"),
        __base__=EntryChange,
        __doc__=EntryChange.__doc__,
        changes=(changes, ...),
    )


routers = tuple(_router(kind) for kind in belts.KINDS)
