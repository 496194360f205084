"""The request that views receive: Django's request with the attributes that middleware adds."""

from __future__ import annotations

from collections.abc import Mapping
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
    # The counts in the frame of the page, read before the page itself.
    counts: queries.Counts
    # The titles of all agents by key, once they were read.
    agent_titles: Mapping[str, str]
    # The converted file of an import, if the file is not a belt.
    adopted: adopting.Adopted
    # How to respond to results and errors of the view.
    answers: responses.Answers
