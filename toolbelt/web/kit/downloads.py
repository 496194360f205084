"""Files that are generated while they are sent: CSV for spreadsheets, and any other text."""

from __future__ import annotations

import csv
import datetime as dt
import functools
import json
import uuid
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.core.serializers.json import DjangoJSONEncoder
from django.http import HttpRequest, StreamingHttpResponse
from django.utils import timezone

_TYPES = {"csv": "text/csv; charset=utf-8", "json": "application/json"}
# A spreadsheet runs a cell that begins with one of these as a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


class _Line:
    """The file of a csv.writer, which returns each line instead of storing it."""

    def write(self, line: str) -> str:
        return line


def send(request: HttpRequest, lines: Iterator[str], filename: str, extension: str) -> StreamingHttpResponse:
    """Send lines as a file whose name ends with today's date; ``extension`` is ``csv`` or ``json``."""
    # Under ASGI, Django would read a whole plain iterator before it sends the first byte.
    content = _iterate_async(lines) if isinstance(request, ASGIRequest) else lines
    filename = f"{filename}-{timezone.localdate():%Y-%m-%d}.{extension}"
    return StreamingHttpResponse(
        content,
        content_type=_TYPES[extension],
        headers={"Content-Disposition": f'attachment; filename="{filename}"'},
    )


def csv_lines(columns: Sequence[str], batches: Iterable[Iterable[Sequence[Any]]]) -> Iterator[str]:
    """Yield a table for spreadsheets: its header, then one text for each batch of rows."""
    write = csv.writer(_Line(), quoting=csv.QUOTE_ALL).writerow
    yield str(write(columns))
    for rows in batches:
        yield "".join(str(write(map(cell, row))) for row in rows)


def cell(value: Any) -> str:
    """Return a value as a cell of a spreadsheet. A text that looks like a formula gets an apostrophe in front."""
    if value is None:
        return ""
    if isinstance(value, dt.datetime):
        text = value.astimezone(dt.UTC).isoformat(timespec="seconds")
    else:
        text = str(value) if isinstance(value, (str, uuid.UUID)) else as_json(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def as_json(value: Any) -> str:
    """Return a value as JSON on one line."""
    return json.dumps(value, cls=DjangoJSONEncoder, ensure_ascii=False)


async def _iterate_async(lines: Iterator[str]) -> AsyncIterator[str]:
    next_line = sync_to_async(functools.partial(next, lines, None))
    while (line := await next_line()) is not None:
        yield line
