"""The list of plugins and upstream servers."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from django.utils import timezone
from django.utils.http import urlencode

from toolbelt import conf
from toolbelt.control.servers import plugin_overview
from toolbelt.core import catalog
from toolbelt.plugins import info, loading
from toolbelt.web.kit import pieces, texts, words

# The shapes that states have on every page.
Shape = Literal["active", "discoverable", "denied", "dormant", "unavailable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """How a plugin is: its shape and word, a sentence behind it, and the error if it has failed."""

    shape: Shape
    word: str
    about: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """One of the switches of a plugin: "active", "blocked" or "trusted". `on` is what is stored, `said` says it,
    `about` what it does, `act` what the button does ("Stop for everyone").
    """

    name: str
    label: str
    on: bool
    said: str
    about: str
    act: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlisted:
    """What could be here and is not: `where` it comes from, `line` what to write or run for it, `error` if it broke."""

    name: str
    where: str
    line: str
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How far a refresh has come. `url` asks again while it is `under_way`; `words` say it, for eyes and ears."""

    under_way: bool
    words: str
    url: str


# So much longer than the answer itself may take, before nobody believes in it any more.
PATIENCE = timedelta(seconds=20)
MAX_ERROR_LENGTH = 600
MAX_DESCRIPTION_LENGTH = 200


def page(
    every: Sequence[plugin_overview.Provider],
    loaded: loading.Loaded,
    filters: Mapping[str, Any],
    *,
    path: str,
    **frame: Any,
) -> pieces.View:
    """Fill the list, narrowed as the form says; ``loaded`` is what runs in this process, and what is installed."""
    live = loaded.registry.list_plugins()
    running = {plugin.name for plugin in live if plugin.state != "failed"}
    shown = [one for one in every if _fits(one, filters)]
    stored = {one.plugin.name for one in every}
    return pieces.View(
        plugins=tuple(
            line(one, running=running, since=filters["asked"] if _is_meant(one, filters["of"]) else None)
            for one in shown
        ),
        installed=tuple(map(_installed, loaded.available)),
        unknown=tuple(_unknown(plugin) for plugin in live if plugin.name not in stored),
        query=filters["q"],
        shows=_shows(every, filters["show"]),
        narrowed=bool(filters["q"] or filters["show"]),
        in_all=len(every),
        file=conf.PLUGINS_FILE,
        servers=sum(one.connection is not None for one in every),
        matches=_matches(shown),
        asking=asking(every, filters["asked"], path, filters["of"]),
        **frame,
    )


def line(
    provider: plugin_overview.Provider, *, running: Iterable[str] = (), since: datetime | None = None
) -> pieces.View:
    """Fill one line; ``since`` is when its server was asked, if somebody waits for that."""
    plugin = provider.plugin
    listing = provider.listing
    return pieces.View(
        id=f"plugin-{plugin.name}",
        name=plugin.name,
        title=texts.visible(plugin.title or plugin.name),
        namespace=plugin.namespace,
        description=texts.visible(words.cut(plugin.description, MAX_DESCRIPTION_LENGTH)),
        kind=kind(provider),
        runs=provider.connection is not None or plugin.name in running,
        trusted=plugin.trusted,
        state=state(provider),
        tools=provider.offered,
        others=_others(provider),
        reach=reach(provider),
        waiting=provider.waiting,
        seen=words.moment(listing.answered) if listing is not None and listing.answered else None,
        asking=is_asked(provider, since),
        askable=provider.connection is not None or plugin.status == "failed",
        active=active(provider),
        blocked=blocked(provider),
    )


def kind(provider: plugin_overview.Provider) -> str:
    """Return what it is: ``code``, ``client``, ``stdio`` or ``HTTP``."""
    if provider.connection is None:
        return "client" if provider.plugin.runner == "client" else "code"
    return "stdio" if provider.connection.command else "HTTP"


def state(provider: plugin_overview.Provider) -> State:
    """Return how it is. What an operator did comes before what happened to it."""
    plugin = provider.plugin
    error = texts.visible(words.cut(provider.error, MAX_ERROR_LENGTH)) if plugin.status == "failed" else ""
    if plugin.blocked:
        return State(shape="denied", word="Blocked", about="blocked for everyone", error=error)
    if not plugin.active:
        return State(shape="denied", word="Off", about="available to no agent", error=error)
    if plugin.status == "failed":
        about = "its tools are unavailable" if provider.offered else ""
        return State(shape="unavailable", word="Failed", about=about, error=error)
    if absent := len(plugin.not_running):
        about = f"no running process can run {absent} of its tools: restart Toolbelt's servers"
        return State(shape="unavailable", word="Not running", about=about)
    if provider.listing is not None and provider.listing.error:
        error = texts.visible(words.cut(provider.listing.error, MAX_ERROR_LENGTH))
        return State(shape="unavailable", word="Not responding", about="the next call retries", error=error)
    if provider.connection is not None and provider.listing is None and not provider.tools:
        return State(shape="dormant", word="On", about="tools not listed yet")
    return State(shape="active", word="On")


def _others(provider: plugin_overview.Provider) -> str:
    """Count in words what it offers beside tools."""
    counts: collections.Counter[str] = collections.Counter(
        tool.kind for tool in provider.tools if tool.kind != "tool" and not tool.retired
    )
    return ", ".join(
        f"{count} {words.KINDS[kind]}{'' if count == 1 else 's'}"
        for kind in catalog.KINDS
        if (count := counts[kind])
    )


