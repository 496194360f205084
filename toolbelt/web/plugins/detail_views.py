"""The page of one plugin: what is known of it, the review of its tools, and how its server is reached."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbelt.control.people import rights
from toolbelt.control.servers import plugin_overview
from toolbelt.core import effects, errors
from toolbelt.runtime import plugins as running
from toolbelt.web.kit import http, notices, responses, texts, words
from toolbelt.web.plugins import detail, forms, reviews, views

APPROVE = rights.permission("change", "tool")
# What says a tool's name, and would say the new one.
_CARRY = [rights.permission("change", kind) for kind in ("agent", "toolkit", "loadout", "sub_app")]

MAX_DOUBTS = 12
_OTHERWISE = "Another operator changed the connection: the form shows the new values."


@require_safe
def page(request: http.Request, plugin: str) -> HttpResponse:
    """Show the page; htmx gets the progress of a refresh, and finally its result."""
    return _shown(request, plugin, "plugins/_refreshed.html" if request.htmx else "plugins/plugin.html")


@require_POST
@permission_required(APPROVE, raise_exception=True)
def review(request: http.Request, plugin: str) -> HttpResponse:
    """Approve tools as they were shown, or keep them off; asked again where they give orders to models."""
    form = forms.Review(request.POST)
    _declare(request, plugin)
    given, shown = form.checked(), form.shown()
    if not shown:
        raise errors.Refused("Select the tools first.")
    _declare(request, plugin, ticked=set(shown))
    write = responses.write(request, given)
    carry = given["carry"] and request.user.has_perms(_CARRY)
    try:
        if given["decision"] == "off":
            keys: tuple[str, ...] = plugin_overview.reject(write, plugin, shown)
            return _decided(request, f"{_named(keys)} rejected: blocked for everyone.", keys=keys)
        if not given["confirm"] and (doubts := plugin_overview.warnings(plugin, shown)):
            return _ask(request, plugin, shown, doubts)
        done = plugin_overview.approve(write, plugin, shown, carry_over=carry)
    except errors.Stale as stale:
        return _moved(request, plugin, shown, stale)
    carried = f" {words.tools(len(done.carried))} kept the settings of the old name." if done.carried else ""
    problems = " ".join(str(problem) for problem in done.problems)
    detail = f"Applies from the next request.{carried} {problems}".strip()
    return _decided(request, f"{_named(done.keys)} approved.", detail=detail, keys=done.keys)


@require_POST
@permission_required(views.CHANGE, raise_exception=True)
def reconnect(request: http.Request, plugin: str) -> HttpResponse:
    """Return where a server is, in place of what the page showed."""

    form = forms.Connection(request.POST, plugin=plugin)

    def again(error: errors.ToolbeltError, status: int) -> HttpResponse:
        if isinstance(error, errors.Stale):
            form.add_error("url", _OTHERWISE)
        else:
            form.refuse(error, otherwise="url")
        return _shown(request, plugin, "plugins/plugin.html", status=status, form=form)

    responses.declare(request, reverse("web:plugin", args=[plugin]), form=again)
    given = form.checked()
    change = plugin_overview.reconnect(
        responses.write(request, given),
        plugin,
        url=given["url"],
        headers=given["headers"],
        was=given["was"],
        connections_by=form.connections_by(),
    )
    text = (
        f"Connection of {plugin} saved. The next request uses it."
        if not change.is_nothing
        else "No changes: the connection is already up to date."
    )
    return responses.respond(request, notices.Notice(text=text, undo=change.entry))


def _shown(
    request: http.Request,
    plugin: str,
    template: str,
    *,
    status: int = 200,
    notice: notices.Notice | None = None,
    **shown: Any,
) -> HttpResponse:
    user = request.user
    filters = forms.Filter(request.GET).values()
    whole = request.method in ("GET", "HEAD") and not request.htmx
    page = detail.page(
        plugin_overview.find(plugin, most=reviews.MAX_AT_ONCE, first=shown.get("moved", "")),
        running.live(),
        path=reverse("web:plugin", args=[plugin]),
        since=filters["asked"],
        every_tool=bool(filters["all"]),
        notice=responses.pop_notice(request)[0] if whole else notice,
        may_change=user.has_perm(views.CHANGE),
        may_approve=user.has_perm(APPROVE),
        may_carry=user.has_perms(_CARRY),
        may_see=rights.may_read(user, "plugin"),
        origin=request.build_absolute_uri("/").removesuffix("/"),
        **shown,
    )
    return render(request, template, {"page": page, "plugin": page.plugin}, status=status)


def _declare(request: http.Request, plugin: str, ticked: Iterable[str] = ()) -> None:
    """Declare that a decision is answered with what is left to decide on; refused, with what was ticked."""

    def parts(notice: notices.Notice, change: effects.Effect | None, status: int) -> HttpResponse:
        kept = () if status == 200 else ticked
        return _shown(request, plugin, "plugins/_reviewed.html", status=status, notice=notice, ticked=kept)

    home = f"{reverse('web:plugin', args=[plugin])}#review"
    responses.declare(request, home, parts=parts, undone="Nothing was decided")


def _decided(request: http.Request, text: str, *, detail: str = "", keys: tuple[str, ...]) -> HttpResponse:
    undo = plugin_overview.last_change(keys[-1]) if keys else None
    notice = notices.Notice(text=text, detail=detail, undo=undo, whole=undo is not None)
    return responses.respond(request, notice)


def _moved(request: http.Request, plugin: str, shown: Iterable[str], stale: errors.Stale) -> HttpResponse:
    """Show a tool first that is another one by now; what else was ticked stays so."""
    gone = stale.now == "retired"
    became = "is no longer offered" if gone else "changed in the meantime: the new version is listed first"
    return _shown(
        request,
        plugin,
        "plugins/_reviewed.html" if request.htmx else "plugins/plugin.html",
        status=409,
        notice=notices.Notice(text=f"Nothing was decided: {stale.key} {became}.", tone="refused"),
        ticked=set(shown) - {stale.key},
        moved=stale.key,
    )


def _ask(
    request: http.Request, plugin: str, shown: dict[str, str], doubts: Sequence[tuple[str, str]]
) -> HttpResponse:
    """Ask whether tools shall be approved although their texts contain instructions to the model."""
    names = ("decision", "tool", "all", "carry")
    fields = [(name, value) for name in names for value in request.POST.getlist(name)]
    more = len(doubts) - MAX_DOUBTS
    reasons = [
        "Approving a tool sends its texts to every model that gets it. Check these first.",
        *[f"{key} {texts.visible(flag)}" for key, flag in doubts[:MAX_DOUBTS]],
        *([f"And {more} more."] if more > 0 else []),
    ]
    title = f"Approve {words.tools(len(shown))} of {plugin}?"
    return responses.ask(request, title, "Approve anyway", reasons, fields)


def _named(keys: tuple[str, ...]) -> str:
    if not keys:
        return "No tools were"
    return keys[0] if len(keys) == 1 else words.tools(len(keys))
