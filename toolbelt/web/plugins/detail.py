"""The page of one plugin: what is known of it, its tools, its switches, and how its server is reached."""

from __future__ import annotations

import functools
import shlex
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbelt import conf
from toolbelt.control import writing
from toolbelt.control.catalog import blocking
from toolbelt.control.people import rights
from toolbelt.control.servers import plugin_overview
from toolbelt.core import belts, connections, effects, errors
from toolbelt.runtime import plugins as running
from toolbelt.runtime import secrets, upstream_connections
from toolbelt.web.access import blocking as block_button
from toolbelt.web.kit import http, notices, pieces, responses, texts, titles, words
from toolbelt.web.plugins import client_plugins, forms, listing
from toolbelt.web.review import changes

# Above this number of tools, the others are shown on request.
MAX_TOOLS = 100
MAX_GONE = 40
MAX_PROBLEM_LENGTH = 400
_SHARED_BY = {
    "": "Shared by everyone, or one for each session if the server uses session ids",
    **forms.SHARED,
}
_OTHERWISE = "Another operator changed the connection: the form shows the new values."
# What a plugin is after one of its switches was turned off, and on.
_DONE = {
    "active": ("off for everyone", "on"),
    "blocked": ("unblocked", "blocked for everyone"),
    "trusted": ("no longer trusted", "trusted"),
}


@require_safe
def page(request: http.Request, plugin: str) -> HttpResponse:
    """Show the page; htmx gets the progress of a refresh, and finally its result."""
    return _shown(request, plugin, "plugins/_refreshed.html" if request.htmx else "plugins/plugin.html")


@require_POST
@permission_required(listing.CHANGE, raise_exception=True)
def reconnect(request: http.Request, plugin: str) -> HttpResponse:
    """Change the connection of a server."""
    form = forms.Connection(request.POST, plugin=plugin)

    def show_again(error: errors.ToolbeltError, status: int) -> HttpResponse:
        if isinstance(error, errors.Stale):
            form.add_error("url", _OTHERWISE)
        else:
            form.refuse(error, default_field="url")
        return _shown(request, plugin, "plugins/plugin.html", status=status, form=form)

    responses.declare(request, reverse("web:plugin", args=[plugin]), form=show_again)
    given = form.checked()
    change = plugin_overview.reconnect(
        responses.write(request, given),
        plugin,
        url=given["url"],
        headers=given["headers"],
        was=given["was"],
        connections_by=form.connections_by(),
    )
    done = f"Connection of {titles.label('plugin', plugin)} saved. The next request uses it"
    return responses.respond_changed(request, change, done, unchanged="the connection is already up to date")


@require_POST
@permission_required(listing.CHANGE, raise_exception=True)
def switch(request: http.Request, plugin: str) -> HttpResponse:
    """Switch a plugin on or off, block it for everyone, or trust it."""
    responses.declare(
        request, reverse("web:plugin", args=[plugin]), parts=functools.partial(_parts, request, plugin)
    )
    given = forms.Switch(request.POST).checked()
    control, on, was = given["control"], given["on"], given["was"]
    write, detail = responses.write(request, given), ""
    change: writing.Change
    if control == "blocked":
        change = blocked = blocking.set_blocked(write, "plugin", plugin, on, was=was)
        detail = block_button.describe_reach(blocked, on)
    else:
        change = plugin_overview.set_control(write, plugin, control, on, was=was)
    done = f"{titles.label('plugin', plugin)} is {_DONE[control][on]}"
    return responses.respond_changed(request, change, done, detail=detail)


def _parts(
    request: http.Request, plugin: str, notice: notices.Notice, change: effects.Effect | None, status: int
) -> HttpResponse:
    """Return the parts of a page that follow a switch of a plugin."""
    overview = plugin_overview.find(plugin, maximum=0)
    if notice.undo is not None and not notice.detail:
        reach = listing.reach(overview.provider)
        notice = notices.Notice(text=notice.text, detail=f"{reach[:1].upper()}{reach[1:]}.", undo=notice.undo)
    page = _page(request, overview, notice=notice)
    shown = {"page": page, "plugin": page.plugin, "whole": request.POST.get("place") == "one"}
    return render(request, "plugins/_switched.html", shown, status=status)


