"""Which request was this? Every request has an id: in each of its log lines, in its answer, on its error page."""

from typing import Any

import structlog
from django.http import HttpRequest, HttpResponseBase
from django_structlog import signals

HEADER = "X-Request-ID"


def current() -> str:
    """The id of the request being answered; empty outside of one."""
    return str(structlog.contextvars.get_contextvars().get("request_id", ""))


def connect() -> None:
    signals.bind_extra_request_metadata.connect(_bind_address, dispatch_uid="toolbelt.request_ids")
    signals.bind_extra_request_finished_metadata.connect(_tell, dispatch_uid="toolbelt.request_ids")
    signals.update_failure_response.connect(_tell, dispatch_uid="toolbelt.request_ids")


def _bind_address(request: HttpRequest, **kwargs: Any) -> None:
    # Whoever serves this application has put the client's address here, behind trusted proxies too.
    structlog.contextvars.bind_contextvars(ip=request.META.get("REMOTE_ADDR"))


def _tell(response: HttpResponseBase, **kwargs: Any) -> None:
    response.headers[HEADER] = current()
