"""How is an emergency stop answered?"""

from __future__ import annotations

from collections.abc import Callable

from django.http import Http404, HttpRequest, HttpResponse

from toolbelt.control import stops
from toolbelt.core import errors
from toolbelt.web import words
from toolbelt.web.forms import flips
from toolbelt.web.presenters import answers
from toolbelt.web.views import answering


def stop(
    request: HttpRequest,
    kind: stops.Kind,
    name: str,
    home: str,
    in_place: Callable[[answers.Notice, int], HttpResponse],
) -> HttpResponse:
    """Stop it, or lift the stop: ``in_place`` answers htmx, ``home`` is where anybody else is led back to."""

    from_access = request.POST.get("stop", "")

    def told(notice: answers.Notice, status: int = 200) -> HttpResponse:
        if answering.is_in_place(request) and from_access:
            # The page of an agent, from whose menu it was stopped, shows what becomes of its rows.
            return answering.in_place(request, from_access, notice, None, status=status)
        if answering.is_in_place(request):
            return in_place(notice, status)
        return answering.led_back(request, home, notice, None)

    def refused(text: str, status: int) -> HttpResponse:
        return told(answers.Notice(text=text, tone="refused"), status)

    form = flips.Stop(request.POST)
    if not form.is_valid():
        return refused(f"Not changed: {form.problems()}", 422)
    wanted = form.wanted()
    try:
        change = stops.stop(answering.actor(request), kind, name, **wanted)
    except errors.NotFound as error:
        raise Http404(str(error)) from error
    except errors.Stale as stale:
        return refused(str(stale), 409)
    except (errors.Invalid, errors.Refused) as error:
        return refused(str(error), 422)
    done = f"{name} is {'stopped for everyone' if wanted['on'] else 'no longer stopped'}"
    if change.is_nothing:
        return told(answers.Notice(text=f"Nothing to change: {done} already."))
    return told(answers.Notice(text=f"{done}.", detail=whom(change, wanted["on"]), undo=change.entry))


def whom(change: stops.Stopped, on: bool) -> str:
    """Say whom it reaches: ``3 agents lose 5 tools``."""
    agents, tools = len(change.agents), sum(change.agents.values())
    if not agents:
        return "no agent had it" if on else "no agent has it now"
    many = "1 agent" if agents == 1 else f"{agents} agents"
    verb = ("loses" if agents == 1 else "lose") if on else ("has" if agents == 1 else "have")
    return f"{many} {verb} {words.tools(tools)}{'' if on else ' again'}"
