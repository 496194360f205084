"""The settings of one agent: shown and changed; its operators; and archiving it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control.access import access_index
from toolbelt.control.agents import agents
from toolbelt.control.people import rights, roles
from toolbelt.control.reports import queries
from toolbelt.core import belts, errors
from toolbelt.web.kit import entry_forms, http, model, notices, responses
from toolbelt.web.settings import forms, view_model

_ADD = rights.permission("add", "agent")


@require_safe
def page(request: http.Request, agent: str) -> HttpResponse:
    """Show the page."""
    return _shown(request, agent)


@require_POST
@permission_required(rights.FLIP, raise_exception=True)
def change(request: http.Request, agent: str) -> HttpResponse:
    """Change what differs from what the page showed; other changes since then are kept."""
    was = entry_forms.read_was(request.POST)
    shown = belts.value("agent", {**was, "key": agent}, access_index.catalog_view().catalog)
    form = forms.Settings(request.POST, name=agent, initial=forms.Settings.initial_of(shown))

    def again(error: errors.ToolbeltError, status: int) -> HttpResponse:
        address = belts.address("agent", {"key": agent})
        problems = error.problems if isinstance(error, errors.Invalid) else ()
        form.show_problems(
            entry_forms.problems_by_place(address, problems) or {"": str(error)}, is_saved=True
        )
        return _shown(request, agent, status=status, form=form, seen=was)

    home = reverse("web:settings", args=[agent])
    title, fields = f"Save the settings of {agent}?", (*form.fields, "was", "next")
    responses.declare(request, home, form=again, title=title, verb="Save changes", fields=fields)
    given, changes = form.checked(), form.changes()
    seen = {key: was.get(key) for key in changes}
    done = agents.edit(responses.write(request, given), agent, changes, was=seen)
    if done.is_nothing:
        notice = notices.Notice(text=f"No changes: the settings of {agent} are already up to date.")
    else:
        notice = notices.Notice(
            text=f"Settings of {agent} saved.", detail=model.in_short(done.effect), undo=done.entry
        )
    return responses.respond(request, notice)


@require_POST
@permission_required(rights.NAME_OPERATORS, raise_exception=True)
def name_operators(request: http.Request, agent: str) -> HttpResponse:
    """Make the users that are ticked the operators of this agent only."""
    form = forms.Operators(request.POST)
    responses.declare(request, reverse("web:settings", args=[agent]))
    given = form.checked()
    done = roles.name_operators(responses.write(request, given), agent, given["user"], was=given["was"])
    names = ", ".join(done.after) or "none"
    text = f"Operators of {agent} only: {names}."
    return responses.respond(request, notices.Notice(text=text, undo=done.entry))


@require_POST
@permission_required(rights.FLIP, raise_exception=True)
def archive(request: http.Request, agent: str) -> HttpResponse:
    """Archive the agent, after a confirmation, or restore it."""
    form = forms.Archiving(request.POST)
    home = reverse("web:settings", args=[agent])
    responses.declare(request, home)
    given = form.checked()
    archived = given["archived"] == "yes"

    def ask(error: errors.ConfirmationRequired) -> HttpResponse:
        # Archiving concerns everything that the agent has, so there is no difference to show.
        question = dataclasses.replace(responses.question(request, error), effect=None)
        return responses.ask_confirmation(request, question)

    responses.declare(
        request,
        home,
        title=f"Archive {agent}?" if archived else f"Restore {agent}?",
        verb="Archive agent" if archived else "Restore agent",
        fields=("archived", "reason", "next"),
        question=ask,
    )
    done = agents.archive(responses.write(request, given), agent, archived)
    word = "archived" if archived else "restored"
    notice = notices.Notice(
        text=f"{agent} is {word}{' already' if done.is_nothing else ''}.",
        detail="" if archived else "It works as before.",
        undo=done.entry,
    )
    return responses.respond(request, notice)


def _shown(
    request: http.Request,
    agent: str,
    *,
    status: int = 200,
    form: forms.Settings | None = None,
    seen: Mapping[str, Any] = MappingProxyType({}),
) -> HttpResponse:
    settings = queries.settings(agent)
    user = request.user
    if form is None:
        initial = forms.Settings.initial_of(settings.summary.agent)
        form, seen = forms.Settings(initial, name=agent, initial=initial), settings.entry
    form.offer(settings.surface.resolution.context.catalog)
    shown = view_model.page(settings)
    shown.form = form
    shown.seen = json.dumps(seen, ensure_ascii=False)
    shown.operators = operators = roles.allowed_users(agent)
    shown.users = sorted((*operators.own, *operators.others))
    shown.may_archive = user.has_perm(rights.FLIP)
    shown.may_change = shown.may_archive and not shown.agent.archived
    shown.may_add = user.has_perm(_ADD)
    shown.may_flip = rights.may_flip(user, agent)
    shown.may_name = user.has_perms(rights.NAME_OPERATORS)
    shown.may_edit_in_admin = user.is_staff and shown.may_archive
    return responses.show(request, shown, "settings/settings.html", status=status)
