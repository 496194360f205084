"""What does an operator do with upstream MCP servers: add them, take in what they list, approve what changed?

The rules of :func:`record`, before the code:

1. A tool that is new is unseen, so nobody has it; unless the server is trusted, and the tool does not say what another
   one said that is gone: that may be the same under a new name, and denied under the old.
2. What a server says of a tool follows the server. Category, default and policy are the operators'.
3. A tool that was seen is held to what was seen of it, by the hash of its name, description and input schema. Says the
   server something else now, that is stored beside what was approved, and the tool is unavailable until somebody
   approves the difference. A name that changes in case alone is such a difference: the tool keeps its key. Title,
   output schema and hints are no part of the hash: they follow at once, audited.
4. A tool that the server no longer lists is retired; one that it lists again, as it was, is there again.
5. What collides, or cannot be used, costs the server that tool, with a message. A server that could not be asked has
   failed, with its error, and keeps its tools as they were.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolbelt.control import actors, entries, provided, renaming, reviews, taking, writing
from toolbelt.core import belts, catalog, connections, errors, keys
from toolbelt.plugins.upstream import importing
from toolbelt.store import listings, snapshots, tokens
from toolbelt.store import plugins as rows

SYSTEM = actors.Actor(name="toolbelt", via="system")
REASON = "as the server lists it"
LONGEST_REASON = 500
MOST_TOLD = 200

Answer = importing.Answer
Listing = listings.Listing
Review = reviews.Review
review = reviews.review
waiting = reviews.waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One upstream server for a list: how it is reached, what it last said, and how many tools wait for a look."""

    plugin: catalog.Plugin
    connection: connections.Connection
    tools: int
    waiting: Mapping[reviews.Kind, int]
    listing: Listing | None
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What became of an answer: the tools that are new, changed, retired and back, and what could not be taken."""

    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()
    problems: tuple[errors.Problem, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved:
    """What was approved, by key, and what was carried over to new names (old name, new name), as far as it could be."""

    keys: tuple[str, ...]
    carried: tuple[tuple[str, str], ...] = ()
    problems: tuple[errors.Problem, ...] = ()


def servers() -> list[Server]:
    """List the upstream servers, in stored order."""
    stored, failures, listed, counts = snapshots.catalog(), rows.errors(), listings.every(), waiting()
    return [
        Server(
            plugin=plugin,
            connection=connection,
            tools=sum(not stored.tools[key].retired for key in stored.tools_of_plugin.get(name, ())),
            waiting=counts.get(name, {}),
            listing=listed.get(name),
            error=failures.get(name, ""),
        )
        for name, plugin in stored.plugins.items()
        if plugin.upstream and (connection := connections.read(plugin.upstream)) is not None
    ]


def find(name: str) -> catalog.Plugin:
    """Give the plugin of an upstream server. Raises errors.NotFound."""
    return reviews.find(name, snapshots.catalog())


def add(
    actor: actors.Actor,
    name: str,
    connection: Mapping[str, Any],
    *,
    namespace: str | None = None,
    title: str = "",
    category: str = "",
    trusted: bool = False,
    reason: str = "",
) -> writing.Change:
    """Store a new upstream server; it is asked for its tools by whoever refreshes it next.

    ``connection`` is as in a belt: ``{"command": …}`` or ``{"url": …}``. Without a namespace it gets the name, made to
    fit. Raises errors.Invalid with the path of what is wrong, and errors.Refused for a name that is taken or a command
    that comes by the web.
    """
    entry = {
        "name": name,
        "namespace": namespace_of(name) if namespace is None else namespace,
        "title": title,
        "category": category,
        "trusted": trusted,
        "upstream": dict(connection),
    }
    return entries.create(
        actor, "plugin", {key: value for key, value in entry.items() if value}, reason=reason
    )


def reconnect(
    actor: actors.Actor, name: str, connection: Mapping[str, Any], *, reason: str = ""
) -> writing.Change:
    """Change how a server is reached. Its tools stay as approved. Raises as :func:`add`, and errors.NotFound."""
    find(name)
    return entries.change(actor, "plugin", name, {"upstream": dict(connection)}, reason=reason)


def namespace_of(name: str) -> str:
    """Make a namespace of a server's name."""
    fitted = keys.fit(name)[: keys.LONGEST - len(keys.SEPARATOR) - 1]
    while keys.SEPARATOR in fitted:
        fitted = fitted.replace(keys.SEPARATOR, "_")
    return fitted


def record(actor: actors.Actor, name: str, listed: Answer, *, reason: str = REASON) -> Recorded:
    """Bring the rows in step with what the server answered, by the rules above. Raises errors.NotFound.

    What takes long is done before anybody has to wait: texts are cleaned, schemas checked and tokens counted first.
    """
    plugin = find(name)
    if listed.error:
        return _failed(plugin, listed)
    source = f"the server {name!r}"
    definitions, problems = importing.definitions(listed.tools, plugin.namespace, source)
    problems = [*listed.problems, *problems]
    counts = {(text := _sent(made)): tokens.count(text) for made in definitions}
    with writing.begin():
        stored, known = snapshots.catalog(), entries.known()
        now = reviews.find(name, stored)
        if now.namespace != plugin.namespace:
            message = f"{name} got another namespace while it was asked: refresh it again."
            raise errors.Refused(message)
        batch = writing.new_batch()
        if now.status == "failed":
            entries.change(actor, "plugin", name, {"status": None}, reason=reason, batch=batch)
        made = taking.Taking(definitions, stored=stored, known=known, plugin=now, source=source)
        wanted = [entry for one in definitions for entry in made.taken(one)]
        gone = made.gone() if listed.is_complete else []
        wanted += [{**belts.entry("tool", stored.tools[key]), "retired": True} for key in gone]
        done = provided.write(
            actor,
            wanted,
            source=source,
            stored=stored,
            known=known,
            reason=reason,
            batch=batch,
            counts=counts,
        )
        problems += [*made.problems, *done.problems]
        notes = [
            errors.Problem(path=f"tools.{one.key}", message=said) for one in definitions for said in one.done
        ]
        listings.answered(
            name,
            protocol=listed.protocol,
            server=listed.server,
            tools=len(listed.tools),
            problems=_told([*problems, *notes]),
            stderr=listed.stderr,
        )
    created = frozenset(done.created)
    return Recorded(
        created=done.created,
        changed=tuple(key for key in done.changed if key not in gone),
        held=tuple(key for key in made.held if key in done.changed),
        unseen=tuple(key for key in made.unseen if key in created),
        retired=tuple(gone),
        problems=tuple(problems),
    )


