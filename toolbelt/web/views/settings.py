"""The settings of one agent: seen, changed, and taken over by another one."""

from __future__ import annotations

import dataclasses
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control import agents, queries, rights, roles
from toolbelt.core import errors
from toolbelt.web.forms import edits
from toolbelt.web.pages import model, questions
from toolbelt.web.pages import settings as pages
from toolbelt.web.presenters import answers, settings
from toolbelt.web.views import answering

_ADD = rights.to("add", "agent")


@require_safe
def page(request: HttpRequest, agent: str) -> HttpResponse:
    """Show the page."""
    return _shown(request, agent, notice=answering.kept(request)[0])


@require_POST
@permission_required(rights.FLIP, raise_exception=True)
def change(request: HttpRequest, agent: str) -> HttpResponse:
    """Change what differs from what the page showed; what else somebody changed since stays."""
    form = edits.Settings(request.POST)
    if not form.is_valid():
        return _shown(request, agent, status=422, typed=request.POST, problems=edits.wrong(form))
    wanted = form.wanted()
    home = reverse("web:settings", args=[agent])
    try:
        done = agents.edit(answering.actor(request), agent, **wanted)
    except errors.NotFound as error:
        raise Http404(str(error)) from error
    except errors.ConfirmationRequired as asked:
        question = questions.confirmation(
            asked,
            title=f"Save the settings of {agent}?",
            verb="Save",
            action=request.path,
            fields=[(name, value) for name in (*form.fields, "next") for value in request.POST.getlist(name)],
            back=home,
        )
        return answering.asked(request, question)
    except errors.Invalid as invalid:
        wrong = pages.problems(agent, invalid.problems)
        return _shown(request, agent, status=422, typed=request.POST, problems=wrong)
    except errors.Refused as refused:
        return _shown(request, agent, status=422, typed=request.POST, problems={"": str(refused)})
    except errors.Stale as stale:
        return _shown(request, agent, status=409, typed=request.POST, problems={"": str(stale)})
    if done.is_nothing:
        notice = answers.Notice(text=f"Nothing to change: the settings of {agent} are so already.")
    else:
        notice = answers.Notice(
            text=f"Settings of {agent} saved.", detail=model.in_short(done.effect), undo=done.entry
        )
    return answering.led_back(request, home, notice, None)


@require_POST
@permission_required(_ADD, raise_exception=True)
def duplicate(request: HttpRequest, agent: str) -> HttpResponse:
    """Make another agent that is configured as this one is."""
    form = edits.Copy(request.POST)
    if not form.is_valid():
        return _not_copied(request, agent, edits.wrong(form)["key"])
    key = form.cleaned_data["key"]
    try:
        done = agents.duplicate(answering.actor(request), agent, key)
    except errors.NotFound as error:
        raise Http404(str(error)) from error
    except errors.Invalid as invalid:
        return _not_copied(request, agent, " ".join(problem.message for problem in invalid.problems))
    except errors.Refused as refused:
        return _not_copied(request, agent, str(refused))
    made = queries.change(done.entry) if done.entry is not None else None
    may_undo = made is not None and rights.may_undo(request.user, made)
    notice = answers.Notice(text=f"{key} is configured as {agent} is.", undo=done.entry if may_undo else None)
    answering.keep(request, notice)
    response = redirect("web:settings", key)
    response.status_code = 303
    return response


@require_POST
@permission_required(rights.NAME_OPERATORS, raise_exception=True)
def name_operators(request: HttpRequest, agent: str) -> HttpResponse:
    """Let the users that are ticked, and no others, operate this agent though they may not flip every agent's."""
    form = edits.Operators(request.POST)
    home = reverse("web:settings", args=[agent])
    if not form.is_valid():
        return _refused(request, home, form.problems())
    said = form.cleaned_data
    try:
        done = roles.name_operators(
            answering.actor(request), agent, said["user"], was=said["was"], reason=said["reason"]
        )
    except errors.NotFound as error:
        if error.what == "agent":
            raise Http404(str(error)) from error
        return _refused(request, home, str(error))
    except errors.Stale as stale:
        return _refused(request, home, str(stale))
    names = ", ".join(done.after) or "nobody"
    text = f"{agent} has for operators of its own: {names}."
    return answering.led_back(request, home, answers.Notice(text=text, undo=done.entry), None)


@require_POST
@permission_required(rights.FLIP, raise_exception=True)
def archive(request: HttpRequest, agent: str) -> HttpResponse:
    """Put the agent away, once somebody has said that this is meant; or bring it back."""
    form = edits.Archiving(request.POST)
    home = reverse("web:settings", args=[agent])
    if not form.is_valid():
        return _refused(request, home, form.problems())
    said = form.cleaned_data
    archived = said["archived"] == "yes"
    try:
        done = agents.archive(
            answering.actor(request), agent, archived, reason=said["reason"], confirm=said["confirm"]
        )
    except errors.NotFound as error:
        raise Http404(str(error)) from error
    except errors.ConfirmationRequired as asked:
        question = questions.confirmation(
            asked,
            title=f"Archive {agent}?" if archived else f"Bring {agent} back?",
            verb="Archive" if archived else "Bring back",
            action=request.path,
            fields=[("archived", said["archived"]), ("reason", said["reason"]), ("next", home)],
            back=home,
        )
        # It is about all that the agent has, and not about what of it differs.
        return answering.asked(request, dataclasses.replace(question, effect=None))
    except errors.ToolbeltError as error:
        return _refused(request, home, str(error))
    word = "archived" if archived else "back"
    notice = answers.Notice(
        text=f"{agent} is {word}{' already' if done.is_nothing else ''}.",
        detail="" if archived else "It answers again, as it did before.",
        undo=done.entry,
    )
    return answering.led_back(request, home, notice, None)


def _refused(request: HttpRequest, home: str, why: str) -> HttpResponse:
    return answering.led_back(request, home, answers.Notice(text=f"Not changed. {why}", tone="refused"), None)


def _not_copied(request: HttpRequest, agent: str, problem: str) -> HttpResponse:
    copy = settings.Copy(key=request.POST.get("key", "")[:200], problem=problem)
    return _shown(request, agent, status=422, copy=copy)


def _shown(
    request: HttpRequest, agent: str, *, status: int = 200, notice: answers.Notice | None = None, **said: Any
) -> HttpResponse:
    try:
        found = queries.settings(agent)
    except errors.NotFound as error:
        raise Http404(str(error)) from error
    user = request.user
    surface = request.build_absolute_uri(reverse("api:get_surface", args=[agent]))
    filled = pages.page(
        found,
        address=surface.removesuffix("surface"),
        here=reverse("web:settings", args=[agent]),
        notice=notice,
        may_change=user.has_perm(rights.FLIP),
        may_add=user.has_perm(_ADD),
        changing=roles.changing(agent),
        may_flip=rights.may_flip(user, agent),
        may_name=user.has_perms(rights.NAME_OPERATORS),
        may_issue=user.has_perm(rights.to("add", "api_token")) and rights.may_read(user, "api_token"),
        may_administer=user.is_staff,
        **said,
    )
    return render(request, "agents/settings.html", {"page": filled}, status=status)
