"""The request that views receive: Django's request with the attributes that middleware and the view add."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest, HttpResponse
from django_htmx.middleware import HtmxDetails

from toolbelt.core import effects, errors
from toolbelt.web.kit import notices

if TYPE_CHECKING:
    from toolbelt.control.config import adopting
    from toolbelt.control.reports import queries

# Renders the parts of a page that htmx swaps in, from the notice, the effect of the change, and the status.
Parts = Callable[[notices.Notice, effects.Effect | None, int], HttpResponse]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The responses of a view. Without `parts`, htmx is redirected like a browser.

    `home` is the page to redirect to, unless the form names another one; `parts` renders the parts for htmx;
    `refusal` starts the notice of a refusal; `form` shows the form again with an error, instead of that notice.
    The confirmation of a change has a `title`, a button with the `verb`, and repeats `fields` of the form;
    `ask` replaces it.
    """

    home: str
    parts: Parts | None = None
    refusal: str = "Not changed"
    form: Callable[[errors.ToolbeltError, int], HttpResponse] | None = None
    title: str = ""
    verb: str = ""
    fields: tuple[str, ...] = ()
    ask: Callable[[Any], HttpResponse] | None = None


class Request(HttpRequest):
    """A request of a page, or of htmx for parts of one."""

    htmx: HtmxDetails
    # The counts in the frame of the page, read before the page itself.
    counts: queries.Counts
    # The titles of all agents by key, once they were read.
    agent_titles: Mapping[str, str]
    # How many calls wait for approval of the user, by agent, once it was read.
    waiting_calls: Mapping[str, int]
    # The converted file of an import, if the file is not a belt.
    adopted: adopting.Adopted
    # How to respond to results and errors of the view.
    answers: Answers
