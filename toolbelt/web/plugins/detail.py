"""The page of a plugin: its state, tools, switches and connection."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Iterable

from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from toolbelt import conf
from toolbelt.control import writing
from toolbelt.control.access import access_index
from toolbelt.control.catalog import blocking
from toolbelt.control.people import rights
from toolbelt.control.servers import instructions, plugin_overview
from toolbelt.core import belts, catalog, connections, effects, errors
from toolbelt.core.imported import rejections
from toolbelt.runtime import plugins as running
from toolbelt.runtime import secrets
from toolbelt.runtime.upstream import process_connections
from toolbelt.web.access import blocking as block_button
from toolbelt.web.kit import explained, http, notices, pieces, responses, texts, titles, words
from toolbelt.web.plugins import client_plugins, forms, listing, sign_in
from toolbelt.web.review import changes
from toolbelt.web.review import instructions as instructions_view

# The most tools that are shown at first; the others are shown on request.
MAX_TOOLS = 100
MAX_REMOVED = 40
MAX_REJECTIONS = 40
MAX_PROBLEM_LENGTH = 400
_SHARED_BY = {
    "": "Shared by everyone, or one for each session if the server uses session ids",
    **forms.SHARING_LABELS,
}
_CHANGED_MEANWHILE = {
    "you": "You changed the connection in another tab or program: the form shows the new values.",
    "operator": "Another operator changed the connection: the form shows the new values.",
}
# The state of a plugin after one of its switches was turned off or on.
_RESULTS = {
    "active": ("off for everyone", "on"),
    "blocked": ("unblocked", "blocked for everyone"),
    "trusted": ("no longer trusted", "trusted"),
}
_KEPT = ("Descriptions of {0} follow the server again", "Approved descriptions of {0} are kept")


@require_safe
def page(request: http.Request, plugin: str) -> HttpResponse:
    """Show the page; htmx gets the progress of a refresh, and then its result."""
    return _render(request, plugin, "plugins/_refreshed.html" if request.htmx else "plugins/plugin.html")


@require_POST
@permission_required(listing.CHANGE, raise_exception=True)
def reconnect(request: http.Request, plugin: str) -> HttpResponse:
    """Change the connection of a server."""
    form = forms.Connection(request.POST, plugin=plugin)

    def show_again(error: errors.ToolbeltError, status: int) -> HttpResponse:
        if isinstance(error, errors.Stale):
            form.add_error("url", _CHANGED_MEANWHILE.get(error.by, _CHANGED_MEANWHILE["operator"]))
        else:
            form.refuse(error, default_field="url")
        return _render(request, plugin, "plugins/plugin.html", status=status, form=form)

    responses.declare(request, reverse("web:plugin", args=[plugin]), form=show_again)
    data = form.checked()
    change = plugin_overview.reconnect(
        responses.write(request, data),
        plugin,
        url=data["url"],
        headers=data["headers"],
        was=data["was"],
        connections_by=form.connections_by(),
    )
    text = f"Connection of {titles.label('plugin', plugin)} saved. The next request uses it"
    return responses.respond_changed(request, change, text, unchanged="the connection is already up to date")


@require_POST
@permission_required(listing.CHANGE, raise_exception=True)
def switch(request: http.Request, plugin: str) -> HttpResponse:
    """Switch a plugin on or off, block it for everyone, trust it, or keep the descriptions of its tools."""
    responses.declare(
        request, reverse("web:plugin", args=[plugin]), parts=functools.partial(_parts, request, plugin)
    )
    data = forms.Switch(request.POST).checked()
    control, on, was = data["control"], data["on"], data["was"]
    write, detail = responses.write(request, data), ""
    change: writing.Change
    ends = None
    if control == "blocked":
        ends = block_button.end_of(data) if on else None
        change = blocked = blocking.set_blocked(write, "plugin", plugin, on, ends=ends, was=was)
        detail = block_button.describe_reach(blocked, on)
    else:
        change = plugin_overview.set_control(write, plugin, control, on, was=was)
    label = titles.label("plugin", plugin)
    result = _KEPT[on].format(label) if control not in _RESULTS else f"{label} is {_RESULTS[control][on]}"
    if ends is not None:
        result = f"{label} is {words.blocked(ends)}"
    return responses.respond_changed(request, change, result, detail=detail)


def _parts(
    request: http.Request, plugin: str, notice: notices.Notice, change: effects.Effect | None, status: int
) -> HttpResponse:
    """Return the parts of a page that depend on the switches of a plugin."""
    overview = plugin_overview.load(plugin, maximum=0)
    if notice.undo is not None and not notice.detail:
        reach = listing.reach(overview.provider)
        notice = notices.Notice(text=notice.text, detail=f"{reach[:1].upper()}{reach[1:]}.", undo=notice.undo)
    page = _Page(request, overview)
    page.notice = notice
    context = {"page": page, "plugin": page.plugin, "whole": request.POST.get("place") == "one"}
    return render(request, "plugins/_switched.html", context, status=status)


def _render(
    request: http.Request,
    plugin: str,
    template: str,
    *,
    status: int = 200,
    form: forms.Connection | None = None,
) -> HttpResponse:
    """Return the page; ``form`` is a rejected form."""
    page = _Page(request, plugin_overview.load(plugin, maximum=MAX_REMOVED), form)
    if request.method in ("GET", "HEAD") and not request.htmx:
        page.notice = responses.pop_notice(request)[0]
    return render(request, template, {"page": page, "plugin": page.plugin}, status=status)


class _Page(pieces.Page):
    """One plugin, with a ``form`` that was rejected."""

    block_spans = block_button.SPANS

    def __init__(
        self, request: http.Request, detail: plugin_overview.Detail, form: forms.Connection | None = None
    ) -> None:
        self.provider = provider = detail.provider
        plugin, listed = provider.plugin, provider.listing
        criteria, path = forms.Filter(request.GET).values(), reverse("web:plugin", args=[plugin.name])
        by_name = {running_plugin.name: running_plugin for running_plugin in running.live()}
        running_plugin = by_name.get(plugin.name)
        names = {name for name, running_plugin in by_name.items() if running_plugin.state != "failed"}
        by = explained.plugins_blocked_by([plugin]).get(plugin.name, "")
        self.plugin = listing.Line(provider, running=names, since=criteria["asked"], blocked_by=by)
        offered = [tool for tool in provider.tools if not tool.retired]
        self.live = ""
        if not plugin.blocked and request.user.has_perm(listing.CHANGE):
            self.live = block_button.describe_live(access_index.load(), "plugin", plugin.name)
        self.size = f"{words.approx(sum(tool.tokens for tool in offered))} tokens" if offered else ""
        self.removed = tuple(map(changes.Change, detail.gone))
        self.all_removed = detail.all_gone
        maximum = len(offered) if criteria["all"] else MAX_TOOLS
        shown = [(tool, detail.closed.get(tool.key)) for tool in offered[:maximum]]
        explanations = explained.Explanations(closed for _, closed in shown)
        self.tools = [
            (tool, closed, explanations.of(closed), detail.users.get(tool.key, ())) for tool, closed in shown
        ]
        self.more_tools = max(0, len(offered) - maximum)
        self.rejections = _rejections(plugin, provider.tools)
        self.source = running_plugin.source if running_plugin else ""
        problems = [
            *(listed.problems if listed else ()),
            *(running_plugin.problems if running_plugin else ()),
        ]
        self.problems = tuple(
            texts.visible(words.cut(_message(problem), MAX_PROBLEM_LENGTH)) for problem in problems
        )
        asked = criteria["asked"]
        self.refresh = listing.Refresh([provider], asked, path, plugin.name) if asked else None
        origin = request.build_absolute_uri("/")
        self.declaring = client_plugins.Declaring(plugin, origin) if plugin.runner == "client" else None
        found = instructions.find(plugin.name) if plugin.upstream else None
        is_shown = found is not None and found.state != "none"
        self.instructions = instructions_view.View(found) if found is not None and is_shown else None
        may_see, connection = rights.may_read(request.user, "plugin"), provider.connection
        stderr = listed.stderr if listed and may_see else ""
        self.stderr = texts.text(secrets.mask(stderr)) if stderr else None
        self.sign_in = sign_in.Part(request.user, provider) if sign_in.is_shown(provider) else None
        self.connection_view = None
        if connection is not None and may_see:
            if form is None and request.user.has_perm(listing.CHANGE):
                stored = belts.entry("plugin", plugin).get("upstream", {})
                headers = "\n".join(f"{name}: {value}" for name, value in connection.headers.items())
                form = forms.Connection(initial={**stored, "headers": headers, "was": stored})
            self.connection_view = _Connection(plugin, connection, form if connection.url else None)


class _Connection(pieces.View):
    """The connection of a server, and the form or the command that changes it."""

    def __init__(
        self, plugin: catalog.Plugin, connection: connections.Connection, form: forms.Connection | None
    ) -> None:
        sharing = process_connections.sharing(plugin)
        self.connection = connection
        self.arguments = shlex.join(connection.args)
        self.shared = _SHARED_BY[sharing]
        self.revision = forms.REVISION_LABELS.get(connection.revision, "")
        self.closes = sharing != "shared"
        self.open = process_connections.open_connections(plugin.name)
        self.form = form
        self.command = _replace_command(connection, plugin.name) if connection.command else ""


def _replace_command(connection: connections.Connection, name: str) -> str:
    """Return the command that stores this connection again, with the options that differ from the defaults."""
    default = connections.Connection()
    options = [f"--env={key}={value}" for key, value in connection.env.items()]
    for option in ("cwd", "timeout", *connections.RARE_FIELDS):
        value = getattr(connection, option)
        if value != getattr(default, option):
            options.append(f"--{option.replace('_', '-')}={value}")
    arguments = shlex.join(
        ["mcp", "add", name, "--replace", *options, "--command", connection.command, *connection.args]
    )
    return f"{conf.COMMAND} {arguments}"


def _rejections(plugin: catalog.Plugin, tools: Iterable[catalog.Tool]) -> tuple[tuple[str, str], ...]:
    """Return what is rejected when the server first lists it, and which of these names it has not yet listed."""
    names = [catalog.name_at_server(tool, plugin.namespace) for tool in tools if tool.kind == "tool"]
    facts = (
        ("Rejected when first listed", "", plugin.reject_tools),
        ("Rejected when first listed", "all but ", plugin.reject_all_but),
        ("Not listed yet", "", rejections.not_listed(plugin, names)),
    )
    return tuple(
        (label, before + words.listing(patterns, MAX_REJECTIONS))
        for label, before, patterns in facts
        if patterns
    )


def _message(problem: errors.Problem) -> str:
    tool = problem.path.removeprefix("tools.")
    return problem.message if not tool or tool in problem.message else f"{tool}: {problem.message}"