def _shown(
    request: http.Request,
    plugin: str,
    template: str,
    *,
    status: int = 200,
    form: forms.Connection | None = None,
) -> HttpResponse:
    """Return the page; ``form`` is a rejected form."""
    whole = request.method in ("GET", "HEAD") and not request.htmx
    may_see, may_change = rights.may_read(request.user, "plugin"), request.user.has_perm(listing.CHANGE)
    detail = plugin_overview.find(plugin, maximum=MAX_GONE)
    stderr = detail.provider.listing.stderr if detail.provider.listing and may_see else ""
    page = _page(
        request,
        detail,
        reached=_reached(detail.provider, form, may_change) if may_see else None,
        declaring=client_plugins.declaring(detail.provider.plugin, request.build_absolute_uri("/")),
        stderr=texts.text(secrets.mask(stderr)) if stderr else None,
        notice=responses.pop_notice(request)[0] if whole else None,
    )
    return render(request, template, {"page": page, "plugin": page.plugin}, status=status)


def _page(request: http.Request, detail: plugin_overview.Detail, **shown: Any) -> pieces.View:
    provider = detail.provider
    plugin, listed = provider.plugin, provider.listing
    given, path = forms.Filter(request.GET).values(), reverse("web:plugin", args=[plugin.name])
    by_name = {known.name: known for known in running.live()}
    known = by_name.get(plugin.name)
    alive = {name for name, known in by_name.items() if known.state != "failed"}
    offered = [tool for tool in provider.tools if not tool.retired]
    maximum = len(offered) if given["all"] else MAX_TOOLS
    problems = [*(listed.problems if listed else ()), *(known.problems if known else ())]
    return pieces.View(
        plugin=listing.line(provider, running=alive, since=given["asked"]),
        size=f"{words.approx(sum(tool.tokens for tool in offered))} tokens" if offered else "",
        gone=tuple(map(changes.change, detail.gone)),
        all_gone=detail.all_gone,
        tools=[
            (tool, detail.closed.get(tool.key), detail.users.get(tool.key, ())) for tool in offered[:maximum]
        ],
        more_tools=max(0, len(offered) - maximum),
        provider=provider,
        source=known.source if known else "",
        problems=tuple(
            texts.visible(words.cut(_message(problem), MAX_PROBLEM_LENGTH)) for problem in problems
        ),
        refresh=listing.refresh_progress([provider], given["asked"], path, plugin.name),
        **shown,
    )


def _replace_command(connection: connections.Connection, name: str) -> str:
    """Return the line that stores a connection by command again, with the options that differ from the usual ones."""
    usual = connections.Connection()
    options = [f"--env={key}={value}" for key, value in connection.env.items()]
    for option in ("cwd", "timeout", "sharing", "idle", "max_connections"):
        value = getattr(connection, option)
        if value != getattr(usual, option):
            options.append(f"--{option.replace('_', '-')}={value}")
    arguments = shlex.join(
        ["mcp", "add", name, "--replace", *options, "--command", connection.command, *connection.args]
    )
    return f"{conf.COMMAND} {arguments}"


def _reached(
    provider: plugin_overview.Provider, form: forms.Connection | None, may_change: bool
) -> pieces.View | None:
    connection = provider.connection
    if connection is None:
        return None
    if may_change and form is None:
        stored = belts.entry("plugin", provider.plugin).get("upstream", {})
        headers = "\n".join(f"{name}: {value}" for name, value in connection.headers.items())
        form = forms.Connection(initial={**stored, "headers": headers, "was": stored})
    sharing = upstream_connections.sharing(provider.plugin)
    return pieces.View(
        connection=connection,
        arguments=shlex.join(connection.args),
        shared=_SHARED_BY[sharing],
        closes=sharing != "shared",
        open=upstream_connections.open_connections(provider.plugin.name),
        form=form if connection.url else None,
        command=_replace_command(connection, provider.plugin.name) if connection.command else "",
    )


def _message(problem: errors.Problem) -> str:
    tool = problem.path.removeprefix("tools.")
    return problem.message if not tool or tool in problem.message else f"{tool}: {problem.message}"
