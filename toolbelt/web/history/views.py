"""What was changed about one agent."""

from __future__ import annotations

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from toolbelt.control.people import rights
from toolbelt.control.reports import queries
from toolbelt.web.agents import view_model as agents
from toolbelt.web.audit import forms as audit
from toolbelt.web.audit import view_model as audit_log
from toolbelt.web.kit import filters, http, pieces, responses


@require_safe
def page(request: http.Request, agent: str) -> HttpResponse:
    """Show the history, or only its entries to htmx."""
    narrowed = filters.read(audit.AuditLog(request.GET))
    header = agents.present(queries.summary(agent))
    shown = audit_log.log(narrowed, path=request.path, may_undo=rights.undo_check(request.user), agent=agent)
    for day in shown.days:
        for entry in day.entries:
            # Each line would name it.
            entry.agent = ""
    shown.agent = header
    keys = filter(None, queries.logged_values("key", agent))
    shown.keys = pieces.choices(keys, narrowed["key"], "Any toolkit or tool")
    shown.may_change = rights.may_flip(request.user, agent)
    return responses.show(request, shown, "history/history.html", "history/_history.html")
