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
from toolbelt.control.agents import agents, subagents
from toolbelt.control.people import rights, roles
from toolbelt.control.reports import queries
from toolbelt.core import belts, errors
from toolbelt.web.agents import view_model as agents_page
from toolbelt.web.kit import entry_forms, http, model_panel, notices, pieces, responses
from toolbelt.web.settings import forms


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

    def show_again(error: errors.ToolbeltError, status: int) -> HttpResponse:
        address = belts.address("agent", {"key": agent})
        form.show_problems(entry_forms.problems_by_place(address, error.problems), is_saved=True)
        return _shown(request, agent, status=status, form=form, seen=was)

    home = reverse("web:settings", args=[agent])
    title, fields = f"Save the settings of {agent}?", (*form.fields, "was", "next")
    responses.declare(request, home, form=show_again, title=title, verb="Save changes", fields=fields)
    given, changes = form.checked(), form.changes()
    seen = {key: was.get(key) for key in changes}
    done = agents.edit(responses.write(request, given), agent, changes, was=seen)
    if done.is_nothing:
        notice = notices.Notice(text=f"No changes: the settings of {agent} are already up to date.")
    else:
        notice = notices.Notice(
            text=f"Settings of {agent} saved.", detail=model_panel.in_short(done.effect), undo=done.entry
        )
    return responses.respond(request, notice)


@require_POST
@permission_required(rights.SET_OPERATORS, raise_exception=True)
def set_operators(request: http.Request, agent: str) -> HttpResponse:
    """Make the users that are ticked the operators of this agent only."""
    form = forms.Operators(request.POST)
    responses.declare(request, reverse("web:settings", args=[agent]))
    given = form.checked()
    done = roles.set_operators(responses.write(request, given), agent, given["user"], was=given["was"])
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
    operators = roles.allowed_users(agent)
    stored = settings.summary.agent
    shown = pieces.View(
        agent=agents_page.present(settings.summary),
        given=stored,
        subagents=tuple(subagents.compare(settings.surface.resolution)),
        form=form,
        seen=json.dumps(seen, ensure_ascii=False),
        operators=operators,
        users=sorted((*operators.own, *operators.others)),
        may_change=user.has_perm(rights.FLIP) and not stored.archived,
        may_flip=rights.may_flip(user, agent),
    )
    return responses.show(request, shown, "settings/settings.html", status=status)
