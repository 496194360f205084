"""The audit log and the history of an agent, their downloads, and the undo of a change."""

from __future__ import annotations

import functools
import heapq
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
    "block.end": "Block ended",
    "draft.end": "Draft ended",
    "override.set": "Override set",
    "override.clear": "Override reset",
    "agent.equip": "Loadout changed",
    "session.equip": "Loadout of a session changed",
}


_KINDS = {
    "agent": "Agents",
    "tool": "Tools",
    "toolkit": "Toolkits",
    "plugin": "Servers & plugins",
    "loadout": "Loadouts",
    "sub_app": "Sub-apps",
    "gate_rule": "Rules",
    "category": "Categories",
    "session": "Sessions",
    "approval": "Approvals",
    "alert": "Alerts",
    "draft": "Drafts",
    "token": "Tokens",
    "user": "Users",
}


class AuditLog(periods.Period):
    """The filters and position of the audit log."""

    person = forms.CharField(required=False, max_length=150)
    by = forms.CharField(required=False, max_length=7)
    agent = forms.CharField(required=False, max_length=64)
    action = forms.CharField(required=False, max_length=64)
    kind = forms.CharField(required=False, max_length=16)
    key = forms.CharField(required=False, max_length=200)
    via = forms.CharField(required=False, max_length=7)
    batch = forms.UUIDField(required=False)
    older = forms.IntegerField(required=False, min_value=1)
    newer = forms.IntegerField(required=False, min_value=1)


VIEWS = saved_views.FilteredList(
    page="audit_log", form=AuditLog, names=("person", "by", "agent", "action", "via", "kind", "key")
)


class Download(AuditLog):
    """The filters and format of a download of the audit log."""

    form = forms.ChoiceField(choices=[("csv", "csv"), ("json", "json")])


@require_safe
def listing(request: http.Request) -> HttpResponse:
    """Show the log; htmx gets only its entries."""
    return responses.show(request, _AuditPage(request), "audit/list.html", "audit/_log.html")


@require_safe
def history(request: http.Request, agent: str) -> HttpResponse:
    """Show the history of an agent; htmx gets only its entries."""
    return responses.show(
        request, _HistoryPage(request, agent), "history/history.html", "history/_history.html"
    )


@require_safe
def download(request: http.Request) -> HttpResponseBase:
    """Return all matching entries as a file, without the contents of entries that the reader may not see."""
    criteria = filters.read(Download(request.GET))
    documents = (
        [
            audit_serializer.serialize(entry, is_open=rights.may_read(request.user, entry.subject_kind))
            for entry in entries
        ]
        for entries in queries.all_changes(**_query(criteria))
    )
    if criteria["form"] == "json":
        return downloads.send(request, _json(documents), "changes", "json")
    rows = ([list(document.values()) for document in batch] for batch in documents)
    return downloads.send(request, downloads.csv_lines(audit_serializer.FIELDS, rows), "changes", "csv")


@require_POST
def undo(request: http.Request, entry: int) -> HttpResponse:
    """Undo a change, or with ``whole`` all changes of its batch.

    This requires the permission for the reverse change.
    """
    logged = queries.change(entry)
    if logged is None:
        raise Http404(f"There is no change {entry}.")
    whole = bool(request.POST.get("whole"))
    if not all(map(rights.undo_check(request.user), undoing.batch_of(entry) if whole else [logged])):
        raise PermissionDenied
    _declare(request, logged)
    write = undoing.undo_batch if whole else undoing.undo
    try:
        change = write(responses.write(request), entry)
    except errors.Stale as error:
        if logged.key and not whole and error.now != logged.before:
            return _changed_since(request, logged, error)
        raise
    notice = notices.Notice(
        text=f"Undone: {audit_words.sentence(logged, with_title=True)}.",
        detail=f"{model_panel.summarize(change.effect)} {_left_out(change.left_out)}".strip(),
        undo=None if whole else change.entry,
        undo_word="Redo",
    )
    return responses.respond(request, notice, change.effect)


def _left_out(entries: Sequence[int]) -> str:
    """Return the sentence about the changes of a batch that an undo left as they are; empty if there are none."""
    if not entries:
        return ""
    verb = "was" if len(entries) == 1 else "were"
    return f"{words.counted(len(entries), 'change')} that {verb} observed cannot be undone: review the tools instead."