def reach(provider: plugin_overview.Provider) -> str:
    """Return who has its tools: what switching it off takes away."""
    if not provider.active:
        return "no agent has any of them"
    count = len(provider.agents)
    having = f"{count} agent{'' if count == 1 else 's'} {'has' if count == 1 else 'have'}"
    return f"{having} {words.number(provider.active)} of them"


def active(provider: plugin_overview.Provider) -> Control:
    """Fill the switch that turns it on and off."""
    on = provider.plugin.active
    return Control(
        name="active",
        label="Plugin",
        on=on,
        said="On" if on else "Off",
        about="While the plugin is off, its tools are unavailable to all agents.",
        act="Turn off" if on else "Turn on",
    )


def blocked(provider: plugin_overview.Provider) -> Control:
    """Fill the emergency stop."""
    on = provider.plugin.blocked
    return Control(
        name="blocked",
        label="Emergency stop",
        on=on,
        said="Blocked" if on else "Not blocked",
        about="Blocks all its tools for all agents immediately, whatever their settings.",
        act="Unblock" if on else "Block for everyone",
    )


def trusted(provider: plugin_overview.Provider) -> Control:
    """Fill the switch that lets its new tools in."""
    on = provider.plugin.trusted
    return Control(
        name="trusted",
        label="Trusted",
        on=on,
        said="Trusted" if on else "Not trusted",
        about="New tools of a trusted plugin are approved automatically. Changed tools still need review.",
        act="Stop trusting" if on else "Trust",
    )


def is_asked(provider: plugin_overview.Provider, since: datetime | None) -> bool:
    """Return whether its server was asked then and may still answer."""
    if since is None or provider.connection is None:
        return False
    answered = provider.listing is not None and provider.listing.asked >= since
    return (
        not answered
        and timezone.now() < since + 2 * timedelta(seconds=provider.connection.timeout) + PATIENCE
    )


def asking(
    every: Sequence[plugin_overview.Provider], since: datetime | None, path: str, of: str
) -> Asking | None:
    """Return how far a refresh has come that was begun then, of one server or of all."""
    if since is None:
        return None
    asked = [one for one in every if _is_meant(one, of)]
    waiting = [one for one in asked if is_asked(one, since)]
    answered = [one for one in asked if one.listing is not None and one.listing.asked >= since]
    url = f"{path}?{urlencode({'asked': stamp(since), **({'of': of} if of else {})})}"
    if waiting:
        names = words.listing([one.plugin.name for one in waiting])
        return Asking(under_way=True, words=f"Refreshing {names}…", url=url)
    failed = [one.plugin.name for one in answered if one.listing is not None and one.listing.error]
    silent = [one.plugin.name for one in asked if one not in answered]
    told = [f"{_servers(len(answered) - len(failed))} responded"]
    told += [f"{words.listing(failed)} failed"] if failed else []
    told += [f"no response from {words.listing(silent)}"] if silent else []
    look = sum(one.waiting for one in asked)
    wait = f" {words.tools(look)} await{'s' if look == 1 else ''} review." if look else ""
    return Asking(under_way=False, words=f"{', '.join(told)}.{wait}", url=url)


def _is_meant(provider: plugin_overview.Provider, of: str) -> bool:
    """Return whether a refresh of that one, or of all that are on, asks this one."""
    return provider.connection is not None and (of == provider.plugin.name if of else provider.plugin.active)


def stamp(at: datetime) -> str:
    """Print a moment as addresses have it: milliseconds."""
    return str(int(at.timestamp() * 1000))


def _servers(count: int) -> str:
    return f"{words.number(count)} server{'' if count == 1 else 's'}"


def _fits(provider: plugin_overview.Provider, filters: Mapping[str, Any]) -> bool:
    query = str(filters["q"]).strip().casefold()
    plugin = provider.plugin
    texts_of = (plugin.name, plugin.namespace, plugin.title, plugin.description)
    if query and not any(query in text.casefold() for text in texts_of):
        return False
    match filters["show"]:
        case "waiting":
            return provider.waiting > 0
        case "failed":
            return plugin.status == "failed"
        case "off":
            return plugin.blocked or not plugin.active
    return True


def _shows(every: Sequence[plugin_overview.Provider], chosen: str) -> tuple[pieces.Choice, ...]:
    labels = {"": "All", "waiting": "To review", "failed": "Failed", "off": "Off or blocked"}
    counts = {
        show: sum(_fits(one, {"q": "", "show": show}) for one in every) if show else None for show in labels
    }
    return tuple(
        pieces.Choice(value=show, label=label, chosen=show == chosen, count=counts[show])
        for show, label in labels.items()
    )


def _matches(shown: Sequence[plugin_overview.Provider]) -> str:
    count, waiting = len(shown), sum(one.waiting for one in shown)
    found = f"{count} plugin{'' if count == 1 else 's'}, {words.tools(sum(one.offered for one in shown))}"
    return f"{found}, {words.number(waiting)} to review" if waiting else found


def _installed(one: loading.Installed) -> Unlisted:
    where = f"{one.module}:{one.attribute}"
    return Unlisted(
        name=one.name,
        where=f"{one.distribution}, {where}" if one.distribution else where,
        line=f"- id: {one.name}",
    )


def _unknown(plugin: info.PluginInfo) -> Unlisted:
    return Unlisted(
        name=plugin.name,
        where=plugin.source,
        line=f"{conf.COMMAND} plugins sync",
        error=texts.visible(words.cut(plugin.error, MAX_ERROR_LENGTH)),
    )
