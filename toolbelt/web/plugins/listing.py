"""The list of plugins and upstream servers, and refreshing them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.http import require_POST, require_safe

from toolbelt import conf
from toolbelt.control.people import rights
from toolbelt.control.servers import approvals, plugin_overview, upstream_servers
from toolbelt.control.servers import plugins as configured
from toolbelt.core import errors
from toolbelt.runtime import plugins as runtime
from toolbelt.runtime.upstream import server_lists
from toolbelt.web.kit import explained, http, notices, paging, pieces, responses, texts, titles, words
from toolbelt.web.plugins import forms

CHANGE = rights.permission("change", "plugin")
# The time beyond the server's timeout after which a refresh counts as failed.
GRACE_TIME = timedelta(seconds=20)
MAX_ERROR_LENGTH = 600
MAX_DESCRIPTION_LENGTH = 200
_SHOW_CHOICES = {"": "All", "waiting": "To review", "failed": "Failed", "off": "Off or blocked"}


@require_safe
def page(request: http.Request) -> HttpResponse:
    """Show the filtered list; htmx gets only its rows, or the progress of a refresh."""
    part = "plugins/_refreshing.html" if request.htmx.target == "refresh-progress" else "plugins/_lines.html"
    return responses.show(request, _Page(request), "plugins/list.html", part)


class _Page(pieces.Page):
    """The list of plugins."""

    def __init__(self, request: http.Request) -> None:
        criteria, providers = forms.Filter(request.GET).values(), plugin_overview.load_all()
        # The plugins that run in this process, and those that are installed.
        loaded = runtime.loaded()
        live = loaded.registry.list_plugins()
        running = {plugin.name for plugin in live if plugin.state != "failed"}
        filtered = [provider for provider in providers if _matches(provider, criteria)]
        stored = {provider.plugin.name for provider in providers}
        offered, retired, waiting = (
            sum(getattr(provider, name) for provider in filtered)
            for name in ("offered", "retired", "to_review")
        )
        # Retired tools stay in the catalog, so the overview and the list of tools count them too.
        matches = f"{words.counted(len(filtered), 'plugin')}, {words.tools(offered + retired)}"
        matches += f" ({words.number(retired)} retired)" if retired else ""
        blocked_by = explained.plugins_blocked_by(provider.plugin for provider in filtered)
        self.plugins = [
            Line(
                provider,
                running=running,
                since=criteria["asked"] if _is_refreshed(provider, criteria["of"]) else None,
                blocked_by=blocked_by.get(provider.plugin.name, ""),
            )
            for provider in filtered
        ]
        self.installed = loaded.available
        self.unknown = [(plugin, _error(plugin.error)) for plugin in live if plugin.name not in stored]
        self.query = criteria["q"]
        self.show_choices = paging.show_choices(_SHOW_CHOICES, criteria["show"], providers, _matches)
        self.is_filtered = bool(criteria["q"] or criteria["show"])
        self.total = len(providers)
        self.file = conf.PLUGINS_FILE if rights.may_read(request.user, "plugin") else ""
        self.servers = sum(provider.connection is not None for provider in providers)
        self.matches = matches + (f", {words.number(waiting)} to review" if waiting else "")
        asked, of = criteria["asked"], criteria["of"]
        self.refresh = Refresh(providers, asked, reverse("web:plugins"), of) if asked else None
        self.views = forms.VIEWS.present(request, criteria)


@require_POST
@permission_required(CHANGE, raise_exception=True)
def refresh(request: http.Request) -> HttpResponse:
    """Refresh the tools of every upstream server that is on, in the background."""
    names = [server.plugin.name for server in upstream_servers.servers() if server.plugin.active]
    return responses.see_other(request, f"{reverse('web:plugins')}?{start_refresh(request, names)}")


@require_POST
@permission_required(CHANGE, raise_exception=True)
def refresh_one(request: http.Request, plugin: str) -> HttpResponse:
    """Refresh the tools of one server in the background, or re-enable a failed plugin in code."""
    home = reverse("web:plugin", args=[plugin])
    try:
        approvals.find(plugin, "upstream")
    except errors.NotFound:
        configured.enable(responses.write(request), plugin)
        responses.declare(request, home)
        text = f"{titles.label('plugin', plugin)} is enabled again. The next call retries it."
        return responses.respond(request, notices.Notice(text=text))
    query = start_refresh(request, [plugin])
    back_url = responses.back_url(request, home)
    if back_url.partition("?")[0] == reverse("web:plugins"):
        home, query = reverse("web:plugins"), f"{query}&{urlencode({'of': plugin})}"
    return responses.see_other(request, f"{home}?{query}")


def start_refresh(request: http.Request, names: Iterable[str]) -> str:
    """Start to refresh servers, and return the query that shows the progress. Raise errors.NotFound."""
    since = timezone.now()
    server_lists.refresh_soon(names, functools.partial(upstream_servers.record, responses.write(request)))
    return urlencode({"asked": stamp(since)})


class Line(pieces.View):
    """One row; ``since`` is the time of the refresh that the reader waits for, ``blocked_by`` who blocked it."""

    def __init__(
        self,
        provider: plugin_overview.Provider,
        *,
        running: Iterable[str] = (),
        since: datetime | None = None,
        blocked_by: str = "",
    ) -> None:
        plugin = provider.plugin
        listing = provider.listing
        self.id = f"plugin-{plugin.name}"
        self.name = plugin.name
        self.title = texts.visible(plugin.title or plugin.name)
        self.namespace = plugin.namespace
        self.description = texts.visible(words.cut(plugin.description, MAX_DESCRIPTION_LENGTH))
        self.kind = kind(provider)
        self.runs = provider.connection is not None or plugin.name in running
        self.state = state(provider)
        self.tools = provider.offered
        # Its entries besides tools.
        self.others = words.count_kinds(
            tool.kind for tool in provider.tools if tool.kind != "tool" and not tool.retired
        )
        self.retired = f"and {words.number(provider.retired)} retired" if provider.retired else ""
        self.reach = reach(provider)
        self.waiting = provider.to_review
        self.seen = listing.answered if listing is not None else None
        self.is_refreshing = is_refreshing(provider, since)
        self.can_refresh = provider.connection is not None or plugin.status == "failed"
        self.active = plugin.active
        self.blocked = plugin.blocked
        self.blocked_by = blocked_by
        self.trusted = plugin.trusted
        self.keeps_descriptions = plugin.keep_descriptions


def kind(provider: plugin_overview.Provider) -> str:
    """Return the kind of a plugin: ``code``, ``client``, ``command (stdio)`` or ``HTTP``."""
    if provider.connection is None:
        return "client" if provider.plugin.runner == "client" else "code"
    return "command (stdio)" if provider.connection.command else "HTTP"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The state of a plugin: its shape, word and meaning, and the error of a failed one."""

    shape: str
    word: str
    about: str = ""
    error: str = ""