def _changed_since(request: http.Request, logged: queries.Entry, error: errors.Stale) -> HttpResponse:
    """Show all three values of a key that was changed again, and offer to set the current one to the old one."""
    family = logged.action.partition(".")[0]
    name = titles.label("toolkit", logged.key) if family == "switch" else logged.key
    action = reverse(f"web:{family}", args=[logged.subject_key, logged.key])
    back = responses.back_url(request, reverse("web:audit_log"))
    before = grants.is_on(logged.before)
    states = [words.state(value) for value in (logged.before, logged.after, error.now)]
    confirmation = notices.Confirmation(
        title=words.switch_question(name, before, titles.label("agent", logged.subject_key)),
        reasons=("There is a newer change of the same setting, so undoing this one would revert both.",),
        differences=(pieces.Difference(label=logged.key, before=states[0], after=states[1], now=states[2]),),
        is_three_way=True,
        action=action,
        fields=(
            ("on", words.form_value(before)),
            ("was", words.form_value(grants.is_on(error.now))),
            ("next", back),
        ),
        confirm_word=words.switch_verb(before),
        dangerous=False,
        back=back,
    )
    if not request.htmx:
        return responses.ask_confirmation(request, confirmation)
    # The page is outdated, so it also receives the changed parts.
    notice = notices.Notice(text=f"Not undone: there is a newer change of {logged.key}.", tone="refused")
    return switches.render_partial(request, logged.subject_key, notice, None, confirmation=confirmation)


def _declare(request: http.Request, logged: queries.Entry) -> None:
    home = reverse("web:audit_log")
    if logged.subject_kind == "agent":
        switches.declare(request, logged.subject_key, home, refusal="Not undone")
    else:
        # A change that affects several agents may be anywhere on the page.
        refresh = functools.partial(responses.refresh, request)
        responses.declare(request, home, parts=refresh, refusal="Not undone")


class Log(pieces.Page):
    """What the audit log and the history of an ``agent`` share, filtered by ``criteria``."""

    def __init__(self, request: http.Request, criteria: Mapping[str, Any], agent: str = "") -> None:
        query, may_undo = (
            _query(criteria) | ({"agent": agent} if agent else {}),
            rights.undo_check(request.user),
        )
        log_page = queries.changes(
            **query,
            older_than=criteria["older"] or None,
            newer_than=criteria["newer"] or None,
            # The page of a batch shows each change, so that each can be undone.
            folded=not criteria["batch"],
        )
        stored = access_index.catalog_view().catalog
        recorded = (
            audit_words.Line(
                entry,
                may_undo(entry),
                is_open=not agent and rights.may_read(request.user, entry.subject_kind),
                stored=stored,
            )
            for entry in log_page.entries
        )
        # Settings that have ended but are not recorded yet belong on the first page.
        pending = [] if log_page.has_newer else queries.unrecorded(**query)
        unrecorded = (audit_words.Line(entry, False, stored=stored) for entry in pending)
        # Of entries with the same time, those that are not recorded yet come first.
        lines = heapq.merge(unrecorded, recorded, key=lambda line: line.when, reverse=True)
        people, actions = (queries.logged_values(column, agent) for column in ("actor", "action"))
        names = [
            name for name in (*VIEWS.names, "batch") if criteria[name] and not (agent and name == "agent")
        ]
        parameters = {name: str(criteria[name]) for name in names} | periods.address_parameters(criteria)
        self.criteria = criteria
        self.log_page = log_page
        self.days = tuple(
            Day(words=day, entries=tuple(entries))
            for day, entries in itertools.groupby(lines, key=lambda line: words.day(line.when))
        )
        self.people = pieces.choices(people, criteria["person"], "Anyone", label=audit_words.actor)
        self.actions = pieces.choices(actions, criteria["action"], "Any change", label=_action)
        self.period = periods.Choices(criteria, any_label="Any time")
        self.parameters = parameters
        self.matches = f"{words.counted(log_page.total, 'change')}, newest first" + (
            f"; {words.counted(len(pending), 'ended setting')} not yet logged" if pending else ""
        )
        self.pages = _pages(log_page, parameters, request.path)


