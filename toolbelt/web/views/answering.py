"""How is a change answered? In place to htmx, by leading back to a browser without it.

A notice that has to survive the way back is kept in the session until the next page shows it.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast
from urllib.parse import quote

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from toolbelt.control import actors, holdings, queries, rights
from toolbelt.core import effects, errors
from toolbelt.web import live
from toolbelt.web.pages import access, toolkits
from toolbelt.web.presenters import answers

_KEPT = "toolbelt.notice"
_View = TypeVar("_View", bound=Callable[..., HttpResponse])


def actor(request: HttpRequest) -> actors.Actor:
    """Say who does this."""
    return actors.Actor(name=request.user.get_username(), via="screen")


def is_in_place(request: HttpRequest) -> bool:
    """Say whether htmx asks."""
    return request.headers.get("HX-Request") == "true"


def flipping(view: _View) -> _View:
    """Let in who may flip the switches of the agent that the address names; others get a 403, before all else."""

    @functools.wraps(view)
    def guarded(request: HttpRequest, agent: str, *args: Any, **said: Any) -> HttpResponse:
        if not rights.may_flip(request.user, agent):
            raise PermissionDenied
        return view(request, agent, *args, **said)

    return cast("_View", guarded)


def back(request: HttpRequest, otherwise: str) -> str:
    """Give where the form says to come back to, if that is a place of ours."""
    wanted = request.POST.get("next", "")
    ours = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if ours else otherwise


def in_place(
    request: HttpRequest,
    agent: str,
    notice: answers.Notice,
    change: effects.Effect | None,
    *,
    status: int = 200,
    question: answers.Confirmation | None = None,
) -> HttpResponse:
    """Answer htmx with the parts of the page that the change leaves behind, and a question if there is one.

    That is the Access page, or one that shows the agent's switches as ``cells``: it names their toolkits.
    """
    cells = request.POST.get("cells", "").split()
    if cells:
        return _in_cells(request, agent, cells, notice, status=status, question=question)
    message = request.POST.get("message", "")[:4000]
    home = reverse("web:agent_access", args=[agent])
    try:
        found = queries.access(agent, message)
    except errors.NotFound:
        # Gone since the page was opened, or by this very change.
        keep(request, notice)
        return HttpResponse(status=204, headers={"HX-Redirect": reverse("web:agents")})
    page = access.answer(
        found,
        tools=frozenset(request.POST.get("tools", "").split()),
        shown=frozenset(request.POST.get("sections", "").split()),
        message=message,
        here=back(request, home).partition("#")[0],
        notice=notice,
        change=change,
        may_undo=found.last is not None and rights.may_undo(request.user, found.last),
    )
    response = render(request, "agents/_answer.html", {"page": page, "confirmation": question}, status=status)
    return _as_of(response, agent, page.revision)


def _in_cells(
    request: HttpRequest,
    agent: str,
    cells: list[str],
    notice: answers.Notice,
    *,
    status: int,
    question: answers.Confirmation | None,
) -> HttpResponse:
    # Before what is shown: it is never older than it says.
    request.counts = counts = queries.count()  # type: ignore[attr-defined]
    page = toolkits.answer(
        holdings.every(), agent, cells, here=back(request, reverse("web:toolkits")), notice=notice
    )
    shown = {"page": page, "confirmation": question}
    response = render(request, "toolkits/_answer.html", shown, status=status)
    # What else on the page follows the agent asks anew.
    response.headers["HX-Trigger"] = "flipped"
    return _as_of(response, agent, counts.revision)


def _as_of(response: HttpResponse, agent: str, revision: int) -> HttpResponse:
    """Say how new these parts of the page are: answers may overtake each other on their way (order.js)."""
    # Where nobody is called so, the name is whatever stood in the address.
    response.headers["X-Toolbelt-As-Of"] = f"{quote(agent)} {revision}"
    return response


def led_back(
    request: HttpRequest, otherwise: str, notice: answers.Notice, change: effects.Effect | None
) -> HttpResponse:
    """Lead a browser back to where it came from; the next page shows the notice."""
    keep(request, notice, change)
    response = redirect(back(request, otherwise))
    response.status_code = 303
    return response


def anew(request: HttpRequest, notice: answers.Notice, change: effects.Effect | None) -> HttpResponse:
    """Let htmx load the page anew that it asked from; it shows the notice."""
    keep(request, notice, change)
    return HttpResponse(status=204, headers={"HX-Refresh": "true"})


def asked(request: HttpRequest, question: answers.Confirmation) -> HttpResponse:
    """Put the question before anything is changed: as a dialog to htmx, as a page of its own to a browser.

    A question is no error: the browser would log it as one.
    """
    if is_in_place(request):
        return render(request, "agents/_answer.html", {"confirmation": question})
    shown = {"page": answers.ConfirmPage(confirmation=question)}
    return render(request, "agents/confirm.html", shown)


def keep(request: HttpRequest, notice: answers.Notice, change: effects.Effect | None = None) -> None:
    """Keep a notice, and what the change did, for the next page."""
    request.session[_KEPT] = {
        "notice": dataclasses.asdict(notice),
        "effect": dataclasses.asdict(change) if change is not None else None,
    }


def kept(request: HttpRequest) -> tuple[answers.Notice | None, effects.Effect | None]:
    """Take the notice that a change left for this page, and what the change did."""
    if live.is_again(request):
        return None, None
    found: dict[str, Any] | None = request.session.pop(_KEPT, None)
    if found is None:
        return None, None
    effect = found["effect"]
    if effect is None:
        return answers.Notice(**found["notice"]), None
    lists = {name: tuple(effect[name]) for name in ("added", "removed", "breaks")}
    policy = tuple((toolkit, before, after) for toolkit, before, after in effect["policy"])
    return answers.Notice(**found["notice"]), effects.Effect(**{**effect, **lists, "policy": policy})
