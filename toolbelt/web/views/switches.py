"""Flipping a switch, overriding a tool, resetting the overrides of a section."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from toolbelt.control import switches, tools_config, writing
from toolbelt.core import agents, errors, grants
from toolbelt.web import words
from toolbelt.web.forms import flips
from toolbelt.web.pages import model, questions
from toolbelt.web.presenters import answers
from toolbelt.web.views import answering

_WRITES = {"switch": switches.flip, "override": switches.override}
# What of a first try goes with the question that is asked before the second.
_KEPT = ("on", "was", "given", "at", "next")


@require_POST
@answering.flipping
def switch(request: HttpRequest, agent: str, toolkit: str) -> HttpResponse:
    """Set a toolkit's switch, or clear it."""
    return _flipped(request, "switch", agent, toolkit)


@require_POST
@answering.flipping
def override(request: HttpRequest, agent: str, tool: str) -> HttpResponse:
    """Set a tool's override, or clear it."""
    return _flipped(request, "override", agent, tool)


@require_POST
@answering.flipping
def reset(request: HttpRequest, agent: str) -> HttpResponse:
    """Clear several overrides, as the page showed them: those of a section."""
    form = flips.Reset(request.POST)
    if not form.is_valid():
        return _refused(request, agent, f"Not changed: {form.problems()}", 422)
    wanted = form.wanted()

    def act() -> writing.Change:
        return tools_config.change(answering.actor(request), agent, **wanted)

    count = len(wanted["wanted"])
    what = f"{count} override{'' if count == 1 else 's'} of {agent}"
    return _answered(
        request, agent, act, done=f"{what} reset", title=f"Reset {what}?", verb="Reset", whole=True
    )


def _flipped(request: HttpRequest, family: str, agent: str, key: str) -> HttpResponse:
    form = flips.Flip(request.POST)
    if not form.is_valid():
        return _refused(request, agent, f"Not changed: {form.problems()}", 422)
    wanted = form.wanted()

    def act() -> writing.Change:
        return _WRITES[family](answering.actor(request), agent, key, **wanted)

    return _answered(
        request,
        agent,
        act,
        done=words.done(family, key, _said(wanted), agent),
        title=words.asking(family, key, _said(wanted), agent),
        verb=words.wanted(family, wanted["on"]),
    )


def _said(wanted: Mapping[str, Any]) -> grants.Said:
    """Say what is wanted, with its end."""
    ends = wanted["ends"]
    return grants.with_end(wanted["on"], agents.End(at=ends) if ends is not None else None)


def _answered(
    request: HttpRequest,
    agent: str,
    act: Callable[[], writing.Change],
    *,
    done: str,
    title: str,
    verb: str,
    whole: bool = False,
) -> HttpResponse:
    home = reverse("web:agent_access", args=[agent])
    try:
        change = act()
    except errors.NotFound as error:
        raise Http404(str(error)) from error
    except errors.ConfirmationRequired as asked:
        question = questions.confirmation(
            asked,
            title=title,
            verb=verb,
            action=request.path,
            fields=[(name, value) for name in _KEPT for value in request.POST.getlist(name)],
            back=answering.back(request, home),
        )
        return answering.asked(request, question)
    except errors.Stale as stale:
        return _refused(request, agent, str(stale), 409)
    except (errors.Invalid, errors.Refused) as refused:
        return _refused(request, agent, str(refused), 422)
    if change.is_nothing:
        notice = answers.Notice(text=f"Nothing to change: {done} already.")
    else:
        notice = answers.Notice(
            text=f"{done}.", detail=model.in_short(change.effect), undo=change.entry, whole=whole
        )
    if answering.is_in_place(request):
        return answering.in_place(request, agent, notice, change.effect)
    return answering.led_back(request, home, notice, change.effect)


def _refused(request: HttpRequest, agent: str, text: str, status: int) -> HttpResponse:
    notice = answers.Notice(text=text, tone="refused")
    if answering.is_in_place(request):
        return answering.in_place(request, agent, notice, None, status=status)
    return answering.led_back(request, reverse("web:agent_access", args=[agent]), notice, None)
