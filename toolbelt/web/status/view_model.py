"""The system status."""

from __future__ import annotations

from collections.abc import Iterator

from toolbelt import conf
from toolbelt.control.config import installation
from toolbelt.control.servers import plugin_overview
from toolbelt.web.kit import pieces, words
from toolbelt.web.plugins import view_model as plugins


def page() -> pieces.View:
    """Return the page."""
    installed = installation.status()
    every = tuple(map(plugins.line, plugin_overview.load_all(users=False)))
    findings = tuple(_findings(installed, every))
    # What has failed comes first: the list is long, and the rest of it is fine.
    plugins_shown = sorted(every, key=lambda plugin: plugin.state.shape == "active")
    return pieces.View(installed=installed, findings=findings, plugins=plugins_shown)


def _findings(state: installation.Installation, every: tuple[pieces.View, ...]) -> Iterator[str]:
    pending = state.database.pending
    if pending:
        yield f"Migrations are pending: {words.listing(list(pending))}. Run {conf.COMMAND} migrate."
    if state.cache.error:
        yield f"The cache does not respond: {state.cache.error}."
    yield from state.findings
    for plugin in every:
        if plugin.state.shape == "unavailable":
            yield f"The plugin {plugin.title} has failed."
