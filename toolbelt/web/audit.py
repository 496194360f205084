"""The audit log and the history of an agent, their files, and undoing a change."""

from __future__ import annotations

import functools
import heapq
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control import undo as undoing
from toolbelt.control.access import access_index
from toolbelt.control.people import rights
from toolbelt.control.reports import audit_serializer, queries
from toolbelt.core import errors, grants
from toolbelt.web import agents, switches
from toolbelt.web.kit import (
    audit_words,
    downloads,
    filters,
    http,
    model_panel,
    notices,
    paging,
    periods,
    pieces,
    responses,
    saved_views,
    titles,
    words,
)

_FAMILIES = {
    "switch.set": "Switch set",
    "switch.clear": "Switch reset",
    "switch.end": "Switch ended",
    "override.end": "Override ended",
    "override.set": "Override set",
    "override.clear": "Override reset",
    "agent.equip": "Loadout changed",
}


class AuditLog(periods.Period):
    """The filters and position of the audit log."""

    person = forms.CharField(required=False, max_length=150)
    agent = forms.CharField(required=False, max_length=64)
    action = forms.CharField(required=False, max_length=64)
    key = forms.CharField(required=False, max_length=64)
    via = forms.CharField(required=False, max_length=7)
    batch = forms.UUIDField(required=False)
    older = forms.IntegerField(required=False, min_value=1)
    newer = forms.IntegerField(required=False, min_value=1)


VIEWS = saved_views.FilteredList(
    page="audit_log", form=AuditLog, names=("person", "agent", "action", "via", "key")
)


class Download(AuditLog):
    """The filters and format of a download of the audit log."""

    form = forms.ChoiceField(choices=[("csv", "csv"), ("json", "json")])


@require_safe
def listing(request: http.Request) -> HttpResponse:
    """Show the log, or only its entries to htmx."""
    given, path = filters.read(AuditLog(request.GET)), request.path
    shown = _log(request, given)
    names = {key: titles.option(key, title) for key, title in titles.of_agents(request).items()}
    shown.agents = pieces.choices(names, given["agent"], "Any agent")
    sources = queries.logged_values("via")
    shown.sources = pieces.choices(sources, given["via"], "Any source", label=audit_words.source)
    # Shared things belong to no agent, so the filter leaves out their changes.
    others = {name: value for name, value in shown.narrowed.items() if name != "agent"}
    shown.of_all_url = filters.address(path, others)
    shown.keys = tuple(key for key in queries.logged_values("key") if key)
    shown.batch = _batch(request, shown.log_page) if given["batch"] else None
    shown.query = urlencode(shown.narrowed)
    shown.views = VIEWS.present(request, given)
    return responses.show(request, shown, "audit/list.html", "audit/_log.html")


@require_safe
def history(request: http.Request, agent: str) -> HttpResponse:
    """Show the history of an agent, or only its entries to htmx."""
    given, header = filters.read(AuditLog(request.GET)), agents.present(queries.summary(agent))
    shown = _log(request, given, agent)
    shown.agent = header
    keys = filter(None, queries.logged_values("key", agent))
    shown.keys = pieces.choices(keys, given["key"], "Any toolkit or tool")
    shown.may_change = rights.may_flip(request.user, agent)
    return responses.show(request, shown, "history/history.html", "history/_history.html")


@require_safe
def download(request: http.Request) -> HttpResponseBase:
    """Return all of the log that the filters leave as a file, without the contents of entries that the reader may not
    see.
    """
    given = filters.read(Download(request.GET))
    documents = (
        [
            audit_serializer.serialize(entry, is_open=rights.may_read(request.user, entry.subject_kind))
            for entry in entries
        ]
        for entries in queries.all_changes(**_query(given))
    )
    if given["form"] == "json":
        return downloads.send(request, _json(documents), "changes", "json")
    rows = ([list(document.values()) for document in part] for part in documents)
    return downloads.send(request, downloads.csv_lines(audit_serializer.FIELDS, rows), "changes", "csv")


@require_POST
def undo(request: http.Request, entry: int) -> HttpResponse:
    """Undo a change, or with ``whole`` all changes that were made together.

    It needs the permission for the change that undoes it.
    """
    done = queries.change(entry)
    if done is None:
        raise Http404(f"There is no change {entry}.")
    whole = bool(request.POST.get("whole"))
    if not all(map(rights.undo_check(request.user), undoing.batch_of(entry) if whole else [done])):
        raise PermissionDenied
    _declare(request, done)
    write = undoing.undo_batch if whole else undoing.undo
    try:
        change = write(responses.write(request), entry)
    except errors.Stale as stale:
        if done.key and not whole and stale.now != done.before:
            return _changed_since(request, done, stale)
        raise
    notice = notices.Notice(
        text=f"Undone: {audit_words.sentence(done, with_title=True)}.",
        detail=model_panel.summarize(change.effect),
        undo=None if whole else change.entry,
        undo_word="Redo",
    )
    return responses.respond(request, notice, change.effect)


