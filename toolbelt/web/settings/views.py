"""The settings of one agent: seen, changed, and taken over by another one."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.shortcuts import render
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
    return _shown(request, agent, notice=responses.pop_notice(request)[0])


@require_POST
@permission_required(rights.FLIP, raise_exception=True)
def change(request: http.Request, agent: str) -> HttpResponse:
    """Change what differs from what the page showed; what else somebody changed since stays."""
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
@permission_required(_ADD, raise_exception=True)
def duplicate(request: http.Request, agent: str) -> HttpResponse:
    """Make another agent that is configured as this one is."""
    form = forms.Copy(request.POST)

    def again(error: errors.ToolbeltError, status: int) -> HttpResponse:
        problems = error.problems if isinstance(error, errors.Invalid) else ()
        said = " ".join(problem.message for problem in problems) or str(error)
        copy = view_model.Copy(key=request.POST.get("key", "")[:200], problem=said)
        return _shown(request, agent, status=status, copy=copy)

    responses.declare(request, reverse("web:settings", args=[agent]), form=again)
    key = form.checked()["key"]
    done = agents.duplicate(responses.write(request), agent, key)
    made = queries.change(done.entry) if done.entry is not None else None
    may_undo = made is not None and rights.may_undo(request.user, made)
    notice = notices.Notice(
        text=f"Agent {key} created as a copy of {agent}.", undo=done.entry if may_undo else None
    )
    responses.declare(request, reverse("web:settings", args=[key]))
    return responses.respond(request, notice)


@require_POST
@permission_required(rights.NAME_OPERATORS, raise_exception=True)
def name_operators(request: http.Request, agent: str) -> HttpResponse:
    """Let the users that are ticked, and no others, operate this agent though they may not flip every agent's."""
    form = forms.Operators(request.POST)
    responses.declare(request, reverse("web:settings", args=[agent]))
    said = form.checked()
    done = roles.name_operators(responses.write(request, said), agent, said["user"], was=said["was"])
    names = ", ".join(done.after) or "none"
    text = f"Operators of {agent} only: {names}."
    return responses.respond(request, notices.Notice(text=text, undo=done.entry))


@require_POST
@permission_required(rights.FLIP, raise_exception=True)
def archive(request: http.Request, agent: str) -> HttpResponse:
    """Put the agent away, once somebody has said that this is meant; or bring it back."""
    form = forms.Archiving(request.POST)
    home = reverse("web:settings", args=[agent])
    responses.declare(request, home)
    said = form.checked()
    archived = said["archived"] == "yes"

    def ask(error: errors.ConfirmationRequired) -> HttpResponse:
        # It is about all that the agent has, and not about what of it differs.
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
    done = agents.archive(responses.write(request, said), agent, archived)
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
    notice: notices.Notice | None = None,
    copy: view_model.Copy | None = None,
) -> HttpResponse:
    found = queries.settings(agent)
    user = request.user
    if form is None:
        initial = forms.Settings.initial_of(found.summary.agent)
        form, seen = forms.Settings(initial, name=agent, initial=initial), found.entry
    form.offer(found.surface.resolution.context.catalog)
    surface = request.build_absolute_uri(reverse("api:get_surface", args=[agent]))
    filled = view_model.page(
        found,
        address=surface.removesuffix("surface"),
        here=reverse("web:settings", args=[agent]),
        notice=notice,
        may_change=user.has_perm(rights.FLIP),
        may_add=user.has_perm(_ADD),
        changing=roles.allowed_users(agent),
        may_flip=rights.may_flip(user, agent),
        may_name=user.has_perms(rights.NAME_OPERATORS),
        may_issue=user.has_perm(rights.permission("add", "api_token")) and rights.may_read(user, "api_token"),
        may_administer=user.is_staff,
        form=form,
        seen=json.dumps(seen, ensure_ascii=False),
        copy=copy or view_model.Copy(),
    )
    return render(request, "settings/settings.html", {"page": filled}, status=status)
