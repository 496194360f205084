"""The editor of one kind of entry: the pages that create, change and remove one, after showing the effect on agents."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import reswap

from toolbelt.control import impacts
from toolbelt.control.access import access_index
from toolbelt.control.catalog import consequences, entries, proposals
from toolbelt.control.people import rights
from toolbelt.core import belts, catalog, effects, errors
from toolbelt.web.kit import differences, entry_forms, http, model_panel, notices, pieces, responses, titles

MAX_REASON_LENGTH = 500
# Fields of the confirmation, and those that app.js adds to each request to describe the page.
_OTHER_FIELDS = frozenset({"csrfmiddlewaretoken", "shown", "again", "reason", "tools", "sections", "cells"})
# The fields that make up a toolkit's section of the policy.
_POLICY_FIELDS = frozenset({"policy", "policy_when_off", "tool_notes"})


class Editor:
    """The editor of one kind; ``template`` is that of its form, and ``about`` introduces the page."""

    kind: ClassVar[proposals.Kind]
    form: ClassVar[type[entry_forms.EntryForm]]
    template: ClassVar[str]
    about: ClassVar[str] = ""

    @property
    def urls(self) -> list[URLPattern]:
        """Return the URLs of the editor, named after the kind: ``new_toolkit``, ``save_toolkit``."""
        noun = belts.KINDS[self.kind].word
        # New entries are not under toolkits/ or the like, where a toolkit may be named "new".
        new, entry_path = f"new/{noun}/", f"{noun}s/<name:{self.kind}>/"
        return [
            self._path(new, "new", "add", require_safe, self.new),
            self._path(f"{new}save/", "create", "add", require_POST, self.create),
            self._path(f"{entry_path}edit/", "edit", "change", require_safe, self.edit),
            self._path(f"{entry_path}save/", "save", "change", require_POST, self.save),
            self._path(f"{entry_path}remove/", "remove", "delete", require_POST, self.remove),
        ]

    def new(self, request: http.Request) -> HttpResponse:
        """Show the form of a new entry with its initial values."""
        source = self.source(request, access_index.catalog_view().catalog)
        initial = self.form.initial_of(source) if source else {}
        form = self.form({**initial, belts.KINDS[self.kind].named_by: ""}, initial=initial)
        return self.show(request, form, seen={}, copied=request.GET.get("from", "") if source else "")

    def create(self, request: http.Request) -> HttpResponse:
        """Create the entry, or show the form after one of its buttons changed its rows."""
        return self._save(request, self.form(request.POST, initial={}), {})

    def edit(self, request: http.Request, name: str) -> HttpResponse:
        """Show the form of an entry."""
        value = self.get(name)
        initial = self.form.initial_of(value)
        form = self.form(initial, name=name, initial=initial)
        return self.show(request, form, seen=belts.entry(self.kind, value))

    def save(self, request: http.Request, name: str) -> HttpResponse:
        """Save the fields that differ from what the page showed, or show the form after a button changed its rows."""
        self.get(name)
        was = entry_forms.read_was(request.POST)
        name_field = belts.KINDS[self.kind].named_by
        stored = belts.value(self.kind, {**was, name_field: name}, access_index.catalog_view().catalog)
        form = self.form(request.POST, name=name, initial=self.form.initial_of(stored))
        return self._save(request, form, was)

    def remove(self, request: http.Request, name: str) -> HttpResponse:
        """Remove the entry, after a confirmation."""
        seen_digest, reason = _digest_and_reason(request)
        entry_url = self.entry_url(name)
        ask = functools.partial(_ask, request, entry_url)
        responses.declare(request, entry_url, refusal="Not removed", ask=ask)
        write, label = responses.write(request, {"reason": reason}), titles.label(self.kind, name)
        change = proposals.remove(
            write, self.kind, name, was=entry_forms.read_was(request.POST), seen_digest=seen_digest
        )
        responses.declare(request, reverse(f"web:{self.kind}s"))
        text = f"{belts.KINDS[self.kind].word.capitalize()} {label} removed."
        undo = responses.undo_entry(request, change)
        return responses.respond(request, notices.Notice(text=text, undo=undo))

    def source(self, request: http.Request, stored: catalog.Catalog) -> Any:
        """Return the entry to copy for a new one, or None."""
        return None

    def get(self, name: str) -> Any:
        """Return a stored entry. Raise errors.NotFound if there is none."""
        kind, stored = belts.KINDS[self.kind], access_index.catalog_view().catalog
        named = {getattr(value, kind.named_by): value for value in getattr(stored, f"{self.kind}s").values()}
        if name not in named:
            raise errors.NotFound(kind.word, name, named)
        return named[name]

    def page(self, request: http.Request, form: entry_forms.EntryForm, seen: Mapping[str, Any]) -> EditPage:
        """Return what the form shows; ``seen`` is the entry that the page was made from."""
        return EditPage(self, form, seen)

    def show(
        self,
        request: http.Request,
        form: entry_forms.EntryForm,
        *,
        seen: Mapping[str, Any],
        status: int = 200,
        copied: str = "",
    ) -> HttpResponse:
        """Show the form; ``copied`` names the entry that a new one was copied from."""
        page = self.page(request, form, seen)
        page.copied = copied
        form.set_choices(access_index.catalog_view().catalog)
        return render(
            request, self.template if request.htmx else "kit/edit.html", {"page": page}, status=status
        )

    def _save(self, request: http.Request, form: entry_forms.EntryForm, was: dict[str, Any]) -> HttpResponse:
        def show_again(problems: Mapping[str, str], status: int = 422) -> HttpResponse:
            form.show_problems(problems, is_saved=status >= 400)
            return self.show(request, form, seen=was, status=status)

        if "act" in request.POST:
            return show_again(form.check_draft() if form.entry_name else {}, 200)
        if "again" in request.POST:
            return show_again({}, 200)
        if not form.entry_name:
            return show_again({form.naming: f"Enter a {form.naming}."})
        if form.errors or (problems := form.check_rows()):
            return show_again(problems if not form.errors else {})
        seen_digest, reason = _digest_and_reason(request)
        page = request.path if form.is_new else self.entry_url(form.entry_name)

        def refuse(error: errors.ToolbeltError, status: int) -> HttpResponse:
            if isinstance(error, entries.NameTaken):
                return show_again({form.naming: str(error)}, status)
            address = belts.address(self.kind, {form.naming: form.entry_name})
            return show_again(entry_forms.problems_by_path(address, error.problems), status)

        responses.declare(request, page, form=refuse, ask=functools.partial(_ask, request, page))
        changes = form.entry() if form.is_new else form.changes()
        change = proposals.save(
            responses.write(request, {"reason": reason}),
            self.kind,
            form.entry_name,
            changes,
            was=None if form.is_new else {key: was.get(key) for key in changes},
            new=form.is_new,
            seen_digest=seen_digest,
        )
        responses.declare(request, self.entry_url(form.entry_name))
        noun, name = belts.KINDS[self.kind].word, titles.label(self.kind, form.entry_name)
        if change.is_nothing:
            notice = notices.Notice(text=f"No changes: the {noun} {name} is already up to date.")
        else:
            text = f"{noun.capitalize()} {name} {'created' if form.is_new else 'saved'}."
            detail = "" if seen_digest else "No agent is affected."
            notice = notices.Notice(text=text, detail=detail, undo=responses.undo_entry(request, change))
        return responses.respond(request, notice)

    def entry_url(self, name: str) -> str:
        """Return the URL of an entry's page."""
        return reverse(f"web:{self.kind}", args=[name])

    def _path(
        self, route: str, name: str, action: rights.Act, allow: Callable[..., Any], method: Callable[..., Any]
    ) -> URLPattern:
        @allow
        @permission_required(rights.permission(action, self.kind), raise_exception=True)
        def view(request: http.Request, **address: str) -> HttpResponse:
            response: HttpResponse = method(request, *address.values())
            return response

        named: URLPattern = path(route, view, name=f"{name}_{self.kind}")
        return named