def _changed_since(request: http.Request, done: queries.Entry, stale: errors.Stale) -> HttpResponse:
    """Show the three values, and offer to change the current one, instead of undoing a value that has changed since."""
    family = done.action.partition(".")[0]
    name = titles.label("toolkit", done.key) if family == "switch" else done.key
    action = reverse(f"web:{family}", args=[done.subject_key, done.key])
    back = responses.back_url(request, reverse("web:audit_log"))
    before = grants.is_on(done.before)
    states = [words.state(value) for value in (done.before, done.after, stale.now)]
    question = notices.Confirmation(
        title=words.switch_question(name, before, titles.label("agent", done.subject_key)),
        reasons=("There is a newer change of the same setting, so undoing this one would revert both.",),
        differences=(pieces.Difference(label=done.key, before=states[0], after=states[1], now=states[2]),),
        is_three_way=True,
        action=action,
        fields=(
            ("on", words.form_value(before)),
            ("was", words.form_value(grants.is_on(stale.now))),
            ("next", back),
        ),
        confirm_word=words.switch_verb(before),
        dangerous=False,
        back=back,
    )
    if not request.htmx:
        return responses.ask_confirmation(request, question)
    # The page shows what is no longer so: it gets the parts as well.
    notice = notices.Notice(text=f"Not undone: there is a newer change of {done.key}.", tone="refused")
    return switches.render_partial(request, done.subject_key, notice, None, question=question)


def _declare(request: http.Request, done: queries.Entry) -> None:
    home = reverse("web:audit_log")
    if done.subject_kind == "agent":
        switches.declare(request, done.subject_key, home, refusal="Not undone")
    else:
        # What concerns several agents may be anywhere on the page.
        reload = functools.partial(responses.refresh, request)
        responses.declare(request, home, parts=reload, refusal="Not undone")


def _log(request: http.Request, given: Mapping[str, Any], agent: str = "") -> pieces.View:
    """Return what the audit log and the history of an ``agent`` share, filtered as ``given``."""
    asked_for, may_undo = _query(given) | ({"agent": agent} if agent else {}), rights.undo_check(request.user)
    log_page = queries.changes(
        **asked_for, older_than=given["older"] or None, newer_than=given["newer"] or None
    )
    stored = access_index.catalog_view().catalog
    recorded = (
        audit_words.present(
            entry,
            may_undo(entry),
            is_open=not agent and rights.may_read(request.user, entry.subject_kind),
            stored=stored,
        )
        for entry in log_page.entries
    )
    # What has ended and is still to be recorded belongs on the first page.
    waiting = [] if log_page.has_newer else queries.unrecorded(**asked_for)
    unrecorded = (audit_words.present(entry, False, stored=stored) for entry in waiting)
    # At the same moment, what is still to be recorded comes first.
    lines = heapq.merge(unrecorded, recorded, key=lambda line: line.when, reverse=True)
    people, actions = (queries.logged_values(column, agent) for column in ("actor", "action"))
    names = [name for name in (*VIEWS.names, "batch") if given[name] and not (agent and name == "agent")]
    narrowed = {name: str(given[name]) for name in names} | periods.address_parameters(given)
    return pieces.View(
        given=given,
        log_page=log_page,
        days=tuple(
            pieces.View(words=day, entries=tuple(entries))
            for day, entries in itertools.groupby(lines, key=lambda line: words.day(line.when))
        ),
        people=pieces.choices(people, given["person"], "Anyone", label=audit_words.actor),
        actions=pieces.choices(actions, given["action"], "Any change", label=_action),
        period=periods.present(given, any_label="Any time"),
        narrowed=narrowed,
        matches=f"{words.counted(log_page.total, 'change')}, newest first"
        + (f"; {words.counted(len(waiting), 'ended setting')} not yet logged" if waiting else ""),
        pages=_pages(log_page, narrowed, request.path),
    )


def _query(filters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the query for the page's filters; ``until`` is inclusive."""
    first, last = periods.days(filters)
    query = {name: filters[name] for name in VIEWS.names}
    query["actor"] = query.pop("person")
    return {**query, "batch": filters["batch"] or None, **periods.time_range(first, last)}


def _batch(request: http.Request, log_page: Any) -> pieces.View | None:
    if not log_page.entries:
        return None
    may_undo = rights.undo_check(request.user)
    # All of it, also if it is longer than a page.
    batch = undoing.batch_of(log_page.entries[0].id)
    is_undoable = bool(batch) and all(audit_words.is_undoable(entry) and may_undo(entry) for entry in batch)
    by = audit_words.actor(log_page.entries[0].actor, log_page.entries[0].via)
    return pieces.View(
        words=f"{words.counted(log_page.total, 'change')} made together by {by}.",
        entry=batch[0].id if is_undoable else None,
    )


def _pages(log_page: Any, narrowed: Mapping[str, str], path: str) -> paging.Pages:
    """Return the position of a page in the log, and the links to the next ones."""
    if not log_page.entries:
        return paging.Pages(words="")
    first, last = log_page.entries[0].id, log_page.entries[-1].id
    return paging.Pages(
        words=f"{len(log_page.entries)} of {words.number(log_page.total)}",
        newer_url=f"{path}?{urlencode({**narrowed, 'newer': first})}" if log_page.has_newer else "",
        older_url=f"{path}?{urlencode({**narrowed, 'older': last})}" if log_page.has_older else "",
    )


def _action(name: str) -> str:
    """Return the name of an action, to choose it from a list: ``Switch set``."""
    family, _, act = name.partition(".")
    return _FAMILIES.get(name, f"{family.replace('_', '-').capitalize()} {audit_words.VERBS.get(act, act)}")


def _json(batches: Iterable[Sequence[dict[str, Any]]]) -> Iterator[str]:
    before = "[\n"
    for documents in batches:
        yield before + ",\n".join(map(downloads.as_json, documents))
        before = ",\n"
    yield "[]\n" if before == "[\n" else "\n]\n"