class _AuditPage(Log):
    """The audit log."""

    def __init__(self, request: http.Request) -> None:
        criteria = filters.read(AuditLog(request.GET))
        super().__init__(request, criteria)
        names = {key: titles.option(key, title) for key, title in titles.of_agents(request).items()}
        self.agents = pieces.choices(names, criteria["agent"], "Any agent")
        sources = queries.logged_values("via")
        self.sources = pieces.choices(sources, criteria["via"], "Any source", label=audit_words.source)
        # Shared entries belong to no agent, so the filter leaves out their changes.
        parameters = {name: value for name, value in self.parameters.items() if name != "agent"}
        self.of_all_url = filters.address(request.path, parameters)
        self.actor_kinds = pieces.choices(audit_words.ACTOR_KINDS, criteria["by"], "Any kind of actor")
        self.kinds = pieces.choices(_KINDS, criteria["kind"], "Anything")
        self.keys = tuple(key for key in queries.logged_values("key") if key)
        self.batch = _batch(request, self.log_page) if criteria["batch"] else None
        self.query = urlencode(self.parameters)
        self.views = VIEWS.present(request, criteria)


class _HistoryPage(Log):
    """The history of an agent."""

    def __init__(self, request: http.Request, agent: str) -> None:
        criteria = filters.read(AuditLog(request.GET))
        self.agent = agents.PageHeader(queries.summary(agent))
        super().__init__(request, criteria, agent)
        keys = filter(None, queries.logged_values("key", agent))
        self.keys = pieces.choices(keys, criteria["key"], "Any toolkit or tool")
        self.may_change = rights.may_flip(request.user, agent)


def _query(criteria: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of the query for the criteria; ``until`` is inclusive."""
    first, last = periods.days(criteria)
    query = {name: criteria[name] for name in VIEWS.names}
    query["actor"], query["actor_kind"] = query.pop("person"), query.pop("by")
    query["about"], query["about_kind"] = query.pop("key"), query.pop("kind")
    return {**query, "batch": criteria["batch"] or None, **periods.time_range(first, last)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """The entries of one day."""

    words: str
    entries: tuple[audit_words.Line, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Changes that were made together; ``entry`` undoes them, if they can be undone."""

    words: str
    entry: int | None


def _batch(request: http.Request, log_page: Any) -> Batch | None:
    if not log_page.entries:
        return None
    may_undo = rights.undo_check(request.user)
    # The whole batch, even if it is longer than a page.
    batch = undoing.batch_of(log_page.entries[0].id)
    is_undoable = bool(batch) and all(audit_words.is_undoable(entry) and may_undo(entry) for entry in batch)
    first = log_page.entries[0]
    by = audit_words.actor(first.asked_by or first.actor, None if first.asked_by else first.actor_kind)
    observed = _left_out([entry.id for entry in log_page.entries if entry.is_fact]) if is_undoable else ""
    return Batch(
        words=f"{words.counted(log_page.total, 'change')} made together by {by}. {observed}".strip(),
        entry=batch[0].id if is_undoable else None,
    )


def _pages(log_page: Any, parameters: Mapping[str, str], path: str) -> paging.Pages:
    """Return the position of a page in the log, and the links to the next ones."""
    if not log_page.entries:
        return paging.Pages(words="")
    first, last = log_page.entries[0].id, log_page.entries[-1].id
    return paging.Pages(
        words=f"{len(log_page.entries)} of {words.number(log_page.total)}",
        newer_url=f"{path}?{urlencode({**parameters, 'newer': first})}" if log_page.has_newer else "",
        older_url=f"{path}?{urlencode({**parameters, 'older': last})}" if log_page.has_older else "",
    )


def _action(name: str) -> str:
    """Return the label of an action in a list of choices: ``Switch set``."""
    family, _, act = name.partition(".")
    return _FAMILIES.get(name, f"{family.replace('_', '-').capitalize()} {audit_words.VERBS.get(act, act)}")


def _json(batches: Iterable[Sequence[dict[str, Any]]]) -> Iterator[str]:
    separator = "[\n"
    for documents in batches:
        yield separator + ",\n".join(map(downloads.as_json, documents))
        separator = ",\n"
    yield "[]\n" if separator == "[\n" else "\n]\n"
