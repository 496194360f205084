"""The page of one plugin: what is known of it, the review of its tools, and how its server is reached."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control import providers, rights
from toolbelt.core import errors
from toolbelt.runtime import plugins as running
from toolbelt.web import plugin_forms, words
from toolbelt.web.pages import plugin as pages
from toolbelt.web.pages import reviews, texts
from toolbelt.web.presenters import answers, pieces
from toolbelt.web.presenters import plugins as presenters
from toolbelt.web.views import answering
from toolbelt.web.views.plugins import CHANGE

APPROVE = rights.to("change", "tool")
# What says a tool's name, and would say the new one.
_CARRY = [rights.to("change", kind) for kind in ("agent", "toolkit", "loadout", "sub_app")]

MOST_DOUBTS = 12


@require_safe
def page(request: HttpRequest, plugin: str) -> HttpResponse:
    """Show the page; to htmx how far a refresh has come, and once it is over what came of it."""
    if not answering.is_in_place(request):
        return _shown(request, plugin, "plugins/plugin.html", notice=answering.kept(request)[0])
    return _shown(request, plugin, "plugins/_refreshed.html")


@require_POST
@permission_required(APPROVE, raise_exception=True)
def review(request: HttpRequest, plugin: str) -> HttpResponse:
    """Approve tools as they were shown, or keep them off; asked again where they give orders to models."""
    form = plugin_forms.Review(request.POST)
    if not form.is_valid():
        return _decided(request, plugin, f"Nothing was decided: {form.problems()}", status=422)
    shown, decision = form.shown(), form.cleaned_data["decision"]
    if not shown:
        return _decided(request, plugin, "Nothing was decided: tick the tools that you mean.", status=422)
    actor, reason = answering.actor(request), form.cleaned_data["reason"]
    carry = form.cleaned_data["carry"] and request.user.has_perms(_CARRY)
    try:
        if decision == "off":
            keys: tuple[str, ...] = providers.keep_off(actor, plugin, shown, reason=reason)
            return _decided(request, plugin, f"{_named(keys)} kept off: blocked for everyone.", keys=keys)
        if not form.cleaned_data["confirm"] and (doubts := providers.doubts(plugin, shown)):
            return answering.asked(request, _question(request, plugin, shown, doubts))
        done = providers.approve(actor, plugin, shown, carry_over=carry, reason=reason)
    except errors.NotFound as error:
        if error.what == "plugin":
            raise Http404(str(error)) from error
        return _decided(request, plugin, f"Nothing was decided. {error}", status=409)
    except errors.Stale as stale:
        gone = stale.now == "retired"
        became = "is no longer offered" if gone else "says something else by now: it stands first, as it is"
        text = f"Nothing was decided: {stale.key} {became}."
        return _decided(request, plugin, text, status=409, ticked=set(shown) - {stale.key}, moved=stale.key)
    except (errors.Invalid, errors.Refused) as refused:
        return _decided(request, plugin, f"Nothing was decided. {refused}", status=422, ticked=set(shown))
    carried = f" {words.tools(len(done.carried))} took over what the old name had." if done.carried else ""
    problems = " ".join(str(problem) for problem in done.problems)
    detail = f"It counts from the next question on.{carried} {problems}".strip()
    return _decided(request, plugin, f"{_named(done.keys)} approved.", detail=detail, keys=done.keys)


@require_POST
@permission_required(CHANGE, raise_exception=True)
def reconnect(request: HttpRequest, plugin: str) -> HttpResponse:
    """Say where a server is, in place of what the page showed."""
    form = plugin_forms.Reached(request.POST)
    if not form.is_valid():
        wrong = [errors.Problem(path=name, message=said) for name, said in form.wrong().items()]
        return _not_reconnected(request, plugin, wrong, 422)
    given = form.cleaned_data
    try:
        change = providers.reconnect(
            answering.actor(request),
            plugin,
            url=given["url"],
            headers=given["headers"],
            was=given["was"],
            reason=given["reason"],
        )
    except errors.NotFound as error:
        raise Http404(str(error)) from error
    except errors.Invalid as invalid:
        return _not_reconnected(request, plugin, invalid.problems, 422)
    except errors.Refused as refused:
        return _not_reconnected(request, plugin, [errors.Problem(path="url", message=str(refused))], 422)
    except errors.Stale:
        message = "Somebody else said it otherwise since: what they said stands above."
        return _not_reconnected(request, plugin, [errors.Problem(path="url", message=message)], 409)
    text = (
        f"{plugin} is asked there from now on."
        if not change.is_nothing
        else "Nothing to change: it is so already."
    )
    notice = answers.Notice(text=text, undo=change.entry)
    return answering.led_back(request, reverse("web:plugin", args=[plugin]), notice, None)


def _shown(
    request: HttpRequest,
    plugin: str,
    template: str,
    *,
    status: int = 200,
    notice: answers.Notice | None = None,
    **said: Any,
) -> HttpResponse:
    user = request.user
    home = reverse("web:plugin", args=[plugin])
    try:
        found = providers.find(plugin, most=reviews.MOST_AT_ONCE, first=said.get("moved", ""))
    except errors.NotFound as error:
        raise Http404(str(error)) from error
    asked = plugin_forms.Filter(request.GET).said()
    page = pages.page(
        found,
        running.live(),
        path=home,
        here=home,
        since=asked["asked"],
        every_tool=bool(asked["all"]),
        notice=notice,
        may_change=user.has_perm(CHANGE),
        may_approve=user.has_perm(APPROVE),
        may_carry=user.has_perms(_CARRY),
        may_see=rights.may_read(user, "plugin"),
        **said,
    )
    return render(request, template, {"page": page, "plugin": page.plugin}, status=status)


def _decided(
    request: HttpRequest,
    plugin: str,
    text: str,
    *,
    detail: str = "",
    keys: tuple[str, ...] = (),
    status: int = 200,
    ticked: set[str] | None = None,
    moved: str = "",
) -> HttpResponse:
    """Answer a decision: in place with what there is to look at now, else by leading back; refused as it was sent."""
    undo = providers.decision(keys[-1]) if keys else None
    tone = "done" if status == 200 else "refused"
    notice = answers.Notice(text=text, tone=tone, detail=detail, undo=undo, whole=undo is not None)
    if answering.is_in_place(request):
        return _shown(
            request,
            plugin,
            "plugins/_reviewed.html",
            status=status,
            notice=notice,
            ticked=ticked or (),
            moved=moved,
        )
    if status == 409 and moved:
        return _shown(
            request,
            plugin,
            "plugins/plugin.html",
            status=409,
            notice=notice,
            ticked=ticked or (),
            moved=moved,
        )
    return answering.led_back(request, f"{reverse('web:plugin', args=[plugin])}#review", notice, None)


def _question(
    request: HttpRequest, plugin: str, shown: dict[str, str], doubts: Sequence[tuple[str, str]]
) -> answers.Confirmation:
    names = ("decision", "tool", "all", "carry")
    fields = [(name, value) for name in names for value in request.POST.getlist(name)]
    more = len(doubts) - MOST_DOUBTS
    return answers.Confirmation(
        title=f"Approve {words.tools(len(shown))} of {plugin}?",
        reasons=(
            "An approval shows the texts of a tool to every model that gets it. These deserve a second look first.",
            *[f"{key} {texts.visible(flag)}" for key, flag in doubts[:MOST_DOUBTS]],
            *([f"And {more} more."] if more > 0 else []),
        ),
        effect=None,
        differences=(),
        three_ways=False,
        action=request.path,
        fields=tuple(pieces.Field(name=name, value=value) for name, value in (*fields, ("confirm", "yes"))),
        confirm_word="Approve all the same",
        dangerous=True,
        back=f"{reverse('web:plugin', args=[plugin])}#review",
    )


def _named(keys: tuple[str, ...]) -> str:
    if not keys:
        return "Nothing was left to be"
    return keys[0] if len(keys) == 1 else words.tools(len(keys))


def _not_reconnected(request: HttpRequest, plugin: str, problems: Any, status: int) -> HttpResponse:
    form: presenters.ServerForm = pages.form({**request.POST.dict(), "name": plugin}, problems)
    return _shown(request, plugin, "plugins/plugin.html", status=status, form=form)