class EditPage(pieces.Page):
    """The form of an entry; ``seen`` is the entry that the page was made from."""

    copied = ""

    def __init__(self, editor: Editor, form: entry_forms.EntryForm, seen: Mapping[str, Any]) -> None:
        kind, name = editor.kind, form.entry_name
        self.editor, self.form = editor, form
        self.listing = reverse(f"web:{kind}s")
        self.action = reverse(
            f"web:create_{kind}" if form.is_new else f"web:save_{kind}", args=[] if form.is_new else [name]
        )
        self.back = self.listing if form.is_new else editor.entry_url(name)
        self.seen = json.dumps(seen, ensure_ascii=False)
        self.word = belts.KINDS[kind].word


def _digest_and_reason(request: http.Request) -> tuple[str, str]:
    return request.POST.get("shown", ""), request.POST.get("reason", "")[:MAX_REASON_LENGTH]


def _ask(request: http.Request, back: str, unseen: proposals.UnseenEffect) -> HttpResponse:
    """Show the effect of a change: in a dialog above the form for htmx, on a separate page for a browser."""
    context = {"page": _Question(request, back, unseen.proposal)}
    if not request.htmx:
        return render(request, "kit/proposal.html", context)
    # The form below the dialog keeps what was typed.
    return reswap(render(request, "kit/_proposal_dialog.html", context), "none")


