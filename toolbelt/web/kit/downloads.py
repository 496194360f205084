"""Files that are made while they are sent: CSV for spreadsheets, and any other text."""

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
# A spreadsheet takes a cell that begins with one of these for a formula, and runs it.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


class _Line:
    """What csv.writer writes to: it returns each line."""

    def write(self, line: str) -> str:
        return line


def send(request: HttpRequest, lines: Iterator[str], name: str, form: str) -> StreamingHttpResponse:
    """Send lines as a file whose name ends with today's date; ``form`` is ``csv`` or ``json``."""
    # Under ASGI, Django would read a whole plain iterator before it sends the first byte.
    content = _awaited(lines) if isinstance(request, ASGIRequest) else lines
    name = f"{name}-{timezone.localdate():%Y-%m-%d}.{form}"
    return StreamingHttpResponse(
        content,
        content_type=_TYPES[form],
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def csv_lines(columns: Sequence[str], batches: Iterable[Iterable[Sequence[Any]]]) -> Iterator[str]:
    """Yield a table for spreadsheets: its head, and a text for each batch of rows."""
    write = csv.writer(_Line(), quoting=csv.QUOTE_ALL).writerow
    yield str(write(columns))
    for rows in batches:
        yield "".join(str(write(map(cell, row))) for row in rows)


def cell(value: Any) -> str:
    """Print a value for a spreadsheet: what looks like a formula begins with an apostrophe, so that it is text."""
    if value is None:
        return ""
    if isinstance(value, dt.datetime):
        text = value.astimezone(dt.UTC).isoformat(timespec="seconds")
    else:
        text = str(value) if isinstance(value, (str, uuid.UUID)) else as_json(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def as_json(value: Any) -> str:
    """Write a value as JSON in one line."""
    return json.dumps(value, cls=DjangoJSONEncoder, ensure_ascii=False)


async def _awaited(lines: Iterator[str]) -> AsyncIterator[str]:
    following = sync_to_async(functools.partial(next, lines, None))
    while (line := await following()) is not None:
        yield line
