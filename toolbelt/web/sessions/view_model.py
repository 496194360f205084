"""The sessions of one agent."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.http import urlencode

from toolbelt.control.agents import sessions
from toolbelt.control.reports import queries
from toolbelt.core import agents as values
from toolbelt.core import sessions as conversations
from toolbelt.web.agents import view_model as agents
from toolbelt.web.calls import view_model as calls
from toolbelt.web.kit import paging, periods, pieces, words

AT_ONCE = 50


def page(agent: str, filters: Mapping[str, Any], *, path: str, may_see_calls: bool) -> pieces.View:
    """Return the page, narrowed by ``filters``. Raise errors.NotFound."""
    summary = queries.summary(agent)
    offset, period = filters["offset"] or 0, periods.time_range(*periods.days(filters))
    stored = sessions.page(agent, offset=offset, limit=AT_ONCE, **period)
    part = paging.Part(items=stored.sessions, offset=offset, total=stored.total, size=AT_ONCE)
    preview = reverse("web:preview", args=[agent])
    initial = summary.agent.initial_toolkits
    return pieces.View(
        agent=agents.present(summary),
        sessions=tuple(
            _line(summary.agent, stored_session, preview, may_see_calls) for stored_session in stored.sessions
        ),
        period=periods.present(filters, anything="Any time"),
        narrowed=bool(periods.address_parameters(filters)),
        initial=initial,
        loadable=tuple(key for key in summary.agent.allowed_toolkits if key not in initial),
        may_discover=summary.access.may_load,
        matches=f"{words.counted(stored.total, 'session')}, most recently changed first",
        pages=part.pages(periods.address_parameters(filters), path),
    )


def _line(
    agent: values.Agent, stored_session: sessions.StoredSession, preview: str, may_see_calls: bool
) -> pieces.View:
    session = stored_session.session
    return pieces.View(
        key=session.key,
        loadout=session.loadout,
        loaded=tuple(_loaded(agent, change) for change in session.changes),
        began=stored_session.created,
        changed=stored_session.changed,
        preview_url=f"{preview}?{urlencode({'session': session.key})}",
        calls_url=calls.session_url(agent.key, session.key, **calls.period_since(stored_session.created))
        if may_see_calls
        else "",
    )


def _loaded(agent: values.Agent, change: conversations.Change) -> pieces.View:
    note = ""
    if not change.on:
        # The request that unloaded it may still go on.
        note = "unloaded from the next request"
    elif change.kind == "toolkit" and change.name not in agent.allowed_toolkits:
        note = "no longer allowed"
    return pieces.View(kind=change.kind, name=change.name, when=_read(change.at), note=note)


def _read(at: str) -> datetime | None:
    """Return when something was loaded, if the row says it; the agent's program may have written it."""
    try:
        read = parse_datetime(at)
    except ValueError:
        return None
    return timezone.make_aware(read) if read is not None and timezone.is_naive(read) else read
