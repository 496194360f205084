"""How is the page about the installation filled?"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping

from toolbelt import conf
from toolbelt.control import installation, providers
from toolbelt.web import words
from toolbelt.web.pages import plugins, texts
from toolbelt.web.presenters import pieces, status

LONGEST_ERROR = 300
_PRUNED_BY = {"calls": "prune_calls", "sessions": "prune_sessions"}


def page() -> status.StatusPage:
    """Fill the page."""
    found = installation.look()
    every = tuple(_plugin(one) for one in providers.every(users=False))
    findings = tuple(_findings(found, every))
    return status.StatusPage(
        state="unavailable" if findings else "active",
        summary=f"{len(findings)} thing{' needs' if len(findings) == 1 else 's need'} an eye"
        if findings
        else "All is well",
        findings=findings,
        groups=(
            status.Group(id="software", title="Software", facts=_software(found)),
            status.Group(id="storage", title="Database and cache", facts=_storage(found)),
            status.Group(id="kept", title="Kept", facts=_kept(found.kept, found.revision)),
        ),
        plugins=every,
    )


def _findings(found: installation.Installation, every: tuple[status.Plugin, ...]) -> Iterator[str]:
    pending = found.database.pending
    if pending:
        yield f"Migrations to apply: {words.listing(list(pending))}. Run {conf.COMMAND} migrate."
    if found.cache.error:
        yield f"The cache does not answer: {found.cache.error}."
    yield from found.findings
    for one in every:
        if one.state == "unavailable":
            yield f"The plugin {one.title} has failed."


def _software(found: installation.Installation) -> tuple[status.Fact, ...]:
    return (
        *(status.Fact(label=name, value=version) for name, version in found.versions.items()),
        status.Fact(label="Environment", value=found.environment),
        status.Fact(
            label="This process",
            value=f"number {found.process}, at work since",
            when=words.moment(found.started),
            about="Others behind the same address have numbers of their own.",
        ),
        status.Fact(label="Time here", value=f"{found.zone}:", when=_now(found.now)),
    )


def _now(now: dt.datetime) -> pieces.Moment:
    moment = words.moment(now)
    return pieces.Moment(iso=moment.iso, words=moment.full, full=moment.full)


def _storage(found: installation.Installation) -> tuple[status.Fact, ...]:
    database, cache = found.database, found.cache
    pending = len(database.pending)
    return (
        status.Fact(
            label="Database",
            value=f"{database.vendor} {database.version}",
            about=f"answers in {database.milliseconds:.1f} ms",
            state="active",
        ),
        status.Fact(
            label="Migrations",
            value=f"{pending} to apply" if pending else "all applied",
            state="unavailable" if pending else "active",
        ),
        status.Fact(
            label="Cache",
            value=cache.name,
            about=cache.error
            or f"answers in {cache.milliseconds:.1f} ms"
            + ("" if cache.is_shared else "; enough for one machine. REDIS_URL shares it between several"),
            state="unavailable" if cache.error else "active",
        ),
    )


def _kept(kept: Mapping[str, installation.Kept], revision: int) -> tuple[status.Fact, ...]:
    return (
        status.Fact(
            label="Revision",
            value=words.number(revision),
            about="the number of the last write of configuration",
        ),
        *(
            status.Fact(
                label=name.capitalize(),
                value=words.number(one.count) + (", the oldest" if one.oldest else ""),
                when=words.moment(one.oldest) if one.oldest else None,
                about=f"forgotten by {conf.COMMAND} {_PRUNED_BY[name]}"
                if name in _PRUNED_BY
                else "kept for good",
            )
            for name, one in kept.items()
        ),
    )


def _plugin(one: providers.Provider) -> status.Plugin:
    state = plugins.state(one)
    listing = one.listing
    return status.Plugin(
        name=one.plugin.name,
        title=texts.visible(one.plugin.title or one.plugin.name),
        kind=plugins.kind(one),
        state=state.shape,
        word=state.word,
        error=words.cut(state.error, LONGEST_ERROR),
        tools=words.tools(one.offered),
        seen=words.moment(listing.answered) if listing is not None and listing.answered else None,
    )
