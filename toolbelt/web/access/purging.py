"""The button "Purge from conversations": its confirmation and response on the page of a tool or toolkit."""

from __future__ import annotations

from django.http import HttpResponse

from toolbelt.control.catalog import purging
from toolbelt.web.kit import forms, http, responses, titles


class Purge(forms.Change):
    """The confirmation of a purge."""


def respond(request: http.Request, kind: purging.Kind, name: str, home: str) -> HttpResponse:
    """Ask for confirmation of a purge, with the conversations that it concerns, or do it."""
    responses.declare(request, home, refusal="Not purged")
    values = Purge(request.POST).checked()
    label = titles.label(kind, name)
    if not values["confirm"]:
        return responses.ask(
            request, f"Purge {label} from conversations?", "Purge", purging.plan(kind, name).reasons
        )
    change = purging.purge(responses.write(request, values), kind, name)
    return responses.respond_changed(request, change, f"{label} is purged from conversations")
