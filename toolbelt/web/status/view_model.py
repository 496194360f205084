"""The system status."""

from __future__ import annotations

from collections.abc import Iterator

from toolbelt import conf
from toolbelt.control.config import installation
from toolbelt.control.servers import plugin_overview
from toolbelt.web.kit import pieces, texts, words
from toolbelt.web.plugins import view_model as plugins

MAX_ERROR_LENGTH = 300


def page() -> pieces.View:
    """Fill the page."""
    installed = installation.status()
    every = tuple(_plugin(plugin) for plugin in plugin_overview.load_all(users=False))
    return pieces.View(installed=installed, findings=tuple(_findings(installed, every)), plugins=every)


def _findings(state: installation.Installation, every: tuple[pieces.View, ...]) -> Iterator[str]:
    pending = state.database.pending
    if pending:
        yield f"Migrations are pending: {words.listing(list(pending))}. Run {conf.COMMAND} migrate."
    if state.cache.error:
        yield f"The cache does not respond: {state.cache.error}."
    yield from state.findings
    for plugin in every:
        if plugin.state == "unavailable":
            yield f"The plugin {plugin.title} has failed."


def _plugin(provider: plugin_overview.Provider) -> pieces.View:
    state = plugins.state(provider)
    listing = provider.listing
    return pieces.View(
        name=provider.plugin.name,
        title=texts.visible(provider.plugin.title or provider.plugin.name),
        kind=plugins.kind(provider),
        state=state.shape,
        word=state.word,
        error=words.cut(state.error, MAX_ERROR_LENGTH),
        tools=words.tools(provider.offered),
        seen=listing.answered if listing is not None else None,
    )
