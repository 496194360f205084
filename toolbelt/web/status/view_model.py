"""The system status."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from toolbelt import conf
from toolbelt.control.config import installation
from toolbelt.control.servers import plugin_overview
from toolbelt.web.kit import pieces, texts, words
from toolbelt.web.plugins import view_model as plugins


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One line: what, how it is, and in smaller letters what else there is to say of it. `state` is the shape beside
    it, empty for what is merely so.
    """

    label: str
    value: str
    about: str = ""
    state: str = ""
    when: pieces.Moment | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Facts that belong together."""

    id: str
    title: str
    facts: tuple[Fact, ...]


MAX_ERROR_LENGTH = 300
_PRUNED_BY = {"calls": "prune_calls", "sessions": "prune_sessions"}


def page() -> pieces.View:
    """Fill the page."""
    found = installation.status()
    every = tuple(_plugin(one) for one in plugin_overview.load_all(users=False))
    findings = tuple(_findings(found, every))
    return pieces.View(
        state="unavailable" if findings else "active",
        summary=f"{len(findings)} problem{'' if len(findings) == 1 else 's'} found"
        if findings
        else "All systems healthy",
        findings=findings,
        groups=(
            Group(id="software", title="Software", facts=_software(found)),
            Group(id="storage", title="Database and cache", facts=_storage(found)),
            Group(id="kept", title="Stored data", facts=_kept(found.kept, found.revision)),
        ),
        plugins=every,
    )


def _findings(state: installation.Installation, every: tuple[pieces.View, ...]) -> Iterator[str]:
    pending = state.database.pending
    if pending:
        yield f"Migrations are pending: {words.listing(list(pending))}. Run {conf.COMMAND} migrate."
    if state.cache.error:
        yield f"The cache does not respond: {state.cache.error}."
    yield from state.findings
    for one in every:
        if one.state == "unavailable":
            yield f"The plugin {one.title} has failed."


def _software(state: installation.Installation) -> tuple[Fact, ...]:
    return (
        *(Fact(label=name, value=version) for name, version in state.versions.items()),
        Fact(label="Environment", value=state.environment),
        Fact(
            label="This process",
            value=f"number {state.process}, started",
            when=words.moment(state.started),
            about="Other processes behind the same address have other numbers.",
        ),
        Fact(label="Server time", value=f"{state.zone}:", when=_now(state.now)),
    )


def _now(now: dt.datetime) -> pieces.Moment:
    moment = words.moment(now)
    return pieces.Moment(iso=moment.iso, words=moment.full, full=moment.full)


def _storage(state: installation.Installation) -> tuple[Fact, ...]:
    database, cache = state.database, state.cache
    pending = len(database.pending)
    return (
        Fact(
            label="Database",
            value=f"{database.vendor} {database.version}",
            about=f"responds in {database.milliseconds:.1f} ms",
            state="active",
        ),
        Fact(
            label="Migrations",
            value=f"{pending} pending" if pending else "all applied",
            state="unavailable" if pending else "active",
        ),
        Fact(
            label="Cache",
            value=cache.name,
            about=cache.error
            or f"responds in {cache.milliseconds:.1f} ms"
            + (
                ""
                if cache.is_shared
                else "; sufficient for one machine. Set REDIS_URL to share it between several"
            ),
            state="unavailable" if cache.error else "active",
        ),
    )


def _kept(kept: Mapping[str, installation.Kept], revision: int) -> tuple[Fact, ...]:
    return (
        Fact(
            label="Revision",
            value=words.number(revision),
            about="the number of the last configuration change",
        ),
        *(
            Fact(
                label=name.capitalize(),
                value=words.number(one.count) + (", oldest" if one.oldest else ""),
                when=words.moment(one.oldest) if one.oldest else None,
                about=f"pruned by {conf.COMMAND} {_PRUNED_BY[name]}"
                if name in _PRUNED_BY
                else "kept permanently",
            )
            for name, one in kept.items()
        ),
    )


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
        seen=words.moment(listing.answered) if listing is not None and listing.answered else None,
    )
