"""The request that views get: Django's, with what the middleware adds to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import HttpRequest
from django_htmx.middleware import HtmxDetails

if TYPE_CHECKING:
    from toolbelt.control.config import adopting
    from toolbelt.control.reports import queries
    from toolbelt.web.kit import responses


class Request(HttpRequest):
    """A request of a page, or of htmx for parts of one."""

    htmx: HtmxDetails
    # What the frame of the page shows; read before the page itself.
    counts: queries.Counts
    # What the file that is imported was read as, if it is no belt.
    adopted: adopting.Adopted
    # How the view answers.
    answers: responses.Answers
