"""The status of the installation, for its administrators."""

from __future__ import annotations

from collections.abc import Iterator

from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from toolbelt import conf
from toolbelt.control import alerts, self_checks
from toolbelt.control.config import drift, installation
from toolbelt.control.servers import plugin_overview
from toolbelt.web.kit import http, pieces, responses, words
from toolbelt.web.plugins import listing as plugins

# What is wrong with a plugin, by the word of its state.
_PROBLEMS = {
    "Failed": "has failed",
    "Not running": "has tools that no process can run",
    "Not responding": "does not respond",
}


@require_safe
def page(request: http.Request) -> HttpResponse:
    """Show the page to staff only, like the metrics and the admin."""
    return render(request, "status/status.html", {"page": _Page(request)})


@require_safe
def replays(request: http.Request) -> HttpResponse:
    """Show whether replays reproduce what was recorded: fetched after the page, because it takes seconds."""
    if not getattr(request.user, "is_staff", False):
        raise PermissionDenied
    page = _Replays(self_checks.check())
    return responses.show(request, page, "status/replays.html", "status/_replays.html")


class _Replays(pieces.Page):
    """The result of the self-check."""

    def __init__(self, checked: self_checks.SelfCheck) -> None:
        self.checked = checked


class _Page(pieces.Page):
    """The state of the installation."""

    def __init__(self, request: http.Request) -> None:
        if not getattr(request.user, "is_staff", False):
            raise PermissionDenied
        state = installation.status()
        # Of the last night; without it, it is made and fetched after the page.
        self.checked = self_checks.latest()
        lines = tuple(map(plugins.Line, plugin_overview.load_all(users=False)))
        # Failed plugins come first, because the list is long.
        by_state = sorted(lines, key=lambda plugin: plugin.state.shape == "active")
        self.installed = state
        self.findings = tuple(_findings(state, lines))
        self.plugins = by_state


def _findings(state: installation.Installation, lines: tuple[plugins.Line, ...]) -> Iterator[str]:
    pending = state.database.pending
    if pending:
        yield f"Migrations are pending: {words.listing(list(pending))}. Run {conf.COMMAND} migrate."
    if state.cache.error:
        yield f"The cache does not respond: {state.cache.error}."
    yield from state.findings
    if not pending and (found := drift.find()) is not None and found.differences:
        yield found.message
    if not pending:
        yield from alerts.problems()
    for plugin in lines:
        if plugin.state.shape == "unavailable":
            yield f"The plugin {plugin.title} {_PROBLEMS[plugin.state.word]}."
