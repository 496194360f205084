"""The audit log as a file, CSV or JSON, made while it is sent."""

from __future__ import annotations

import csv
import datetime as dt
import json
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.core.serializers.json import DjangoJSONEncoder
from django.http import HttpRequest, StreamingHttpResponse
from django.utils import timezone

from toolbelt.control.reports import audit_serializer, queries

_TYPES = {"csv": "text/csv; charset=utf-8", "json": "application/json"}
# A spreadsheet takes a cell that begins with one of these for a formula, and runs it.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")

May = Callable[[str], bool]


class _Line:
    """What csv.writer writes to: it returns each line."""

    def write(self, line: str) -> str:
        return line


def answer(
    request: HttpRequest, batches: Iterable[Sequence[queries.Entry]], form: str, *, may_see: May
) -> StreamingHttpResponse:
    """Send the entries as ``csv`` or ``json``, without the contents of entries that the reader may not see."""
    lines = _csv(batches, may_see) if form == "csv" else _json(batches, may_see)
    # Under ASGI, Django would read a plain iterator to its end before it sends the first byte.
    content = _awaited(lines) if isinstance(request, ASGIRequest) else lines
    name = f"changes-{timezone.localdate():%Y-%m-%d}.{form}"
    return StreamingHttpResponse(
        content,
        content_type=_TYPES[form],
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def cell(value: Any) -> str:
    """Print a value for a spreadsheet: what looks like a formula begins with an apostrophe, so that it is text."""
    if value is None:
        return ""
    if isinstance(value, dt.datetime):
        text = value.isoformat(timespec="seconds")
    else:
        text = str(value) if isinstance(value, (str, uuid.UUID)) else _written(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def _csv(batches: Iterable[Sequence[queries.Entry]], may_see: May) -> Iterator[str]:
    write = csv.writer(_Line(), quoting=csv.QUOTE_ALL).writerow
    yield str(write(audit_serializer.FIELDS))
    for entries in batches:
        yield "".join(
            str(write([cell(value) for value in _document(entry, may_see).values()])) for entry in entries
        )


def _json(batches: Iterable[Sequence[queries.Entry]], may_see: May) -> Iterator[str]:
    before = "[\n"
    for entries in batches:
        yield before + ",\n".join(_written(_document(entry, may_see)) for entry in entries)
        before = ",\n"
    yield "[]\n" if before == "[\n" else "\n]\n"


def _document(entry: queries.Entry, may_see: May) -> dict[str, Any]:
    return audit_serializer.serialize(entry, is_open=may_see(entry.subject_kind))


def _written(value: Any) -> str:
    return json.dumps(value, cls=DjangoJSONEncoder, ensure_ascii=False)


async def _awaited(lines: Iterator[str]) -> AsyncIterator[str]:
    while (line := await sync_to_async(_next)(lines)) is not None:
        yield line


def _next(lines: Iterator[str]) -> str | None:
    return next(lines, None)
