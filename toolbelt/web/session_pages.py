"""The sessions of an agent, and their eviction."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import urlsplit

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse, QueryDict
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control.agents import session_changes
from toolbelt.control.people import rights
from toolbelt.control.reports import queries, told_conversations
from toolbelt.core import agents as values
from toolbelt.core import sessions as conversations
from toolbelt.web import agents
from toolbelt.web.call_log import views as calls
from toolbelt.web.kit import fields, filters, http, notices, paging, periods, pieces, responses, titles, words
from toolbelt.web.kit import forms as kit

# What a conversation was told, by kind.
_KINDS = {
    "added": "may call",
    "changed": "changed",
    "removed": "may no longer call",
    "policy": "policy of",
    "loadable": "may load or no longer load",
    "left_out": "left out",
}


class Sessions(periods.Period):
    """The period of the last change of sessions, and the offset in their list."""

    offset = fields.Offset()


class Eviction(kit.Change):
    """The session to evict."""

    session = forms.CharField(max_length=conversations.MAX_ID_LENGTH, strip=False)


class Clearing(kit.Change):
    """The label to clear, and its session."""

    session = forms.CharField(max_length=conversations.MAX_ID_LENGTH, strip=False)
    label = forms.CharField(max_length=conversations.MAX_LABEL_LENGTH, strip=False)


@require_safe
def page(request: http.Request, agent: str) -> HttpResponse:
    """Show the sessions that have loaded something; htmx gets only their list."""
    return responses.show(request, _Page(request, agent), "sessions/sessions.html", "sessions/_filtered.html")


@require_POST
def evict(request: http.Request, agent: str) -> HttpResponse:
    """Evict a session, after a confirmation."""
    if not rights.may_change_sessions(request.user, "delete", agent):
        raise PermissionDenied
    form = Eviction(request.POST)
    parts = responses.swap_in(request, "sessions/_evicted.html", lambda: _Page(request, agent))
    responses.declare(request, reverse("web:sessions", args=[agent]), parts=parts, refusal="Not evicted")
    session, name = form.checked()["session"], titles.label("agent", agent)
    if not form.cleaned_data["confirm"]:
        reasons = (
            f"The session loses everything it loaded. Its next request starts with what {name} has in every session.",
            "Its connections to upstream servers close, and the servers' state for it is lost.",
            "This cannot be undone, but the agent can load what it needs again.",
        )
        fields = [("session", session)]
        return responses.ask(request, f"Evict session {session}?", "Evict session", reasons, fields)
    session_changes.evict(responses.write(request, form.cleaned_data), agent, session)
    return responses.respond(request, notices.Notice(text=f"Session {session} of {name} evicted."))


@require_POST
def clear_label(request: http.Request, agent: str) -> HttpResponse:
    """Clear a label of a session, after a confirmation."""
    if not rights.may_change_sessions(request.user, "change", agent):
        raise PermissionDenied
    form = Clearing(request.POST)
    parts = responses.swap_in(request, "sessions/_evicted.html", lambda: _Page(request, agent))
    responses.declare(request, reverse("web:sessions", args=[agent]), parts=parts, refusal="Not cleared")
    cleaned = form.checked()
    session, label = cleaned["session"], cleaned["label"]
    if not form.cleaned_data["confirm"]:
        reasons = (
            f"Rules check the next calls of the session as if nothing had brought {label}, although its model may"
            " have read what did.",
            "The next call that brings the label sets it again.",
        )
        fields = [("session", session), ("label", label)]
        return responses.ask(request, f"Clear {label} of session {session}?", "Clear label", reasons, fields)
    session_changes.clear_label(responses.write(request, form.cleaned_data), agent, session, label)
    return responses.respond(request, notices.Notice(text=f"Label {label} of session {session} cleared."))


class _Page(pieces.Page):
    """The sessions of an agent."""

    def __init__(self, request: http.Request, agent: str) -> None:
        criteria = filters.read(Sessions(QueryDict(urlsplit(responses.current_address(request)).query)))
        summary = queries.summary(agent)
        offset, period = criteria["offset"] or 0, periods.time_range(*periods.days(criteria))
        stored = session_changes.page(agent, offset=offset, limit=paging.PAGE_SIZE, **period)
        part = paging.Part(items=stored.sessions, offset=offset, total=stored.total, size=paging.PAGE_SIZE)
        initial, may_see_calls = summary.agent.initial_toolkits, rights.may_read(request.user, "call_record")
        self.agent = agents.PageHeader(summary)
        self.sessions = tuple(_Line(summary.agent, each, may_see_calls) for each in stored.sessions)
        self.period = periods.Choices(criteria, any_label="Any time")
        self.is_filtered = bool(periods.address_parameters(criteria))
        self.initial = initial
        self.conversations = tuple(map(_Conversation, told_conversations.of(agent)))
        self.loadable = summary.inventory.loadable
        self.may_discover = summary.access.may_load
        self.matches = f"{words.counted(stored.total, 'session')}, most recently changed first"
        self.pages = part.pages(periods.address_parameters(criteria), reverse("web:sessions", args=[agent]))
        self.may_change = rights.may_flip(request.user, agent)
        self.may_clear = rights.may_change_sessions(request.user, "change", agent)
        self.may_evict = rights.may_change_sessions(request.user, "delete", agent)


class _Conversation(pieces.View):
    """A conversation whose changes are appended, and what it was told."""

    def __init__(self, conversation: told_conversations.Conversation) -> None:
        stored = conversation.stored
        self.session, self.line, self.seen = stored.session, stored.line, stored.seen
        self.way = "in words" if stored.way == "words" else "appended"
        self.entries = [_Told(entry) for entry in conversation.entries]


class _Told(pieces.View):
    """What a conversation was told at one time."""

    def __init__(self, entry: told_conversations.Entry) -> None:
        told = entry.told
        self.when, self.by, self.tokens = told.at, words.listing(entry.by), told.tokens
        parts = [
            f"{label} {words.listing(tuple(told.changes[kind]))}"
            for kind, label in _KINDS.items()
            if told.changes.get(kind)
        ]
        self.text = "; ".join(parts) or ("began" if not told.parent else "no names")


class _Line(pieces.View):
    """One session."""

    def __init__(
        self, agent: values.Agent, stored: session_changes.StoredSession, may_see_calls: bool
    ) -> None:
        session = stored.session
        self.stored = stored
        self.key = session.key
        self.loadout = session.loadout
        self.loaded = tuple(_Loaded(agent, change) for change in session.changes)
        self.labels = tuple((label.name, label.tool, _parse_time(label.at)) for label in session.labels)
        self.calls_url = (
            calls.session_url(agent.key, session.key, **calls.period_since(stored.created))
            if may_see_calls
            else ""
        )


class _Loaded(pieces.View):
    """What a session loaded or unloaded."""

    def __init__(self, agent: values.Agent, change: conversations.Change) -> None:
        self.kind, self.name, self.when, self.note = change.kind, change.name, _parse_time(change.at), ""
        if not change.on:
            # The request that unloaded it may still be running.
            self.note = "unloaded from the next request"
        elif change.kind == "toolkit" and change.name not in agent.allowed_toolkits:
            self.note = "no longer allowed"


def _parse_time(text: str) -> datetime | None:
    """Return the time of a loading; None if it is invalid, because the agent's program may have written it."""
    try:
        time = parse_datetime(text)
    except ValueError:
        return None
    return timezone.make_aware(time) if time is not None and timezone.is_naive(time) else time