def heard(name: str, listed: Answer) -> None:
    """Take in what a process heard from a server that nobody had asked it for.

    That a call could not reach it fails no server: it is noted, and the next call tries again.
    """
    if listed.error:
        with writing.begin():
            listings.failed(name, error=listed.error, stderr=listed.stderr)
        return
    try:
        record(SYSTEM, name, listed)
    except errors.NotFound:
        # It was removed meanwhile.
        return


def approve(
    actor: actors.Actor,
    name: str,
    shown: Mapping[str, str],
    *,
    carry_over: bool = True,
    reason: str = "",
) -> Approved:
    """Approve the versions that were shown: ``shown`` gives, by tool, the hash that its change was shown with.

    They count from the next question on. One whose version is another one by now raises errors.Stale, and then nothing
    is approved. With ``carry_over`` a renamed tool gets what its previous name had: its places in toolkits and
    sub-apps, the agents' own tools and overrides, what loadouts say of it. Denials stay with the previous name, too.
    """
    with writing.begin():
        batch = writing.new_batch()
        decided = _decided(name, shown)
        renamed = {key: decided[key].previous for key in decided if decided[key].previous}
        changes = {
            key: {
                "seen": None,
                "approved": change.shown,
                "approved_version": None,
                **(
                    renaming.kept(snapshots.catalog().tools[change.previous])
                    if change.previous and carry_over
                    else {}
                ),
            }
            for key, change in decided.items()
        }
        _write(actor, changes, reason=reason, batch=batch)
        problems: list[errors.Problem] = []
        if carry_over and renamed:
            over = {old: new for new, old in renamed.items()}
            problems = renaming.carry_over(actor, over, reason=reason, batch=batch)
    carried = tuple((old, new) for new, old in renamed.items()) if carry_over else ()
    return Approved(keys=tuple(decided), carried=carried, problems=tuple(problems))


def refuse(actor: actors.Actor, name: str, shown: Mapping[str, str], *, reason: str = "") -> tuple[str, ...]:
    """Have looked at the versions that were shown, and keep them off: they are blocked for everyone.

    Whoever lifts the block later has the version that was shown here. Raises errors.Stale as :func:`approve` does.
    """
    with writing.begin():
        decided = _decided(name, shown)
        changes = {
            key: {"seen": None, "approved": change.shown, "approved_version": None, "blocked": True}
            for key, change in decided.items()
        }
        _write(actor, changes, reason=reason, batch=writing.new_batch())
    return tuple(decided)


def _failed(plugin: catalog.Plugin, listed: Answer) -> Recorded:
    with writing.begin():
        now = snapshots.catalog().plugins.get(plugin.name)
        if now is not None and now.status != "failed":
            reason = listed.error[:LONGEST_REASON]
            entries.change(SYSTEM, "plugin", plugin.name, {"status": "failed"}, reason=reason)
        rows.tell_error(plugin.name, listed.error)
        listings.failed(plugin.name, error=listed.error, stderr=listed.stderr)
    return Recorded(error=listed.error)


def _told(problems: list[errors.Problem]) -> list[errors.Problem]:
    """Keep what an operator may read in a sitting; the rest is counted."""
    if len(problems) <= MOST_TOLD:
        return problems
    rest = errors.Problem(path="", message=f"And {len(problems) - MOST_TOLD} more.")
    return [*problems[:MOST_TOLD], rest]


def _sent(made: importing.Definition) -> str:
    return catalog.sent(made.key, made.description, made.input_schema)


def _decided(name: str, shown: Mapping[str, str]) -> dict[str, reviews.Pending]:
    """Give what a decision is about, if each is still what was shown; what is so already is passed over."""
    stored = snapshots.catalog()
    reviews.find(name, stored)
    found = {key: one for key, one in reviews.pending(name, stored).items() if one.kind != "gone"}
    for key, seen in shown.items():
        tool = stored.tools.get(key)
        if tool is None or tool.plugin != name:
            raise errors.NotFound(f"tool of {name} that waits for a look", key, found)
        now = "retired" if tool.retired else catalog.version(tool)
        if now != seen:
            raise errors.Stale(key, seen, now)
    return {key: found[key] for key in shown if key in found}


def _write(
    actor: actors.Actor, changes: Mapping[str, Mapping[str, Any]], *, reason: str, batch: uuid.UUID
) -> None:
    stored, known = snapshots.catalog(), entries.known()
    wanted = []
    for key, change in changes.items():
        merged = {**belts.entry("tool", stored.tools[key]), **change}
        wanted.append({field: value for field, value in merged.items() if value is not None})
    done = provided.write(
        actor,
        wanted,
        source="the approval",
        stored=stored,
        known=known,
        reason=reason,
        batch=batch,
    )
    if done.problems:
        raise errors.Invalid(done.problems)