class _Question(pieces.Page):
    """The effect of a change, and the form that repeats the request."""

    def __init__(self, request: http.Request, back: str, proposal: proposals.Proposal) -> None:
        kind, removal = belts.KINDS[proposal.kind], proposal.after is None
        verb = "Remove" if removal else "Create" if proposal.before is None else "Save"
        after = {key: value for key, value in (proposal.after or {}).items() if key != kind.named_by}
        seen_digest, self.reason = _digest_and_reason(request)
        self.title = f"{verb} {kind.word} {titles.label(proposal.kind, proposal.name)}?"
        self.proposal = proposal
        self.rule_effect = proposal.rule_effect
        self.unaffected = proposal.agents - len(proposal.touched)
        broken = [affected.agent.key for affected in proposal.touched if affected.effect.breaks]
        self.live = sum(impacts.by_agent(broken).values(), effects.NO_CONVERSATIONS)
        self.differences = tuple(differences.summaries(proposal.before or {}, after))
        self.consequences = [
            (affected, pieces.Effect.of([affected.effect], _notes(affected, proposal)))
            for affected in proposal.touched
        ]
        fields = [
            (field, value)
            for field in request.POST
            if field not in _OTHER_FIELDS
            for value in request.POST.getlist(field)
        ]
        # The new digest replaces the one that was shown before.
        self.fields = (*fields, ("shown", proposal.digest))
        self.word = "Save changes" if verb == "Save" else f"{verb} {kind.word}"
        self.dangerous = removal or any(affected.destructive for affected in proposal.touched)
        self.may_edit = not removal
        self.is_repeated = bool(seen_digest)
        self.action = request.path
        self.back = back


def _notes(consequence: consequences.Consequence, proposal: proposals.Proposal) -> Iterator[str]:
    """Return notes on the effect on the policy, with a different wording if its text changes."""
    rewritten = proposal.kind == "toolkit" and _POLICY_FIELDS.intersection(proposal.after or {})
    for policy_change in consequence.effect.policy:
        toolkit, before, after = policy_change
        if rewritten and toolkit == proposal.name and before == after:
            yield f"changes policy {toolkit}"
        else:
            yield from model_panel.notes([policy_change])
