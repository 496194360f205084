"""How is the list of plugins and upstream servers filled?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone
from django.utils.http import urlencode

from toolbelt import conf
from toolbelt.control import providers
from toolbelt.plugins import info, loading
from toolbelt.web import words
from toolbelt.web.pages import texts
from toolbelt.web.presenters import answers, pieces, plugins

# So much longer than the answer itself may take, before nobody believes in it any more.
PATIENCE = timedelta(seconds=20)
LONGEST_ERROR = 600
LONGEST_DESCRIPTION = 200
SHOWS = ("", "waiting", "failed", "off")


def page(
    every: Sequence[providers.Provider],
    loaded: loading.Loaded,
    said: Mapping[str, Any],
    *,
    path: str,
    here: str,
    notice: answers.Notice | None,
    may_change: bool,
    may_add: bool,
    may_see: bool,
) -> plugins.PluginsPage:
    """Fill the list, narrowed as the form says; ``loaded`` is what runs in this process, and what is installed."""
    live = loaded.registry.list_plugins()
    running = {plugin.name for plugin in live if plugin.state != "failed"}
    shown = [one for one in every if _fits(one, said)]
    stored = {one.plugin.name for one in every}
    return plugins.PluginsPage(
        plugins=tuple(
            line(one, running=running, since=said["asked"] if _is_meant(one, said["of"]) else None)
            for one in shown
        ),
        installed=tuple(map(_installed, loaded.available)),
        unknown=tuple(_unknown(plugin) for plugin in live if plugin.name not in stored),
        query=said["q"],
        shows=_shows(every, said["show"]),
        narrowed=bool(said["q"] or said["show"]),
        in_all=len(every),
        file=conf.PLUGINS_FILE,
        servers=sum(one.connection is not None for one in every),
        matches=_matches(shown),
        asking=asking(every, said["asked"], path, said["of"]),
        notice=notice,
        may_change=may_change,
        may_add=may_add,
        may_see=may_see,
        here=here,
    )


def line(
    one: providers.Provider, *, running: Iterable[str] = (), since: datetime | None = None
) -> plugins.PluginLine:
    """Fill one line; ``since`` is when its server was asked, if somebody waits for that."""
    plugin = one.plugin
    listing = one.listing
    return plugins.PluginLine(
        id=f"plugin-{plugin.name}",
        name=plugin.name,
        title=texts.visible(plugin.title or plugin.name),
        namespace=plugin.namespace,
        description=texts.visible(words.cut(plugin.description, LONGEST_DESCRIPTION)),
        kind=kind(one),
        runs=one.connection is not None or plugin.name in running,
        trusted=plugin.trusted,
        state=state(one),
        tools=one.offered,
        reach=reach(one),
        waiting=one.waiting,
        seen=words.moment(listing.answered) if listing is not None and listing.answered else None,
        asking=is_asked(one, since),
        askable=one.connection is not None or plugin.status == "failed",
        active=active(one),
        blocked=blocked(one),
    )


def kind(one: providers.Provider) -> str:
    """Say what it is: ``code``, ``stdio`` or ``HTTP``."""
    if one.connection is None:
        return "code"
    return "stdio" if one.connection.command else "HTTP"


def state(one: providers.Provider) -> plugins.State:
    """Say how it is. What an operator did comes before what happened to it."""
    plugin = one.plugin
    error = texts.visible(words.cut(one.error, LONGEST_ERROR)) if plugin.status == "failed" else ""
    if plugin.blocked:
        return plugins.State(shape="denied", word="Stopped", about="blocked for everyone", error=error)
    if not plugin.active:
        return plugins.State(shape="denied", word="Off", about="available to nobody", error=error)
    if plugin.status == "failed":
        about = "its tools are unavailable" if one.offered else ""
        return plugins.State(shape="unavailable", word="Failed", about=about, error=error)
    if one.listing is not None and one.listing.error:
        error = texts.visible(words.cut(one.listing.error, LONGEST_ERROR))
        return plugins.State(
            shape="unavailable", word="Not answering", about="the next call tries again", error=error
        )
    if one.connection is not None and one.listing is None and not one.tools:
        return plugins.State(shape="dormant", word="On", about="not asked for its tools yet")
    return plugins.State(shape="active", word="On")


def reach(one: providers.Provider) -> str:
    """Say who has its tools: what switching it off takes away."""
    if not one.active:
        return "no agent has any of them"
    count = len(one.agents)
    having = f"{count} agent{'' if count == 1 else 's'} {'has' if count == 1 else 'have'}"
    return f"{having} {words.number(one.active)} of them"


def active(one: providers.Provider) -> plugins.Control:
    """Fill the switch that turns it on and off."""
    on = one.plugin.active
    return plugins.Control(
        name="active",
        label="Active",
        on=on,
        said="On" if on else "Off",
        about="Off, none of its tools is available to anyone.",
        act="Turn off" if on else "Turn on",
    )


def blocked(one: providers.Provider) -> plugins.Control:
    """Fill the emergency stop."""
    on = one.plugin.blocked
    return plugins.Control(
        name="blocked",
        label="Emergency stop",
        on=on,
        said="Stopped" if on else "Not stopped",
        about="Denies all of its tools to everyone at once, whatever any agent is set to.",
        act="Lift the stop" if on else "Stop for everyone",
    )


def trusted(one: providers.Provider) -> plugins.Control:
    """Fill the switch that lets its new tools in."""
    on = one.plugin.trusted
    return plugins.Control(
        name="trusted",
        label="Trusted",
        on=on,
        said="Trusted" if on else "Not trusted",
        about="New tools of a trusted plugin need no look. Changed ones still do.",
        act="Trust no longer" if on else "Trust",
    )


def is_asked(one: providers.Provider, since: datetime | None) -> bool:
    """Say whether its server was asked then and may still answer."""
    if since is None or one.connection is None:
        return False
    answered = one.listing is not None and one.listing.asked >= since
    return not answered and timezone.now() < since + 2 * timedelta(seconds=one.connection.timeout) + PATIENCE


def asking(
    every: Sequence[providers.Provider], since: datetime | None, path: str, of: str
) -> plugins.Asking | None:
    """Say how far a refresh has come that was begun then, of one server or of all."""
    if since is None:
        return None
    asked = [one for one in every if _is_meant(one, of)]
    waiting = [one for one in asked if is_asked(one, since)]
    answered = [one for one in asked if one.listing is not None and one.listing.asked >= since]
    url = f"{path}?{urlencode({'asked': stamp(since), **({'of': of} if of else {})})}"
    if waiting:
        names = words.listing([one.plugin.name for one in waiting])
        return plugins.Asking(under_way=True, words=f"Asking {names}…", url=url)
    failed = [one.plugin.name for one in answered if one.listing is not None and one.listing.error]
    silent = [one.plugin.name for one in asked if one not in answered]
    told = [f"{_servers(len(answered) - len(failed))} answered"]
    told += [f"{words.listing(failed)} failed"] if failed else []
    told += [f"no word of {words.listing(silent)}"] if silent else []
    look = sum(one.waiting for one in asked)
    wait = f" {words.tools(look)} wait{'s' if look == 1 else ''} for a look." if look else ""
    return plugins.Asking(under_way=False, words=f"{', '.join(told)}.{wait}", url=url)


def _is_meant(one: providers.Provider, of: str) -> bool:
    """Say whether a refresh of that one, or of all that are on, asks this one."""
    return one.connection is not None and (of == one.plugin.name if of else one.plugin.active)


def stamp(at: datetime) -> str:
    """Print a moment as addresses have it: milliseconds."""
    return str(int(at.timestamp() * 1000))


def _servers(count: int) -> str:
    return f"{words.number(count)} server{'' if count == 1 else 's'}"


def _fits(one: providers.Provider, said: Mapping[str, Any]) -> bool:
    query = str(said["q"]).strip().casefold()
    plugin = one.plugin
    texts_of = (plugin.name, plugin.namespace, plugin.title, plugin.description)
    if query and not any(query in text.casefold() for text in texts_of):
        return False
    match said["show"]:
        case "waiting":
            return one.waiting > 0
        case "failed":
            return plugin.status == "failed"
        case "off":
            return plugin.blocked or not plugin.active
    return True


def _shows(every: Sequence[providers.Provider], chosen: str) -> tuple[pieces.Choice, ...]:
    labels = {"": "All", "waiting": "To look at", "failed": "Failed", "off": "Off or stopped"}
    counts = {
        show: sum(_fits(one, {"q": "", "show": show}) for one in every) if show else None for show in labels
    }
    return tuple(
        pieces.Choice(value=show, label=label, chosen=show == chosen, count=counts[show])
        for show, label in labels.items()
    )


def _matches(shown: Sequence[providers.Provider]) -> str:
    count, waiting = len(shown), sum(one.waiting for one in shown)
    found = f"{count} plugin{'' if count == 1 else 's'}, {words.tools(sum(one.offered for one in shown))}"
    return f"{found}, {words.number(waiting)} to look at" if waiting else found


def _installed(one: loading.Installed) -> plugins.Unlisted:
    where = f"{one.module}:{one.attribute}"
    return plugins.Unlisted(
        name=one.name,
        where=f"{one.distribution}, {where}" if one.distribution else where,
        line=f"- id: {one.name}",
    )


def _unknown(plugin: info.PluginInfo) -> plugins.Unlisted:
    return plugins.Unlisted(
        name=plugin.name,
        where=plugin.source,
        line=f"{conf.COMMAND} plugins sync",
        error=texts.visible(words.cut(plugin.error, LONGEST_ERROR)),
    )
