"""The audit log as a file, CSV or JSON, made while it is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from django.http import HttpRequest, StreamingHttpResponse

from toolbelt.control.reports import audit_serializer, queries
from toolbelt.web.kit import downloads


def answer(
    request: HttpRequest,
    batches: Iterable[Sequence[queries.Entry]],
    form: str,
    *,
    may_see: Callable[[str], bool],
) -> StreamingHttpResponse:
    """Send the entries as ``csv`` or ``json``, without the contents of entries that the reader may not see."""
    documents = (
        [audit_serializer.serialize(entry, is_open=may_see(entry.subject_kind)) for entry in entries]
        for entries in batches
    )
    if form == "csv":
        rows = ([list(document.values()) for document in part] for part in documents)
        return downloads.send(request, downloads.csv_lines(audit_serializer.FIELDS, rows), "changes", form)
    return downloads.send(request, _json(documents), "changes", form)


def _json(batches: Iterable[Sequence[dict[str, Any]]]) -> Iterator[str]:
    before = "[\n"
    for documents in batches:
        yield before + ",\n".join(map(downloads.as_json, documents))
        before = ",\n"
    yield "[]\n" if before == "[\n" else "\n]\n"