def state(provider: plugin_overview.Provider) -> State:
    """Return the state of a plugin. Switches of operators take precedence over failures."""
    plugin = provider.plugin
    error = _error(provider.error) if plugin.status == "failed" else ""
    match provider.state:
        case "blocked":
            return State(shape="denied", word="Blocked", about="blocked for everyone", error=error)
        case "off":
            return State(shape="denied", word="Off", about="available to no agent", error=error)
        case "sign-in-needed":
            error = _error(provider.listing.error) if provider.listing is not None else ""
            return State(
                shape="unavailable",
                word="Unavailable: sign-in needed",
                about="switches and approvals stay as they are",
                error=error,
            )
        case "failed":
            about = "its tools are unavailable" if provider.offered else ""
            return State(shape="unavailable", word="Failed", about=about, error=error)
        case "not-running":
            absent = len(plugin.not_running)
            about = f"no running process can run {absent} of its tools: restart Toolbelt's servers"
            return State(shape="unavailable", word="Not running", about=about)
        case "not-responding":
            error = _error(provider.listing.error) if provider.listing is not None else ""
            return State(
                shape="unavailable", word="Not responding", about="the next call retries", error=error
            )
        case "not-asked" if not provider.tools:
            return State(shape="dormant", word="On", about="tools not listed yet")
        case "ready" if provider.connection and all(tool.retired for tool in provider.tools):
            return State(
                shape="active",
                word="On",
                about="lists no tool: check its configuration, or another revision of MCP",
            )
        case _:
            return State(shape="active", word="On")


def reach(provider: plugin_overview.Provider) -> str:
    """Return how many of its tools are on, and for how many agents."""
    if not provider.active:
        return "on for no agent"
    return f"{words.number(provider.active)} on for {words.counted(len(provider.agents), 'agent')}"


def is_refreshing(provider: plugin_overview.Provider, since: datetime | None) -> bool:
    """Return whether its server was asked at that time and may still respond."""
    if since is None or provider.connection is None:
        return False
    answered = provider.listing is not None and provider.listing.asked >= since
    return (
        not answered
        and timezone.now() < since + 2 * timedelta(seconds=provider.connection.timeout) + GRACE_TIME
    )


class Refresh(pieces.View):
    """The progress of a refresh of one or all servers: those that it is ``waiting`` for (``url`` polls), those that
    ``failed`` (for a ``reason``, if it is only one) or stayed ``silent``, and how many ``responded``.
    """

    def __init__(
        self, providers: Sequence[plugin_overview.Provider], since: datetime, path: str, of: str
    ) -> None:
        refreshed = [provider for provider in providers if _is_refreshed(provider, of)]
        answered = {
            provider.plugin.name: provider.listing
            for provider in refreshed
            if provider.listing is not None and provider.listing.asked >= since
        }
        failures = {name: listing.error for name, listing in answered.items() if listing.error}
        reasons = [f"{_error(error).rstrip('.')}." for error in failures.values()]
        self.url = f"{path}?{urlencode({'asked': stamp(since), **({'of': of} if of else {})})}"
        self.waiting = [provider.plugin.name for provider in refreshed if is_refreshing(provider, since)]
        self.responded = len(answered) - len(failures)
        self.failed = list(failures)
        self.reason = reasons[0] if len(reasons) == 1 else ""
        self.silent = [provider.plugin.name for provider in refreshed if provider.plugin.name not in answered]
        self.to_review = sum(provider.to_review for provider in refreshed)


def _is_refreshed(provider: plugin_overview.Provider, of: str) -> bool:
    """Return whether a refresh of server ``of``, or of all active servers if it is empty, includes this one."""
    return provider.connection is not None and (of == provider.plugin.name if of else provider.plugin.active)


def stamp(at: datetime) -> str:
    """Return a time as a query parameter, in milliseconds."""
    return str(int(at.timestamp() * 1000))


def _matches(provider: plugin_overview.Provider, criteria: Mapping[str, Any]) -> bool:
    plugin = provider.plugin
    if not words.contains(criteria["q"], plugin.name, plugin.namespace, plugin.title, plugin.description):
        return False
    match criteria["show"]:
        case "waiting":
            return provider.to_review > 0
        case "failed":
            return plugin.status == "failed"
        case "off":
            return plugin.blocked or not plugin.active
    return True


def _error(text: str) -> str:
    return texts.visible(words.cut(text, MAX_ERROR_LENGTH))
