"""The forms whose changes are proved, and kept as drafts: they are made by their own view, and rolled back."""

from __future__ import annotations

import copy

from django.http import HttpResponse, QueryDict
from django.urls import Resolver404, ResolverMatch, resolve
from django_htmx.middleware import HtmxDetails

from toolbelt.web.kit import http

# The views whose changes are proved. They only write to the database, which is rolled back: no other view may be here.
PROVED = frozenset(
    {
        *("switch", "override", "reset", "apply_bulk", "copy", "change_settings", "archive", "undo"),
        *("block_tool", "block_toolkit", "switch_plugin", "decide", "import_belt"),
        *(
            f"{act}_{kind}"
            for act in ("create", "save", "remove")
            for kind in ("toolkit", "loadout", "sub_app", "gate_rule")
        ),
    }
)


def find(address: str) -> ResolverMatch | None:
    """Return the view that a form with this address is sent to; None unless its changes are proved."""
    try:
        match = resolve(address.partition("?")[0])
    except Resolver404:
        return None
    return match if match.namespaces == ["web"] and match.url_name in PROVED else None


def make(request: http.Request, match: ResolverMatch, address: str) -> HttpResponse:
    """Make the change of the form that was sent with another address, as its view does, with its checks and
    permissions; in the transaction of the caller, which is rolled back. Return the response of the view.
    """
    response: HttpResponse = match.func(_inner(request, match, address), *match.args, **match.kwargs)
    return response


def _inner(request: http.Request, match: ResolverMatch, address: str) -> http.Request:
    """Return the request that would make the change: of a browser, which gets short answers, and confirmed."""
    inner = copy.copy(request)
    inner.META = {name: value for name, value in request.META.items() if not name.startswith("HTTP_HX_")}
    inner.__dict__.pop("headers", None)
    inner.htmx = HtmxDetails(inner)
    inner.path, _, query = address.partition("?")
    inner.path_info, inner.GET = inner.path, QueryDict(query)
    inner.resolver_match = match
    sent = request.POST.copy()
    sent["confirm"] = "yes"
    inner.POST = sent  # type: ignore[assignment]
    # A notice of what was rolled back must not be kept for the next page.
    inner.session = type(request.session)()
    return inner
