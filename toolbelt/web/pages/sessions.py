"""How is the page of one agent's sessions filled?"""

from __future__ import annotations

from datetime import datetime

from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.http import urlencode

from toolbelt.control import queries, sessions
from toolbelt.core import agents as values
from toolbelt.core import sessions as conversations
from toolbelt.web import words
from toolbelt.web.pages import agents
from toolbelt.web.presenters import answers, changes
from toolbelt.web.presenters import sessions as presenters

AT_ONCE = 50


def page(
    agent: str,
    offset: int,
    *,
    path: str,
    here: str,
    notice: answers.Notice | None,
    may_change: bool,
    may_evict: bool,
) -> presenters.SessionsPage:
    """Fill the page, from the place ``offset`` of the list on. Raises errors.NotFound."""
    one = queries.summary(agent)
    found = sessions.listed(agent, offset=offset, limit=AT_ONCE)
    preview = reverse("web:preview", args=[agent])
    initial = one.agent.initial_toolkits
    count = found.total
    return presenters.SessionsPage(
        agent=agents.header(one),
        sessions=tuple(_line(one.agent, kept, preview) for kept in found.sessions),
        initial=initial,
        loadable=tuple(key for key in one.agent.allowed_toolkits if key not in initial),
        may_discover=one.holder.may_load,
        matches=f"{words.number(count)} session{'' if count == 1 else 's'}, the last changed first",
        pages=_pages(found, offset, path),
        notice=notice,
        may_change=may_change,
        may_evict=may_evict,
        here=here,
    )


def _line(agent: values.Agent, kept: sessions.Kept, preview: str) -> presenters.SessionLine:
    held = kept.session
    return presenters.SessionLine(
        key=held.key,
        loadout=held.loadout,
        loaded=tuple(_loaded(agent, change) for change in held.changes),
        began=words.moment(kept.created),
        changed=words.moment(kept.changed),
        preview_url=f"{preview}?{urlencode({'session': held.key})}",
    )


def _loaded(agent: values.Agent, change: conversations.Change) -> presenters.Loaded:
    at = _read(change.at)
    note = ""
    if not change.on:
        # Kept as long as the request may go on that it was unloaded in.
        note = "unloaded, from the next request on"
    elif change.kind == "toolkit" and change.name not in agent.allowed_toolkits:
        note = "not allowed any more"
    return presenters.Loaded(
        kind=change.kind, name=change.name, when=words.moment(at) if at else None, note=note
    )


def _read(at: str) -> datetime | None:
    """Read when something was loaded; who wrote the row wrote that, too."""
    try:
        read = parse_datetime(at)
    except ValueError:
        return None
    return timezone.make_aware(read) if read is not None and timezone.is_naive(read) else read


def _pages(found: sessions.Page, offset: int, path: str) -> changes.Pages:
    shown = len(found.sessions)
    if not shown:
        return changes.Pages(words="", newer_url=path if offset else "")
    before, behind = max(0, offset - AT_ONCE), offset + shown
    return changes.Pages(
        words=f"{words.number(offset + 1)} to {words.number(behind)} of {words.number(found.total)}",
        newer_url=f"{path}?{urlencode({'offset': before})}" if offset else "",
        older_url=f"{path}?{urlencode({'offset': behind})}" if behind < found.total else "",
    )
