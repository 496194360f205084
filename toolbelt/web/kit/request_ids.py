"""The id of each request: in its log lines, in its response, and on its error page."""

import sys
from typing import Any

import structlog
from django.contrib.auth import models
from django.http import HttpRequest, HttpResponseBase
from django_structlog import middlewares, signals

from toolbelt.runtime import availability

HEADER = "X-Request-ID"


class RequestMiddleware(middlewares.RequestMiddleware):
    """Log each request; a database failure is logged as one line, like any response, and not with a traceback."""

    def process_got_request_exception(self, sender: type[Any], request: HttpRequest, **kwargs: Any) -> None:
        """Store the error of the request for its error page (`toolbelt.web.kit.page_shell.server_error`)."""
        unavailable = availability.classify(sys.exc_info()[1])
        if unavailable is None:
            super().process_got_request_exception(sender, request, **kwargs)
            return
        request.unavailable = unavailable  # type: ignore[attr-defined]
        # The log names the user, which would need the database again.
        request.user = models.AnonymousUser()


def current() -> str:
    """Return the id of the current request; empty outside of a request."""
    return str(structlog.contextvars.get_contextvars().get("request_id", ""))


def connect() -> None:
    signals.bind_extra_request_metadata.connect(_bind_address, dispatch_uid="toolbelt.request_ids")
    signals.bind_extra_request_finished_metadata.connect(_set_header, dispatch_uid="toolbelt.request_ids")
    signals.update_failure_response.connect(_set_header, dispatch_uid="toolbelt.request_ids")


def _bind_address(request: HttpRequest, **kwargs: Any) -> None:
    # The server put the client's address here, also behind trusted proxies.
    structlog.contextvars.bind_contextvars(ip=request.META.get("REMOTE_ADDR"))


def _set_header(response: HttpResponseBase, **kwargs: Any) -> None:
    response.headers[HEADER] = current()
